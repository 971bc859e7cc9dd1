package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/channels/console"
	"parley/channels/web"
	"parley/sessions"
)

// How many sessions or entries a page of an answer has.
const (
	pageDefault = 100
	pageMost    = 1000
	pageBytes   = 4 << 20 // how many bytes a page of entries has at most
)

// A sessionKey holds the parts of a session's key: which agent talks where, and with whom.
type sessionKey struct {
	text  string
	agent string
	at    bus.Address
	user  string // who has this conversation alone; "" if everybody there shares it
}

// parseKey splits the key of a session, as sessions.Key or sessions.PersonalKey has made it, into
// its parts.
func parseKey(text string) (sessionKey, error) {
	if err := sessions.CheckKey(text); err != nil {
		return sessionKey{}, err
	}
	var parts [5]string
	for i, p := range strings.Split(text, ":") {
		said, err := url.PathUnescape(p)
		if err != nil {
			return sessionKey{}, fmt.Errorf("read a session's key: %w", err)
		}
		parts[i] = said
	}
	return sessionKey{text, parts[0], bus.Address{Channel: parts[1], Chat: parts[2], Thread: parts[3]}, parts[4]}, nil
}

// belongsTo reports whether the session is the caller's own. A token owns the sessions that it
// began; the owner owns also the sessions of the terminals.
func (k sessionKey) belongsTo(c caller) bool {
	return k.at.Channel == web.Name && k.at.Chat == c.name || k.at.Channel == console.Name && c.owner
}

// readableSession returns the session's key in a request's path if the caller may read that
// session. It decides that before anybody looks whether the session exists, so a refusal does not
// tell.
func readableSession(w *response, r *http.Request) (sessionKey, error) {
	key, err := parseKey(r.PathValue("key"))
	if !w.caller.mayReadAll() && (err != nil || !key.belongsTo(w.caller)) {
		return sessionKey{}, forbidden("this token may read the sessions that it began, and no others")
	}
	if err != nil {
		return sessionKey{}, notFound("this is no session's key: parley sessions, or GET /v1/sessions, lists them; in a path a key is percent-encoded once more")
	}
	w.id = key.text
	return key, nil
}

// queryNumber reads a number from the query's parameter of this name. It returns otherwise if
// there is none, and at most most.
func queryNumber(r *http.Request, name string, otherwise, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || name == "limit" && n == 0 {
		return 0, badRequest("bad_query", "%s is to be a number", name)
	}
	return min(n, most), nil
}

// listSessions lists the sessions that the caller may read, in the order of their keys.
func (a *API) listSessions(w *response, r *http.Request) error {
	limit, err := queryNumber(r, "limit", pageDefault, pageMost)
	if err != nil {
		return err
	}
	list, more, err := a.listVisible(r.Context(), w.caller, r.URL.Query().Get("after"), int(limit))
	if err != nil {
		return err
	}
	page := struct {
		Sessions []sessions.Info `json:"sessions"`
		Next     string          `json:"next,omitempty"`
	}{Sessions: list}
	if more {
		page.Next = list[len(list)-1].Key
	}
	return w.json(http.StatusOK, page)
}

// listVisible returns the sessions that a caller may read and whose keys follow the key after, at
// most limit; more is true if others follow.
func (a *API) listVisible(ctx context.Context, c caller, after string, limit int) (list []sessions.Info, more bool, err error) {
	list = []sessions.Info{}
	for {
		found, err := a.cfg.Sessions.List(ctx, after, pageMost)
		if err != nil {
			return nil, false, err
		}
		for _, info := range found {
			if key, err := parseKey(info.Key); !c.mayReadAll() && (err != nil || !key.belongsTo(c)) {
				continue
			}
			if len(list) == limit {
				return list, true, nil
			}
			list = append(list, info)
		}
		if len(found) < pageMost {
			return list, false, nil
		}
		after = found[len(found)-1].Key
	}
}

// readSession answers with a page of entries from a session's log.
func (a *API) readSession(w *response, r *http.Request) error {
	key, err := readableSession(w, r)
	if err != nil {
		return err
	}
	limit, err := queryNumber(r, "limit", pageDefault, pageMost)
	if err != nil {
		return err
	}
	after, err := queryNumber(r, "after", 0, 1<<62)
	if err != nil {
		return err
	}
	page := struct {
		Key     string           `json:"key"`
		Entries []sessions.Entry `json:"entries"`
		Next    int64            `json:"next,omitempty"`
		Ratings []rating         `json:"ratings,omitempty"`
	}{Key: key.text, Entries: []sessions.Entry{}}
	size := 0
	for e, err := range a.cfg.Sessions.Read(r.Context(), key.text, after+1) {
		if err != nil {
			return err
		}
		if n := len(page.Entries); int64(n) == limit || n > 0 && size+len(e.Data) > pageBytes {
			page.Next = page.Entries[n-1].N
			break
		}
		page.Entries = append(page.Entries, e)
		size += len(e.Data)
	}
	if page.Next == 0 {
		if page.Ratings, err = a.ratings(r.Context(), key.text); err != nil {
			return err
		}
	}
	return w.json(http.StatusOK, page)
}

// A rating is a person's judgement, good or bad, of a turn's answer.
type rating struct {
	Turn   string    `json:"turn"`
	Person string    `json:"person"`
	Good   bool      `json:"good"`
	At     time.Time `json:"at"`
}

// ratings returns what people think of a session's answers.
func (a *API) ratings(ctx context.Context, session string) (all []rating, err error) {
	kept, err := a.cfg.People.Ratings(ctx, session)
	for _, r := range kept {
		all = append(all, rating{r.Turn, r.Person, r.Good, r.Rated.UTC()})
	}
	return all, err
}

// exportSession answers with a session's whole log, one entry on each line. If an error occurs in
// the middle it breaks the connection, so that nobody takes a part for the whole.
func (a *API) exportSession(w *response, r *http.Request) error {
	key, err := readableSession(w, r)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 32<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	begun := false
	for e, err := range a.cfg.Sessions.Read(r.Context(), key.text, 1) {
		if err == nil {
			if !begun {
				begun = true
				w.Header().Set("Content-Type", "application/x-ndjson")
				w.Header().Set("Cache-Control", "no-store")
			}
			_ = w.control.SetWriteDeadline(time.Now().Add(a.cfg.Timeouts.Write))
			err = enc.Encode(e)
		}
		if err != nil && w.status == 0 {
			return err
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if !begun {
		w.Header().Set("Content-Type", "application/x-ndjson")
	}
	if err := a.exportRatings(r.Context(), enc, key.text); err != nil || out.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// exportRatings writes the ratings of a session's answers, one on each line.
func (a *API) exportRatings(ctx context.Context, enc *json.Encoder, session string) error {
	all, err := a.ratings(ctx, session)
	if err != nil {
		return err
	}
	for _, one := range all {
		line := struct {
			Kind string `json:"kind"`
			rating
		}{"rating", one}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
