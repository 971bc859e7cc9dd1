package api

import (
	"errors"
	"net/http"

	"parley/bus"
	"parley/channels/console"
	"parley/channels/outbox"
	"parley/channels/web"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
)

// asOperator is the value of "as" with which somebody answers in a session in place of its agent.
const asOperator = "operator"

// postAsOperator accepts what an operator says in the conversation of a session. It goes where the agent's answers
// go, and starts no turn. It is added to the session's log once it was sent.
func (a messages) postAsOperator(w *exchange.Answer, r *http.Request, m message, key, digest string) error {
	switch {
	case !w.Caller.IsAdmin():
		return exchange.Forbidden("to answer as the operator, a token needs the admin scope")
	case m.as != asOperator:
		return exchange.Unprocessable("bad_as", `"as" must be "operator"; otherwise, leave it out`)
	case len(m.to) > 0 || m.file != nil || m.files != nil || m.key != "" || !m.expires.IsZero() || m.urgent:
		return exchange.Unprocessable("not_for_operator", `an operator's answer has only "session", "as" and "text"`)
	}
	session, err := a.sessionOfPeople(r, m.session)
	if err != nil {
		return err
	}
	s, err := a.out.Accept(r.Context(), outbox.Request{
		Origin: w.Caller.Name, Text: m.text, Key: key, Digest: digest,
		Answer: &outbox.OperatorMessage{Session: session.text, At: session.at, By: operatorOf(w.Caller)},
	})
	if full, ok := errors.AsType[*outbox.FullError](err); ok {
		w.ID = full.ID
	}
	if err != nil {
		return err
	}
	w.ID, w.Subject, w.Noted = s.ID, s.ID, exchange.Noted{Result: "answered", Session: session.text}
	return w.JSON(http.StatusAccepted, struct {
		outbox.Status
		Session string `json:"session"`
	}{s, session.text})
}

// sessionOfPeople returns the parts of a session's key. It refuses sessions of programs, terminals and sub-agents,
// because nobody on a platform would see there what the operator said, and sessions whose agent no longer answers.
func (a messages) sessionOfPeople(r *http.Request, text string) (sessionKey, error) {
	key, err := parseKey(text)
	if err != nil {
		return key, exchange.Unprocessable("bad_session", `"session" must be a session's key: GET /v1/sessions lists them`)
	}
	switch key.at.Channel {
	case web.Name, console.Name, bus.SubAgents:
		return key, exchange.Unprocessable("not_for_operator", "nobody on a chat platform reads this session: an operator can only answer in the sessions of a channel")
	}
	if _, err := a.log.Info(r.Context(), key.text); errors.Is(err, sessions.ErrNotFound) {
		return key, exchange.NotFound("there's no such session: GET /v1/sessions lists them")
	} else if err != nil {
		return key, err
	}
	return key, a.checkAgent(key.agent)
}

// operatorOf returns the person as whom a caller answers. The owner gets no name: unlike a token's, it identifies
// nobody.
func operatorOf(c exchange.Caller) bus.Person {
	p := bus.Person{ID: web.Person(c.Name), Name: c.Name, Owner: c.Owner}
	if c.Owner {
		p.Name = ""
	}
	if c.Local {
		p.ID = console.Owner
	}
	return p
}
