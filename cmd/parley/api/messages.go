package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/markup"
	"parley/channels/outbox"
	"parley/channels/web"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools/spelling"
)

// These are the size limits of a message, in bytes.
const (
	maxFile = 10 << 20 // its file, or all its files together, decoded from base64
	maxBody = exchange.MaxJSON + (maxFile+2)/3*4
)

const (
	toAgent        = "agent" // the destination that means the main agent rather than people; "agent:NAME" means another agent
	keyHeader      = "Idempotency-Key"
	maxKey         = 255
	defaultSession = "default" // the name of the terminal's session
)

// Agent connects the API to the agents that programs talk to.
type Agent struct {
	// Name is the agent that answers requests that name none.
	Name string
	// Models returns all agents by name, and for each whether a model is configured that answers for it.
	Models func() map[string]bool
	// Say publishes what somebody says in a session. If a mailbox is full (bus.ErrFull) or the message is invalid
	// (bus.ErrInvalid), the caller of the API learns that; any other error is reported as "not durable now".
	Say func(ctx context.Context, session string, in bus.Inbound) error
	// Keep stores the files of the message with that id until the agent has fetched them.
	Keep func(ctx context.Context, session, message string, all []bus.File) ([]bus.Attachment, error)
	// Event returns the session in which the agent answers what was posted to the webhook at this address; false if
	// the address is not a webhook's. Event is nil if there are no such webhooks.
	Event func(at bus.Address) (session string, ok bool)
}

// A message is the body of POST /v1/messages.
type message struct {
	to      exchange.TextList
	text    string
	file    *bus.File
	files   []bus.File // files for an agent
	key     string
	expires time.Time
	urgent  bool
	session string
	as      string
}

// messages serves messages to people and to agents.
type messages struct {
	out   *outbox.Outbox
	log   sessions.Reader
	agent Agent
}

// readMessage reads the body of POST /v1/messages. digest is a hash of the body; it distinguishes a repeated
// request from another one with the same key.
func readMessage(w *exchange.Answer, r *http.Request) (m message, digest string, err error) {
	raw, err := w.ReadJSON(r, maxBody)
	if err != nil {
		return message{}, "", err
	}
	var file, files json.RawMessage
	sizes, err := exchange.Decode(raw,
		exchange.Field{Name: "to", Into: &m.to, Want: "a string or a list of strings"},
		exchange.Field{Name: "text", Into: &m.text, Want: "a string"},
		exchange.Field{Name: "file", Into: &file, Want: ""}, // decoded below
		exchange.Field{Name: "files", Into: &files, Want: ""},
		exchange.Field{Name: "key", Into: &m.key, Want: "a string"},
		exchange.Field{Name: "expires", Into: &m.expires, Want: "a time in RFC 3339 format"},
		exchange.Field{Name: "urgent", Into: &m.urgent, Want: "true or false"},
		exchange.Field{Name: "session", Into: &m.session, Want: "a string"},
		exchange.Field{Name: "as", Into: &m.as, Want: "a string"},
	)
	if err != nil {
		return message{}, "", err
	}
	if m.expires.IsZero() && sizes["expires"] > len("null") {
		m.expires = time.Unix(0, 0) // a time long ago, because the zero time means none
	}
	if len(raw)-sizes["file"]-sizes["files"] > exchange.MaxJSON {
		return message{}, "", exchange.BodyTooLarge(exchange.MaxJSON)
	}
	if m.file, err = readFile(file); err != nil {
		return message{}, "", err
	}
	if m.files, err = readFiles(files); err != nil {
		return message{}, "", err
	}
	sum := sha256.Sum256(raw)
	return m, hex.EncodeToString(sum[:]), nil
}

// idempotencyKey returns the key with which a request may be repeated; "" if it has none.
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get(keyHeader)
	if len(key) > maxKey {
		return "", exchange.BadRequest("bad_key", "the %s is %d bytes long; at most %d are allowed", keyHeader, len(key), maxKey)
	}
	return key, nil
}

