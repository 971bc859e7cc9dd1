package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agent/attached"
	"parley/agent/delegation"
	"parley/agent/journal"
	"parley/agent/route"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// The commands that an agent carries out. The gateway recognises them.
const (
	cmdNew     = "new"
	cmdStop    = "stop"
	cmdStatus  = "status"
	cmdHelp    = "help"
	cmdForget  = "forget"
	cmdExport  = "export"
	cmdMemory  = "memory"
	cmdLink    = "link"
	cmdUsage   = "usage"
	cmdCompact = "compact"
	cmdContext = "context"
)

// Codes of notices, by which the log records their reasons.
const (
	noticeDelivery   = "delivery" // about the delivery of what the session had said
	noticeLastStep   = "last_step"
	noticeUnsendable = "unsendable" // no bus accepts the turn's answer
	noticeRepeated   = "repeated_call"
	noticeJob        = "job"   // a job in the background has ended; may begin a turn
	noticeFiles      = "files" // files that the turn's answer shows cannot be sent
	codeGaveUp       = "gave_up"
	// codeRepeated marks the result of a call that was refused because it was repeated too
	// often.
	codeRepeated = string(tools.PermissionDenied)
)

// A turn is the state of a turn, made from its entries alone. Nothing of it is stored
// elsewhere: a process that continues it after a crash knows as much as the one that
// began it.
type turn struct {
	id         string
	person     string
	personName string // the person's name on the platform
	scheduled  bool   // a schedule began the turn, and nobody speaks
	route      route.Route
	started    time.Time

	causes     []string // ids of the messages that the turn answers
	steps      []step
	modelCalls int                // model calls whose answer is written
	summaries  int                // summaries of parts of the past, since the last model call
	blocks     int                // thinking, text and tool_use blocks so far
	resumes    int                // how often it was resumed after a crash, since the last answer or result
	givenUp    bool               // it was cut off too often
	unsendable bool               // the turn's answer can never be sent
	lastStep   bool               // the model was told that this is its last step
	stopped    bool               // somebody said /stop
	done       *sessions.TurnDone // the turn's end; nil while it goes on
	ended      time.Time
	published  bool // the turn's replies are on the bus

	tasks []sessions.Tasked // that the turn is to report on; nil if it is no sub-agent's
	files attached.Files    // the files that came with the turn's messages

	asks      []*ask // of the step that has parked the turn last
	parked    bool   // the turn waits for at least one of the asks
	announced bool   // people were asked
	parkedAt  time.Time
	parkedFor time.Duration   // total of the waits that are over
	meanwhile map[string]bool // the messages that came while it waited

	firstEntry int64 // the number of the turn's first entry
	resumed    bool  // resumed since the last answer
	suspended  bool  // it stopped in good order, so that its next resume follows no crash
}

// A step is one answer of the model with its calls.
type step struct {
	calls []*call
}

// A call is one tool call of a turn.
type call struct {
	id       string
	use      sessions.ToolUse
	asked    int64 // the number of the call's entry
	attempts int   // number of attempts that were started
	// The start of the last attempt. It has arguments if they are not those that the model
	// wrote.
	started sessions.ToolStarted
	ask     *ask // the ask to people about the call; nil if there is none
	// delegated is the task for which the turn waits, or has waited.
	delegated sessions.Delegated
	result    *sessions.ToolResult
}

// key returns the call's key: the turn's id and the call's.
func (c *call) key(turn string) string { return turn + "#" + c.id }

// An ask is an ask that a parked turn waits for, or has waited for.
type ask struct {
	sessions.Ask
	call  *call
	ended *sessions.AskEnded // nil while it is open
	by    string             // the person who answered
}

// isApproved reports whether somebody has approved the call.
func (a *ask) isApproved() bool {
	return a != nil && a.ended != nil && a.Kind == bus.AskApproval && a.ended.State == bus.AskAnswered && a.ended.Answer != bus.Deny
}

// isTurnedDown reports whether people were asked and the call did not run, because they
// denied it or nobody answered.
func (a *ask) isTurnedDown() bool {
	return a != nil && a.ended != nil && (a.ended.State != bus.AskAnswered || a.Kind == bus.AskApproval && a.ended.Answer == bus.Deny)
}

