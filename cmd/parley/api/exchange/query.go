package exchange

import (
	"net/http"
	"strconv"
	"time"
)

// These limit how many items a page of an answer contains.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Limit returns how many items a page should contain, from the query parameter limit: DefaultPage if there is none, and
// at most MaxPage.
func Limit(r *http.Request) (int, error) {
	n, err := number(r, "limit", DefaultPage, MaxPage)
	if err == nil && n == 0 {
		err = notNumber("limit")
	}
	return int(n), err
}

// After returns the number of the item after which a page begins, from the query parameter after; 0 means at the
// beginning.
func After(r *http.Request) (int64, error) { return number(r, "after", 0, 1<<62) }

// Before returns the number of the item before which a page ends, from the query parameter before; 0 means at the
// end.
func Before(r *http.Request) (int64, error) { return number(r, "before", 0, 1<<62) }

// number reads a number from the query parameter with this name. It returns otherwise if there is none, and at most
// most.
func number(r *http.Request, name string, otherwise, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, notNumber(name)
	}
	return min(n, most), nil
}

func notNumber(name string) *Refusal { return BadRequest("bad_query", "%q must be a number", name) }

// Day reads a day from the query parameter with this name; it returns otherwise if there is none.
func Day(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, BadRequest("bad_query", "%q must be a day like 2026-01-31", name)
	}
	return day, nil
}

// Moment reads a time from the query parameter with this name; it returns the zero time if there is none.
func Moment(r *http.Request, name string) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, BadRequest("bad_query", "%q must be a time like 2026-01-31T15:04:05Z", name)
	}
	return at, nil
}

// Flag reports whether the query parameter with this name is true; if it is left out, it isn't.
func Flag(r *http.Request, name string) (bool, error) {
	switch r.URL.Query().Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, BadRequest("bad_query", "%q must be true or false", name)
}

// Newest reports whether the query parameter order asks for the newest items first ("desc") rather than the oldest
// ("asc", or none).
func Newest(r *http.Request) (bool, error) {
	switch order := r.URL.Query().Get("order"); order {
	case "", "asc":
		return false, nil
	case "desc":
		return true, nil
	default:
		return false, BadRequest("bad_query", `"order" must be asc or desc`)
	}
}
