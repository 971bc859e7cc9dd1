// Package spans describes a turn as spans of a trace, for operators who look at where its time went.
//
// All spans are made from the turn's entries in the log, and have ids that are made from theirs. So they are the same
// whichever process makes them, and however often: after a crash, the next process makes those that the killed one had
// no time to send.
package spans

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"parley/agent"
	"parley/agent/journal"
	"parley/agent/turn"
	"parley/bus/trace"
	"parley/sessions"
	"parley/sessions/subagents"
	"parley/tools"
)

// Of returns the spans of an agent's turn that have ended with an entry after number n. records are those of the turn,
// among others; session is the key of its session.
func Of(a *agent.Agent, session string, t *turn.Turn, records []journal.Record, n int64, detail trace.Detail) []trace.Span {
	w := &walk{agent: a, session: session, turn: t, trace: trace.Of(t.ID), afterEntry: n, texts: detail == trace.Texts, requestReadyAt: t.Started, calls: map[string]*call{}, asks: map[string]*ask{}}
	for i := range records {
		if records[i].Turn == t.ID {
			w.apply(&records[i])
		}
	}
	return w.ended
}

// RecordedUpTo returns the number of the entry up to which earlier holders of the turn have certainly recorded its
// spans: the entry with which it began to wait, after people were asked, or was suspended. It is 0 if there is none.
func RecordedUpTo(t *turn.Turn, records []journal.Record) (n int64) {
	parked := int64(0)
	for i := range records {
		r := &records[i]
		if r.Turn != t.ID {
			continue
		}
		switch r.Kind {
		case sessions.KindSuspended:
			n = r.N
		case sessions.KindTurnParked:
			parked = r.N
		case sessions.KindPublished:
			n = max(n, parked)
		}
	}
	return n
}

// A walk goes through the entries of a turn.
type walk struct {
	agent      *agent.Agent
	session    string
	turn       *turn.Turn
	trace      trace.ID
	afterEntry int64
	texts      bool

	requestReadyAt time.Time        // when everything that the next request needs was there
	step           string           // the number of the entry that ends the current step's answer; "" before the first answer
	stepBegan      time.Time        // when the current step began
	openCalls      int              // calls of the current step without a result
	calls          map[string]*call // by id
	answerCalls    []*call          // the calls in the answer whose entries are being read
	asks           map[string]*ask  // the open ones, by id
	events         []trace.Event    // events of the turn

	said, replied string
	ended         []trace.Span
}

// A call is a tool call of the turn.
type call struct {
	id       string
	use      sessions.ToolUse
	step     string
	began    time.Time
	attempts int
	needsAsk bool   // whether people were asked about it before it ran
	task     string // the id of the task that the call has handed to a sub-agent; "" for none
}

// An ask is what the turn waits for.
type ask struct {
	sessions.Ask
	began time.Time
}

// add adds a span that ends with record r.
func (w *walk) add(r *journal.Record, s trace.Span) {
	if r.N <= w.afterEntry {
		return
	}
	s.Trace, s.End = w.trace, r.At()
	if s.Kind == 0 {
		s.Kind = trace.Internal
	}
	w.ended = append(w.ended, s)
}

// apply processes the next entry of the turn.
func (w *walk) apply(r *journal.Record) {
	switch d := r.Data.(type) {
	case sessions.Thinking, sessions.Text: // part of an answer, whose usage comes last
		return
	case sessions.ToolUse:
		c := &call{id: r.Call, use: d, began: r.At()}
		w.calls[r.Call], w.answerCalls = c, append(w.answerCalls, c)
		return
	case sessions.Usage:
		w.answered(r, d)
		return
	case sessions.ToolStarted:
		w.started(r, d)
		return
	case sessions.Delegated:
		if c := w.calls[r.Call]; c != nil {
			c.task = d.ID
		}
		return
	case sessions.ToolResult:
		w.resulted(r, d)
	case sessions.TurnParked:
		w.park(r, d)
	case sessions.AskEnded:
		w.decided(r, d)
	case sessions.TurnDone:
		w.done(r, d)
	case sessions.User:
		w.said = cmp.Or(w.said, d.Text)
	}
	switch r.Kind {
	case sessions.KindTurnStarted:
		w.begun(r)
	case sessions.KindSuspended, sessions.KindResumed, sessions.KindTurnParked, sessions.KindTurnUnparked:
		w.events = append(w.events, trace.Event{Name: string(r.Kind), At: r.At()})
	}
	w.requestReadyAt = r.At()
}