// fold makes the state of a turn from the entries that belong to it. Where the turn's replies go is
// decoded unless it is known already.
func fold(id string, records []journal.Record, known *route.Route) (*turn, error) {
	t := &turn{id: id}
	calls := map[string]*call{}
	for _, r := range records {
		if c, ok := r.Data.(sessions.Command); ok {
			t.stopped = t.stopped || c.Name == cmdStop && t.firstEntry > 0
			continue
		}
		if r.Turn != id {
			continue
		}
		if d, ok := r.Data.(sessions.TurnStarted); ok {
			if known == nil {
				known = new(route.Route)
				if err := json.Unmarshal(d.Route, known); err != nil {
					return nil, fmt.Errorf("decode the route of turn %s: %w", id, err)
				}
			}
			t.route = *known
		}
		t.apply(r, calls)
	}
	return t, nil
}

// apply updates the turn by its next entry in the log. calls has the turn's calls so far,
// by their ids, and gets those that the entry brings.
func (t *turn) apply(r journal.Record, calls map[string]*call) {
	switch d := r.Data.(type) {
	case sessions.TurnStarted:
		t.person, t.started, t.firstEntry = r.Person, r.At(), r.N
	case sessions.User:
		t.causes = append(t.causes, r.Cause)
		if t.parked {
			t.meanwhile[r.Cause] = true
		}
		if t.personName == "" {
			t.personName = d.Name
		}
		t.scheduled = t.scheduled || d.Schedule != ""
	case sessions.Thinking, sessions.Text:
		t.blocks++
	case sessions.ToolUse:
		t.blocks++
		c := &call{id: r.Call, use: d, asked: r.N}
		calls[r.Call] = c
		last := t.openStep()
		last.calls = append(last.calls, c)
	case sessions.Usage:
		t.openStep()
		t.modelCalls++
		t.resumes, t.resumed, t.summaries = 0, false, 0
	case sessions.Summary:
		t.summaries++
	case sessions.ToolStarted:
		if c := calls[r.Call]; c != nil {
			c.attempts, c.started = d.Attempt, d
		}
	case sessions.ToolResult:
		if c := calls[r.Call]; c != nil {
			c.result = &d
		}
		t.resumes = 0
	case sessions.Notice:
		if d.Code == noticeJob || d.Code == delegation.NoticeReport {
			t.causes = append(t.causes, r.Cause)
		}
		t.lastStep = t.lastStep || d.Code == noticeLastStep
		t.givenUp = t.givenUp || d.Code == codeGaveUp
		t.unsendable = t.unsendable || d.Code == noticeUnsendable
	case sessions.TurnParked:
		t.applyParked(r, d, calls)
	case sessions.AskEnded:
		t.applyAskEnded(r, d)
	case sessions.TurnDone:
		t.done, t.ended, t.parked = &d, r.At(), false
	}
	t.applyTask(r, calls)
	t.files.Apply(r)
	t.applyMark(r)
}

// applyTask updates the turn by an entry about what is handed to sub-agents.
func (t *turn) applyTask(r journal.Record, calls map[string]*call) {
	switch d := r.Data.(type) {
	case sessions.Tasked:
		t.tasks = append(t.tasks, d)
	case sessions.Delegated:
		if c := calls[r.Call]; c != nil {
			c.delegated = d
		}
	}
}

// openStep returns the step whose model call has not ended yet, and begins it if needed.
func (t *turn) openStep() *step {
	if len(t.steps) == t.modelCalls {
		t.steps = append(t.steps, step{})
	}
	return &t.steps[len(t.steps)-1]
}

// hasCalls reports whether the model has asked for any tool call.
func (t *turn) hasCalls() bool {
	return slices.ContainsFunc(t.steps, func(s step) bool { return len(s.calls) > 0 })
}