// post accepts a message to people or to the agent.
func (a messages) post(w *exchange.Answer, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	m, digest, err := readMessage(w, r)
	if err != nil {
		return err
	}
	if m.as != "" {
		return a.postAsOperator(w, r, m, key, digest)
	}
	// Check scopes before any answer can show what is configured.
	for _, to := range m.to {
		if _, agent := a.agentNamed(to); agent && !w.Caller.MayTalkToAgent() || !agent && !w.Caller.MaySendTo(to) {
			return exchange.Forbidden(fmt.Sprintf("this token isn't allowed to send to %.80q", to))
		}
	}
	said := outbox.Request{
		Origin: w.Caller.Name, To: m.to, Text: m.text, File: m.file, Subject: m.key,
		Expires: m.expires, Urgent: m.urgent, Unlimited: w.Caller.IsAdmin(), Key: key, Digest: digest,
	}
	for _, to := range m.to {
		if name, ok := a.agentNamed(to); ok {
			return a.postToAgent(w, r, name, m, said)
		}
	}
	if m.session != "" || m.files != nil {
		return exchange.Unprocessable("not_for_people", `"session" and "files" are only for messages to an agent; a message to people can have one "file"`)
	}
	s, err := a.out.Accept(r.Context(), said)
	if full, ok := errors.AsType[*outbox.FullError](err); ok {
		w.ID = full.ID
	}
	if err != nil {
		return err
	}
	w.ID = s.ID
	return w.JSON(http.StatusAccepted, s)
}

// agentNamed returns the agent that a message's destination refers to; ok is false if the message is for people.
func (a messages) agentNamed(to string) (name string, ok bool) {
	if to == toAgent {
		return a.agent.Name, true
	}
	return strings.CutPrefix(to, toAgent+":")
}

// checkAgent returns a refusal if there is no agent with that name, or no model that answers for it.
func (a messages) checkAgent(name string) error {
	models := a.agent.Models()
	answers, known := models[name]
	switch {
	case answers:
		return nil
	case known && name == a.agent.Name:
		return exchange.Unprocessable("no_model", "no model is configured, so there's no agent to talk to: set [model] in the configuration")
	case known:
		return exchange.Unprocessable("no_model", "the agent %s has no model: set agents.%s.model, or [model], in the configuration", name, name)
	}
	names := slices.Sorted(maps.Keys(models))
	if near := spelling.Nearest(name, names); near != "" {
		return exchange.Unprocessable("unknown_agent", "there's no agent %.80q; did you mean %q?", name, toAgent+":"+near)
	}
	return exchange.Unprocessable("unknown_agent", "there's no agent %.80q; the agents are %s", name, strings.Join(names, ", "))
}

// postToAgent accepts a message to an agent. The outbox records it like a message to people, so that its key and
// its id have the same meaning.
func (a messages) postToAgent(w *exchange.Answer, r *http.Request, agent string, m message, said outbox.Request) error {
	switch {
	case len(m.to) > 1:
		return exchange.Unprocessable("agent_alone", "a message to an agent can't have other recipients: send them a separate message")
	case m.file != nil || m.key != "" || !m.expires.IsZero() || m.urgent:
		return exchange.Unprocessable("not_for_agent", `"file", "key", "expires" and "urgent" are only for messages to people; a message to an agent can have "files"`)
	case strings.TrimSpace(m.text) == "" && len(m.files) == 0:
		return exchange.Unprocessable("empty", "there's nothing to say: give some text")
	}
	agent, at, from, err := a.agentPlace(w.Caller, agent, m)
	if err != nil {
		return err
	}
	if err := a.checkAgent(agent); err != nil {
		return err
	}
	session, err := sessions.Key(agent, at.Channel, at.Chat, at.Thread)
	if err != nil {
		return exchange.Unprocessable("bad_session", "%v", err)
	}
	p, err := a.out.Record(r.Context(), said, a.recordedTo(agent, at))
	if err != nil {
		return err
	}
	w.ID = p.ID
	in := bus.Inbound{ID: p.ID, From: from, At: at, Text: m.text, SentAt: p.At}
	if len(m.files) > 0 { // make them durable before the message that names them
		if in.Attachments, err = a.agent.Keep(r.Context(), session, p.ID, m.files); err != nil {
			return err
		}
	}
	if err := a.agent.Say(r.Context(), session, in); err != nil {
		return err
	}
	return w.JSON(http.StatusAccepted, struct {
		ID      string `json:"id"`
		Session string `json:"session"`
	}{p.ID, session})
}

// recordedTo returns the destinations under which the outbox records a message to an agent: the address at which the
// caller talks to it and, if it is not the main agent, a second address that names the agent.
func (a messages) recordedTo(agent string, at bus.Address) []bus.Address {
	to := []bus.Address{at}
	if agent != a.agent.Name {
		to = append(to, bus.Address{Channel: toAgent, Chat: agent})
	}
	return to
}