// begun adds the span of the time that the turn's first message waited.
func (w *walk) begun(r *journal.Record) {
	received := w.turn.Route.Received
	if received.IsZero() {
		return
	}
	w.add(r, trace.Span{ID: w.trace.Span("wait", w.turn.ID), Parent: w.trace.Receipt(), Name: "wait in the mailbox", Start: received})
}

// started records an attempt of a call. The call's span begins with the first attempt, or when people were asked
// before.
func (w *walk) started(r *journal.Record, d sessions.ToolStarted) {
	c := w.calls[r.Call]
	if c == nil {
		return
	}
	if c.attempts == 0 && !c.needsAsk {
		c.began = r.At()
	}
	c.attempts = max(c.attempts, d.Attempt)
}

// answered adds the span of the request whose answer ends with an entry. Without calls it is a step of its own.
func (w *walk) answered(r *journal.Record, d sessions.Usage) {
	w.step, w.stepBegan, w.openCalls = strconv.FormatInt(r.N, 10), w.requestReadyAt, len(w.answerCalls)
	for _, c := range w.answerCalls {
		c.step = w.step
	}
	w.answerCalls = nil
	attributes := []trace.Attribute{
		trace.Text("gen_ai.operation.name", "chat"), trace.Text("gen_ai.request.model", d.Model),
		trace.Number("gen_ai.usage.input_tokens", d.Input), trace.Number("gen_ai.usage.output_tokens", d.Output),
		trace.Number("gen_ai.usage.cache_read.input_tokens", d.Cached),
	}
	if d.Cost != nil {
		attributes = append(attributes, trace.Number("parley.microdollars", *d.Cost))
	}
	w.add(r, trace.Span{
		ID: w.trace.Span("model", w.turn.ID, w.step), Parent: w.stepID(), Name: "chat " + d.Model, Kind: trace.Client, Start: w.requestReadyAt, Attributes: attributes,
	})
	w.endStep(r)
}

func (w *walk) stepID() trace.SpanID { return w.trace.Span("step", w.turn.ID, w.step) }

// endStep adds the span of the current step if none of its calls is open.
func (w *walk) endStep(r *journal.Record) {
	if w.openCalls == 0 && w.step != "" {
		w.add(r, trace.Span{ID: w.stepID(), Parent: w.trace.Turn(w.turn.ID), Name: "step", Start: w.stepBegan})
	}
	w.requestReadyAt = r.At()
}

// callID returns the id of a call's span.
func (w *walk) callID(call string) trace.SpanID { return w.trace.Span("call", w.turn.ID, call) }

// resulted adds the span of a call that has its result.
func (w *walk) resulted(r *journal.Record, d sessions.ToolResult) {
	c := w.calls[r.Call]
	if c == nil || c.step == "" {
		return
	}
	delete(w.calls, r.Call)
	if r.N > w.afterEntry { // otherwise all earlier calls would be described again at each step
		w.addCall(r, d, c)
	}
	w.openCalls--
	w.endStep(r)
}

func (w *walk) addCall(r *journal.Record, d sessions.ToolResult, c *call) {
	name := w.agent.ToolName(c.use.Name)
	attributes := []trace.Attribute{
		trace.Text("gen_ai.operation.name", "execute_tool"), trace.Text("gen_ai.tool.name", name), trace.Text("gen_ai.tool.call.id", c.id),
		trace.Text("parley.effect", w.effect(c)), trace.Number("parley.attempts", c.attempts),
	}
	if w.texts {
		attributes = append(attributes, trace.Text("gen_ai.tool.call.arguments", string(w.json(c.use.Args))), trace.Text("gen_ai.tool.call.result", string(w.json(d.Content))))
	}
	w.add(r, trace.Span{
		ID: w.callID(c.id), Parent: w.trace.Span("step", w.turn.ID, c.step), Name: "tool " + name, Start: c.began, Failed: d.Code, Attributes: attributes,
	})
}