// applyMark updates the turn by an entry without data.
func (t *turn) applyMark(r journal.Record) {
	switch r.Kind {
	case sessions.KindSuspended:
		t.suspended = true
	case sessions.KindResumed:
		if !t.suspended {
			t.resumes++
		}
		t.suspended, t.resumed = false, true
	case sessions.KindTurnUnparked:
		t.parked, t.resumes = false, 0
		t.parkedFor += r.At().Sub(t.parkedAt)
	case sessions.KindPublished:
		if t.parked {
			t.announced = true
		} else {
			t.published = true
		}
	}
}

// applyAskEnded records how an ask of the turn has ended.
func (t *turn) applyAskEnded(r journal.Record, d sessions.AskEnded) {
	for _, a := range t.asks {
		if a.ID == d.Ask {
			a.ended, a.by = &d, r.Person
		}
	}
	if r.Cause != d.Ask { // the answer was a message
		t.causes = append(t.causes, r.Cause)
	}
}

// applyParked records what the turn waits for from now on. The calls begin anew when it
// continues.
func (t *turn) applyParked(r journal.Record, d sessions.TurnParked, calls map[string]*call) {
	t.parked, t.announced, t.parkedAt, t.asks = true, false, r.At(), nil
	if t.meanwhile == nil {
		t.meanwhile = map[string]bool{}
	}
	for _, of := range d.Asks {
		c := calls[of.Call]
		if c == nil {
			continue
		}
		c.ask, c.attempts, c.started = &ask{Ask: of, call: c}, 0, sessions.ToolStarted{}
		t.asks = append(t.asks, c.ask)
	}
}

// openAsks returns the asks that the turn waits for.
func (t *turn) openAsks() []*ask {
	var open []*ask
	if !t.parked {
		return nil
	}
	for _, a := range t.asks {
		if a.ended == nil {
			open = append(open, a)
		}
	}
	return open
}

// openCalls returns the calls of the last step that have no result yet.
func (t *turn) openCalls() []*call {
	if len(t.steps) == 0 {
		return nil
	}
	var open []*call
	for _, c := range t.steps[len(t.steps)-1].calls {
		if c.result == nil {
			open = append(open, c)
		}
	}
	return open
}

// countFailedSteps counts the latest consecutive steps in which every call failed. It
// passes over steps in which people decided about every call, because a denial is
// neither a failure nor a success.
func (t *turn) countFailedSteps() int {
	n := 0
	for i := len(t.steps) - 1; i >= 0; i-- {
		failed, undecided := t.steps[i].allFailed()
		if !failed && undecided {
			break
		}
		if failed {
			n++
		}
	}
	return n
}

// allFailed reports whether all calls of a step failed, apart from those that people
// turned down. undecided reports whether there are any others, or no calls at all.
func (s step) allFailed() (failed, undecided bool) {
	for _, c := range s.calls {
		if c.ask.isTurnedDown() {
			continue
		}
		undecided = true
		if c.result == nil || c.result.Code == "" || c.result.Code == string(tools.Cancelled) {
			return false, true
		}
	}
	return undecided, undecided || len(s.calls) == 0
}

// countRepeats counts the calls like this one that all had the same result. It includes
// those that were refused as repeated.
func (t *turn) countRepeats(like *call) int {
	var latest *sessions.ToolResult
	n := 0
	for i := len(t.steps) - 1; i >= 0; i-- {
		for _, c := range t.steps[i].calls {
			if c == like || c.result == nil || c.use.Name != like.use.Name || string(c.use.Args) != string(like.use.Args) {
				continue
			}
			if c.result.Code == codeRepeated {
				n++
				continue
			}
			if latest == nil {
				latest = c.result
			}
			if string(c.result.Content) == string(latest.Content) {
				n++
			}
		}
	}
	return n
}

// waitingTime returns how long the turn has waited for people so far.
func (t *turn) waitingTime() time.Duration {
	if t.parked {
		return t.parkedFor + time.Since(t.parkedAt)
	}
	return t.parkedFor
}

// parent returns the key of the session for which the turn of a sub-agent works; "" for
// other turns.
func (t *turn) parent() string {
	if len(t.tasks) == 0 {
		return ""
	}
	return t.tasks[0].Parent
}

// replyText returns the text of all the turn's replies.
func (t *turn) replyText() string {
	var texts []string
	for _, r := range t.done.Outbound {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "\n\n")
}
