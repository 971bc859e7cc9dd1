package api

import (
	"context"
	"net/http"
	"strings"

	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/api/snapshot"
	"parley/cmd/parley/data/erase"
)

// A Forgetter erases what people said. It returns once everything is erased. It doesn't rewrite the database's file,
// where erased data may remain in unused parts, because all writers would have to wait; the receipt says so.
type Forgetter interface {
	PersonSoon(ctx context.Context, person string) (erase.Receipt, error)
	SessionSoon(ctx context.Context, key string) (erase.Receipt, error)
}

// forgetHandler serves requests to erase what people said.
type forgetHandler struct {
	Forgetter
	snapshots *snapshot.Cache
}

// forget erases what a person said, or a session, everywhere, and answers with the receipt: a list
// of what was erased.
func (f forgetHandler) forget(w *exchange.Answer, r *http.Request) error {
	raw, err := w.ReadJSON(r, 64<<10)
	if err != nil {
		return err
	}
	var user, key string
	if _, err := exchange.Decode(raw, exchange.Field{Name: "user", Into: &user, Want: "a string"}, exchange.Field{Name: "session", Into: &key, Want: "a string"}); err != nil {
		return err
	}
	var receipt erase.Receipt
	defer f.snapshots.Clear()
	switch {
	case (user == "") == (key == ""):
		return exchange.Unprocessable("missing_field", `give either "user", as CHANNEL:USER, or "session", as a session's key`)
	case user != "":
		if !isPerson(user) {
			return exchange.Unprocessable("bad_user", "%.80q isn't a person: write CHANNEL:USER", user)
		}
		w.ID, w.Subject = user, "a person" // the audit must not name the person who is erased
		receipt, err = f.PersonSoon(r.Context(), user)
	default:
		if _, err := parseKey(key); err != nil {
			return exchange.Unprocessable("bad_session", "%v", err)
		}
		w.ID, w.Subject = key, key
		receipt, err = f.SessionSoon(r.Context(), key)
	}
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, receipt)
}

// isPerson reports whether a text has the form CHANNEL:USER, which identifies a person on a
// channel.
func isPerson(text string) bool {
	channel, user, ok := strings.Cut(text, ":")
	return ok && channel != "" && user != ""
}
