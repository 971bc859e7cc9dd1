package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"parley/agent/excerpt"
	"parley/bus"
	"parley/channels/console"
	"parley/channels/web"
	"parley/cmd/parley/api/exchange"
)

// Asks reads and answers asks: the approvals and questions that turns wait for until somebody answers.
type Asks struct {
	Open   func(ctx context.Context) ([]bus.Ask, error)
	Lookup func(ctx context.Context, id string) (bus.Ask, error)
	// Answer records an answer. The errors of Lookup and Answer are those that package bus has for asks.
	Answer func(ctx context.Context, id string, answer bus.Answer) (bus.Ask, error)
}

// An Ask is a bus.Ask in the API's JSON.
type Ask struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"` // approval or question
	Session   string          `json:"session"`
	Turn      string          `json:"turn"`
	Person    string          `json:"person"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Shown is what the call would do, part by part, as people are shown it.
	Shown    []excerpt.Part `json:"shown,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Question string         `json:"question,omitempty"`
	Choices  []string       `json:"choices,omitempty"`
	At       time.Time      `json:"at"`
	Expires  time.Time      `json:"expires"`
	To       []string       `json:"to,omitempty"` // where people are asked; left out if they are asked in the conversation itself
	State    string         `json:"state"`        // open, answered, expired or withdrawn
	Answer   string         `json:"answer,omitempty"`
	By       string         `json:"by,omitempty"`
}

// maySeeAskChats reports whether the caller may see in which chats people are asked: only those who may read
// everything or answer approvals may.
func maySeeAskChats(c exchange.Caller) bool { return c.MayReadAll() || c.MayApprove() }

// askOf returns an ask as a caller sees it.
func askOf(a bus.Ask, c exchange.Caller) Ask {
	var to []string
	if maySeeAskChats(c) {
		for _, at := range a.Asked {
			to = append(to, at.String())
		}
	}
	var shown []excerpt.Part
	if a.Kind == bus.AskApproval {
		shown = excerpt.Call{Shown: a.Shown, Of: a.ShownOf, Arguments: a.Arguments}.Parts()
	}
	return Ask{
		To: to, Shown: shown,
		ID: a.ID, Kind: a.Kind, Session: a.Session, Turn: a.Turn, Person: a.Person, Tool: a.Tool, Arguments: a.Arguments,
		Reason: a.Reason, Question: a.Question, Choices: a.Choices, At: a.Made, Expires: a.Expires,
		State: a.State, Answer: a.Answer.Text, By: a.Answer.By.ID,
	}
}

// asksHandler serves the asks.
type asksHandler struct {
	Asks
	scopes readScopes
}

// mayReadAsks reports whether the caller may see any asks at all.
func mayReadAsks(c exchange.Caller) bool { return mayAnswerAsks(c) || c.MayReadAll() || c.MayReadOwn() }

// mayAnswerAsks reports whether the caller may answer any asks at all: approvals, or the
// questions of turns that the caller began.
func mayAnswerAsks(c exchange.Caller) bool { return c.MayApprove() || c.MayTalkToAgent() }

// asPerson returns the caller in the form of a person, so that the same checks apply to programs as to people in a
// chat.
func asPerson(c exchange.Caller) bus.Person {
	if c.Local {
		return bus.Person{ID: console.Owner, Owner: true}
	}
	return bus.Person{ID: web.Person(c.Name), Name: c.Name, Owner: c.Owner, EveryApprover: c.MayApprove()}
}

// mayAnswerAsk reports whether the caller may answer this ask; otherwise the ask doesn't exist for the caller. The
// answer may still be refused because of whose turn it is.
func mayAnswerAsk(c exchange.Caller, a bus.Ask) bool {
	return c.MayApprove() || a.Kind == bus.AskQuestion && a.Person == web.Person(c.Name)
}

