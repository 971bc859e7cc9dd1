package erase

import (
	"errors"
	"net/http"
	"strings"

	"parley/cmd/parley/api/exchange"
	"parley/sessions"
)

// Routes returns the routes that the API serves.
func (r *Requests) Routes() []exchange.Route {
	admin := exchange.Caller.IsAdmin
	return []exchange.Route{
		{Pattern: "POST /v1/forget", May: admin, Serve: r.ask, Audit: sessions.AuditForget, Result: "erased"},
		{Pattern: "GET /v1/forget/{id}", May: admin, Serve: r.show},
	}
}

// ask erases what a person said, or a session, everywhere. It answers with the receipt, a list of what was erased, or, if
// the caller doesn't want to wait, with the id under which the receipt can be fetched.
func (r *Requests) ask(w *exchange.Answer, req *http.Request) error {
	raw, err := w.ReadJSON(req, 64<<10)
	if err != nil {
		return err
	}
	var user, key string
	if _, err := exchange.Decode(raw, exchange.Field{Name: "user", Into: &user, Want: "a string"}, exchange.Field{Name: "session", Into: &key, Want: "a string"}); err != nil {
		return err
	}
	switch {
	case (user == "") == (key == ""):
		return exchange.Unprocessable("missing_field", `give either "user", as CHANNEL:USER, or "session", as a session's key`)
	case user != "":
		if !isPerson(user) {
			return exchange.Unprocessable("bad_user", "%.80q isn't a person: write CHANNEL:USER", user)
		}
		w.ID, w.Subject = user, "a person" // the audit must not name the person who is erased
	default:
		if _, err := sessions.ParseKey(key); err != nil {
			return exchange.Unprocessable("bad_session", "%v", err)
		}
		w.ID, w.Subject = key, key
	}
	q, err := r.Ask(req.Context(), user, key)
	if err != nil {
		return err
	}
	if req.URL.Query().Get("wait") == "false" {
		return w.JSON(http.StatusAccepted, q)
	}
	q, err = r.Await(req.Context(), q.ID)
	switch {
	case errors.Is(err, errStopping):
		return exchange.Unavailable("stopping", "Parley is being stopped. The erasing goes on at its next start: GET /v1/forget/"+q.ID+" says how far it is")
	case err != nil:
		return err
	case q.State == Failed:
		return exchange.Unavailable("not_erased", "not everything could be erased, so ask for it again: "+q.Error)
	}
	return w.JSON(http.StatusOK, q.Receipt)
}

// show answers with a request: how far it is, and its receipt once it is done.
func (r *Requests) show(w *exchange.Answer, req *http.Request) error {
	w.ID = req.PathValue("id")
	w.Routine = true
	q, err := r.Find(req.Context(), w.ID)
	if errors.Is(err, errNoRequest) {
		return exchange.NotFound("no erasure has that id, or it ended more than a day ago")
	}
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, q)
}

// isPerson reports whether a text has the form CHANNEL:USER, which identifies a person on a channel.
func isPerson(text string) bool {
	channel, user, ok := strings.Cut(text, ":")
	return ok && channel != "" && user != ""
}