// agentPlace returns the agent, the address at which a caller talks to it, and the person as whom the caller speaks
// there. A session is given by its name, or by its key, which also names the agent; nobody can talk in somebody
// else's session.
func (a messages) agentPlace(c exchange.Caller, agent string, m message) (string, bus.Address, bus.Person, error) {
	refuse := func(err error) (string, bus.Address, bus.Person, error) {
		return "", bus.Address{}, bus.Person{}, err
	}
	if m.session != "" && !isSessionName(m.session) {
		return refuse(badSessionName())
	}
	at, from := web.Address(c.Name, m.session), bus.Person{ID: web.Person(c.Name), Name: c.Name, Owner: c.Owner}
	if c.Local {
		from.ID, from.Name = console.Owner, ""
		at = bus.Address{Channel: console.Name, Chat: cmp.Or(m.session, defaultSession)}
	}
	if !strings.Contains(m.session, ":") {
		return agent, at, from, nil
	}
	key, err := parseKey(m.session)
	if err != nil {
		return refuse(exchange.Unprocessable("bad_session", "%v", err))
	}
	for _, part := range []string{key.at.Chat, key.at.Thread} {
		if part != "" && !isSessionName(part) {
			return refuse(badSessionName())
		}
	}
	if key.user != "" {
		return refuse(badSessionName()) // no token has such a session
	}
	if !key.belongsTo(c) {
		return refuse(exchange.Forbidden("this session belongs to somebody else: give a name to use a session of your own"))
	}
	if m.to[0] != toAgent && key.agent != agent {
		return refuse(exchange.Unprocessable("other_agent", "this session belongs to the agent %s: write \"to\": %q", key.agent, toAgent+":"+key.agent))
	}
	if key.at.Channel == console.Name {
		from.ID, from.Name = console.Owner, ""
	} else {
		from.ID, from.Name = web.Person(c.Name), c.Name
	}
	return key.agent, key.at, from, nil
}

// isSessionName reports whether a text can be a session's name. It must not look like any other name, or like a
// path: the worker derives the session's key and folder from the message's address.
func isSessionName(name string) bool {
	return bus.IsClean(name) && !markup.IsBlank(name) && name != "." && name != ".." && !strings.ContainsAny(name, `/\`)
}

func badSessionName() *exchange.Refusal {
	return exchange.Unprocessable("bad_session", `"session" must be a name without control characters or slashes, or a session's key`)
}

// get answers with the state of a message. Callers who may not read everything see only their own messages, as if
// there were no others.
func (a messages) get(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	p, err := a.out.Find(r.Context(), w.ID)
	if err != nil {
		return err
	}
	if !w.Caller.MayReadAll() && p.Origin != w.Caller.Name {
		return channels.ErrNoSend
	}
	if session, ok := a.agentSessionOf(p); ok {
		return a.getAgentMessage(r.Context(), w, p, session)
	}
	s, err := a.out.State(r.Context(), p.ID)
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, s)
}

// agentSessionOf returns the session of a message to an agent; false if the message was for people.
func (a messages) agentSessionOf(p channels.Submission) (session string, ok bool) {
	if len(p.Destinations) == 0 {
		return "", false
	}
	at, agent := p.Destinations[0], a.agent.Name
	if len(p.Destinations) == 2 && p.Destinations[1].Channel == toAgent { // see recordedTo
		agent = p.Destinations[1].Chat
	}
	if at.Channel == web.Name || at.Channel == console.Name {
		session, err := sessions.Key(agent, at.Channel, at.Chat, at.Thread)
		return session, err == nil
	}
	if a.agent.Event == nil {
		return "", false
	}
	return a.agent.Event(at)
}

// getAgentMessage answers with the state of a message to an agent: it counts as sent once it is in its session's
// log, that is, once the agent has begun with it.
func (a messages) getAgentMessage(ctx context.Context, w *exchange.Answer, p channels.Submission, session string) error {
	at := p.Destinations[0]
	d := outbox.Destination{Address: at.String(), State: channels.Queued, At: p.At}
	e, err := a.log.Find(ctx, session, p.ID)
	switch {
	case err == nil:
		d.State, d.At = channels.Sent, e.At
	case !errors.Is(err, sessions.ErrNotFound):
		return err
	}
	return w.JSON(http.StatusOK, struct {
		outbox.Status
		Session string `json:"session"`
	}{outbox.Status{ID: p.ID, Destinations: []outbox.Destination{d}}, session})
}