// effect returns the effect of a call; "" if the agent doesn't have the tool.
func (w *walk) effect(c *call) string {
	if w.agent.Tools == nil {
		return ""
	}
	tool, known := w.agent.Tools.Lookup(c.use.Name)
	if !known {
		return ""
	}
	if c.attempts == 0 { // its arguments may not be valid
		return string(tool.Spec().Effect)
	}
	return string(tools.EffectOf(tool, tools.Call{Name: c.use.Name, ID: c.id, Args: c.use.Args, Session: w.session, Turn: w.turn.ID}))
}

// park begins the spans of the turn's waits.
func (w *walk) park(r *journal.Record, d sessions.TurnParked) {
	for _, of := range d.Asks {
		one := &ask{Ask: of, began: r.At()}
		if c := w.calls[of.Call]; c != nil && c.attempts == 0 {
			c.began, c.needsAsk = r.At(), true
		}
		w.asks[of.ID] = one
	}
}

// decided adds the span of the time that the turn waited for a person, a sub-agent or a node.
func (w *walk) decided(r *journal.Record, d sessions.AskEnded) {
	a := w.asks[d.Ask]
	if a == nil {
		return
	}
	delete(w.asks, d.Ask)
	s := trace.Span{
		ID: w.trace.Span("ask", w.turn.ID, a.ID), Parent: w.callID(a.Call), Name: "wait for a person", Start: a.began,
		Attributes: []trace.Attribute{trace.Text("parley.ask", a.ID), trace.Text("parley.ask.kind", a.Kind), trace.Text("parley.ask.state", d.State)},
	}
	if a.Kind == sessions.AskTask {
		s.Name = "wait for a sub-agent"
		if c := w.calls[a.Call]; c != nil {
			of := subagents.MailID(c.task)
			s.Links = []trace.Link{{Trace: trace.Of(of), Span: trace.Of(of).Turn(of)}}
		}
	}
	if a.Kind == sessions.AskNode {
		s.Name = "wait for a node"
		s.Attributes = append(s.Attributes, trace.Text("parley.node", a.Node))
	}
	w.add(r, s)
}

// done adds the span of the turn.
func (w *walk) done(r *journal.Record, d sessions.TurnDone) {
	t := w.turn
	s := trace.Span{
		ID: w.trace.Turn(t.ID), Name: "turn", Start: t.Started, Events: w.events,
		Attributes: []trace.Attribute{
			trace.Text("gen_ai.operation.name", "invoke_agent"), trace.Text("gen_ai.agent.name", w.agent.Name), trace.Text("gen_ai.conversation.id", w.session),
			trace.Text("parley.turn", t.ID), trace.Text("parley.state", d.State), trace.Number("parley.messages", len(t.Causes)),
			trace.Text("parley.parent", t.Parent()),
		},
	}
	if !t.Route.Received.IsZero() {
		s.Parent = w.trace.Receipt()
	}
	if d.State == sessions.TurnFailed {
		s.Failed = cmp.Or(d.Code, d.State)
	}
	for _, cause := range t.Causes {
		if of := trace.Of(cause); of != w.trace {
			s.Links = append(s.Links, trace.Link{Trace: of, Span: of.Receipt()})
		}
	}
	if w.texts {
		for _, reply := range d.Outbound {
			w.replied = cmp.Or(w.replied, reply.Text)
		}
		s.Attributes = append(s.Attributes, trace.Text("parley.said", w.text(w.said)), trace.Text("parley.replied", w.text(w.replied)))
	}
	w.add(r, s)
}

// text returns a text without secrets.
func (w *walk) text(text string) string {
	if w.agent.Redact == nil {
		return text
	}
	return w.agent.Redact.Text(text)
}

// json returns a JSON value without secrets.
func (w *walk) json(raw json.RawMessage) json.RawMessage {
	if w.agent.Redact == nil {
		return raw
	}
	return w.agent.Redact.JSON(raw)
}
