package api

import (
	"context"
	"net/http"
	"strings"

	"parley/cmd/parley/erase"
)

// A Forgetter erases what people said.
type Forgetter interface {
	Person(ctx context.Context, person string) (erase.Receipt, error)
	Session(ctx context.Context, key string) (erase.Receipt, error)
}

// forget erases what a person said, or a session, everywhere, and answers with the receipt: a
// list of what was erased.
func (a *API) forget(w *response, r *http.Request) error {
	raw, err := a.readJSONBody(w, r, 64<<10)
	if err != nil {
		return err
	}
	var user, key string
	if _, err := decode(raw, field{"user", &user, "a text"}, field{"session", &key, "a text"}); err != nil {
		return err
	}
	var receipt erase.Receipt
	defer a.snapshots.clear()
	switch {
	case (user == "") == (key == ""):
		return unprocessable("missing_field", `give either "user", as CHANNEL:USER, or "session", by its key`)
	case user != "":
		if !isPerson(user) {
			return unprocessable("bad_user", "%.80q is no person: write CHANNEL:USER", user)
		}
		w.id, w.auditSubject = user, "a person" // the audit must not name the person who is erased
		receipt, err = a.cfg.Forget.Person(r.Context(), user)
	default:
		if _, err := parseKey(key); err != nil {
			return unprocessable("bad_session", "%v", err)
		}
		w.id, w.auditSubject = key, key
		receipt, err = a.cfg.Forget.Session(r.Context(), key)
	}
	if err != nil {
		return err
	}
	return w.json(http.StatusOK, receipt)
}

// isPerson reports whether a text has the form CHANNEL:USER, which names a person on a channel.
func isPerson(text string) bool {
	channel, user, ok := strings.Cut(text, ":")
	return ok && channel != "" && user != ""
}