// list answers with the open asks, of all sessions or of one, that the caller may see: because it may answer them, or because it may read
// everything or what belongs to its person.
func (a asksHandler) list(w *exchange.Answer, r *http.Request) error {
	found, err := a.Open(r.Context())
	if err != nil {
		return err
	}
	var seen readScope
	if w.Caller.MayReadAll() || w.Caller.MayReadOwn() {
		if seen, err = a.scopes.scopeOf(r.Context(), w.Caller); err != nil {
			return err
		}
	}
	list := []Ask{}
	session := r.URL.Query().Get("session")
	for _, ask := range found {
		if session != "" && ask.Session != session {
			continue
		}
		may := mayAnswerAsk(w.Caller, ask)
		if key, err := parseKey(ask.Session); !may && err == nil {
			if may, err = a.scopes.includes(r.Context(), seen, key); err != nil {
				return err
			}
		}
		if may {
			list = append(list, askOf(ask, w.Caller))
		}
	}
	return w.JSON(http.StatusOK, struct {
		Asks []Ask `json:"asks"`
	}{list})
}

// answer records a caller's answer to an ask.
func (a asksHandler) answer(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	raw, err := w.ReadJSON(r, exchange.MaxJSON)
	if err != nil {
		return err
	}
	said := bus.Answer{By: asPerson(w.Caller)}
	_, err = exchange.Decode(raw, exchange.Field{Name: "answer", Into: &said.Text, Want: "a string"}, exchange.Field{Name: "reason", Into: &said.Reason, Want: "a string"})
	if err != nil {
		return err
	}
	ask, err := a.Lookup(r.Context(), w.ID)
	if err == nil && !mayAnswerAsk(w.Caller, ask) {
		err = bus.ErrNoAsk // as if other people's asks didn't exist
	}
	if err == nil {
		ask, err = a.Answer(r.Context(), w.ID, said)
	}
	switch {
	case errors.Is(err, bus.ErrNoAsk):
		return exchange.NotFound("there's no such request")
	case errors.Is(err, bus.ErrMayNotAnswer) && ask.Kind == bus.AskApproval && ask.Approvers != nil:
		return exchange.Forbidden("only owners and the approvers of that node can decide about this request")
	case errors.Is(err, bus.ErrMayNotAnswer) && ask.Kind == bus.AskApproval:
		return exchange.Forbidden("this request comes from a turn that this same token started, so somebody else has to approve it")
	case errors.Is(err, bus.ErrMayNotAnswer):
		return exchange.Forbidden("only the person who started the turn, or an owner, can answer this question")
	case errors.Is(err, bus.ErrBadAnswer) && ask.Kind == bus.AskApproval:
		return exchange.Unprocessable("bad_answer", `"answer" must be "approve", "session" or "deny"`)
	case errors.Is(err, bus.ErrBadAnswer):
		return exchange.Unprocessable("bad_answer", `"answer" must be the reply to the question`)
	case errors.Is(err, bus.ErrDecided):
		return exchange.Conflict("decided", "this request has already been decided: "+ask.Ending())
	case err != nil:
		return err
	}
	w.Noted = exchange.Noted{Result: auditResultOf(ask), Session: ask.Session, Tool: ask.Tool}
	return w.JSON(http.StatusOK, askOf(ask, w.Caller))
}

// auditResultOf returns, in the audit's words, what the answer to an ask did.
func auditResultOf(a bus.Ask) string {
	if a.Kind != bus.AskApproval {
		return "answered"
	}
	switch a.Answer.Text {
	case bus.Approve:
		return "approved"
	case bus.ApproveSession:
		return "approved for the session"
	}
	return "denied"
}

// A resolvedAsk is the data of the event that tells watchers how an ask ended.
type resolvedAsk struct {
	Turn   string `json:"turn"`
	Ask    string `json:"ask"`
	Answer string `json:"answer"` // the answer that was given, or expired, or withdrawn
	By     string `json:"by,omitempty"`
}

func resolvedAskOf(a bus.Ask, turn string) resolvedAsk {
	r := resolvedAsk{Turn: turn, Ask: a.ID, Answer: a.State}
	if a.State == bus.AskAnswered {
		r.Answer, r.By = a.Answer.Text, a.Answer.By.ID
	}
	return r
}
