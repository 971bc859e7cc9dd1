package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"parley/bus"
	"parley/channels/console"
	"parley/channels/web"
)

// Asks reads and answers asks: the approvals and questions for which turns wait until somebody
// answers.
type Asks struct {
	Open   func(ctx context.Context) ([]bus.Ask, error)
	Lookup func(ctx context.Context, id string) (bus.Ask, error)
	// Answer records an answer; its errors are those of package bus about asks.
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
	Reason    string          `json:"reason,omitempty"`
	Question  string          `json:"question,omitempty"`
	Choices   []string        `json:"choices,omitempty"`
	At        time.Time       `json:"at"`
	Expires   time.Time       `json:"expires"`
	To        []string        `json:"to,omitempty"` // where people are asked; left out if they are asked in the conversation itself
	State     string          `json:"state"`        // open, answered, expired or withdrawn
	Answer    string          `json:"answer,omitempty"`
	By        string          `json:"by,omitempty"`
}

func askOf(a bus.Ask) Ask {
	var to []string
	for _, at := range a.Asked {
		to = append(to, at.String())
	}
	return Ask{
		To: to,
		ID: a.ID, Kind: a.Kind, Session: a.Session, Turn: a.Turn, Person: a.Person, Tool: a.Tool, Arguments: a.Arguments,
		Reason: a.Reason, Question: a.Question, Choices: a.Choices, At: a.Made, Expires: a.Expires,
		State: a.State, Answer: a.Answer.Text, By: a.Answer.By.ID,
	}
}

// mayAnswerAsks reports whether the caller may answer any asks at all: approvals, or the
// questions of turns that the caller began.
func (c caller) mayAnswerAsks() bool { return c.mayApprove() || c.mayTalkToAgent() }

// asPerson returns the caller in the form of a person, so that the same checks hold for programs
// as for people in a chat.
func (c caller) asPerson() bus.Person {
	if c.local {
		return bus.Person{ID: console.Owner, Owner: true}
	}
	return bus.Person{ID: web.Person(c.name), Name: c.name, Owner: c.owner, EveryApprover: c.mayApprove()}
}

// mayReadAsk reports whether the caller may see this ask.
func (c caller) mayReadAsk(a bus.Ask) bool {
	return c.mayApprove() || a.Kind == bus.AskQuestion && a.Person == web.Person(c.name)
}

// listAsks answers with the asks that nobody has answered yet, if the caller may see them.
func (a *API) listAsks(w *response, r *http.Request) error {
	found, err := a.cfg.Asks.Open(r.Context())
	if err != nil {
		return err
	}
	list := []Ask{}
	session := r.URL.Query().Get("session")
	for _, ask := range found {
		if w.caller.mayReadAsk(ask) && (session == "" || ask.Session == session) {
			list = append(list, askOf(ask))
		}
	}
	return w.json(http.StatusOK, struct {
		Asks []Ask `json:"asks"`
	}{list})
}

// answerAsk records a caller's answer to an ask.
func (a *API) answerAsk(w *response, r *http.Request) error {
	w.id = r.PathValue("id")
	raw, err := a.readJSONBody(w, r, maxJSON)
	if err != nil {
		return err
	}
	said := bus.Answer{By: w.caller.asPerson()}
	_, err = decode(raw, field{"answer", &said.Text, "a text"}, field{"reason", &said.Reason, "a text"})
	if err != nil {
		return err
	}
	ask, err := a.cfg.Asks.Lookup(r.Context(), w.id)
	if err == nil && !w.caller.mayReadAsk(ask) {
		err = bus.ErrNoAsk // as if the asks of others did not exist
	}
	if err == nil {
		ask, err = a.cfg.Asks.Answer(r.Context(), w.id, said)
	}
	switch {
	case errors.Is(err, bus.ErrNoAsk):
		return notFound("there is no such request")
	case errors.Is(err, bus.ErrMayNotAnswer) && ask.Kind == bus.AskApproval:
		return forbidden("this request is about a turn of the same token: another has to approve it")
	case errors.Is(err, bus.ErrMayNotAnswer):
		return forbidden("this question is answered by the person whose turn it is, or by an owner")
	case errors.Is(err, bus.ErrBadAnswer) && ask.Kind == bus.AskApproval:
		return unprocessable("bad_answer", `"answer" is to be "approve", "session" or "deny"`)
	case errors.Is(err, bus.ErrBadAnswer):
		return unprocessable("bad_answer", `"answer" is to be what is said to the question`)
	case errors.Is(err, bus.ErrDecided):
		return &refusal{status: http.StatusConflict, code: "decided", message: "it is decided already: " + ask.Ending()}
	case err != nil:
		return err
	}
	return w.json(http.StatusOK, askOf(ask))
}

// A resolvedAsk is the data of the event that tells watchers how an ask has ended.
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

// MCP serves the API's requests about MCP servers, which are programs elsewhere whose tools
// agents use.
type MCP interface {
	// ServeHTTP lists the servers, tries one, accepts tools of it, and signs in to it.
	http.Handler
	// ServeBrowser serves people's browsers that come back from signing in to an MCP server, and
	// sign-in servers that fetch the data by which Parley is known to them as an OAuth client. It
	// checks its callers itself.
	ServeBrowser(w http.ResponseWriter, r *http.Request)
}

// mcpPath is the beginning of the paths to which browsers come back after signing in to an MCP
// server.
const mcpPath = "/mcp/"

// serveMCP passes an admin's request to the MCP servers.
func (a *API) serveMCP(w *response, r *http.Request) error {
	if a.cfg.MCP == nil {
		return notFound("this process has no MCP servers")
	}
	w.id = r.PathValue("name")
	w.auditSubject = w.id
	a.cfg.MCP.ServeHTTP(w, r)
	return nil
}

// serveMCPBrowser passes a request that needs no token to the MCP servers.
func (a *API) serveMCPBrowser(w *response, r *http.Request) error {
	if a.cfg.MCP == nil {
		return notFound("this process has no MCP servers")
	}
	w.id = r.PathValue("name")
	a.cfg.MCP.ServeBrowser(w, r)
	return nil
}
