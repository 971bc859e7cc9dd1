package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"parley/agent/attached"
	"parley/agent/journal"
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

	cmdApprove, cmdDeny, cmdAnswer = "approve", "deny", "answer" // of an ask, by its id; the last with words
)

// Codes of notices, by which the log remembers why they were given.
const (
	noticeDelivery   = "delivery" // of what the session had said
	noticeLastStep   = "last_step"
	noticeUnsendable = "unsendable" // the turn's answer is one that no bus takes
	noticeRepeated   = "repeated_call"
	noticeJob        = "job"   // that ran in the background has ended; it may begin a turn
	noticeFiles      = "files" // that the turn's answer shows cannot be sent
	codeGaveUp       = "gave_up"
	// codeRepeated marks the result of a call that was refused because it had
	// been made too often.
	codeRepeated = string(tools.PermissionDenied)
)

// A turn is what its entries say: nothing of it is remembered elsewhere, so whoever
// goes on with it after a crash knows as much as whoever began it.
type turn struct {
	id         string
	person     string
	personName string // as the platform has it
	scheduled  bool   // a schedule has said it, and nobody just now
	route      route
	started    time.Time

	causes     []string // the messages that it answers
	steps      []step
	modelCalls int  // model calls whose answer is written
	summaries  int  // since the last of them, of a part of what the model was shown
	blocks     int  // thinking, text and tool_use blocks so far
	resumes    int  // since the last answer or result
	givenUp    bool // it was cut off too often
	unsendable bool // what it says can never be sent
	lastStep   bool // the model was told that it is to conclude
	stopped    bool // somebody said /stop
	done       *sessions.TurnDone
	published  bool // what it says is on the bus

	files attached.Files // that came with its messages

	asks      []*ask // of the step that has parked it last
	parked    bool   // it waits for at least one of them
	announced bool   // people were asked
	parkedAt  time.Time
	parkedFor time.Duration   // in all, as far as it is over
	meanwhile map[string]bool // the messages that came while it waited

	firstEntry int64 // the number of its first entry
	resumed    bool  // since the last answer
	suspended  bool
}

// A step is one answer of the model and what came of the calls it asked for.
type step struct {
	calls []*call
}

// A call is one tool call of a turn.
type call struct {
	id       string
	use      sessions.ToolUse
	asked    int64 // the number of its entry
	attempts int   // that were started
	// What the last attempt was started with, where it was not what the model wrote.
	started sessions.ToolStarted
	ask     *ask // what people were asked about it
	result  *sessions.ToolResult
}

func (c *call) key(turn string) string { return turn + "#" + c.id }

// An ask is what a parked turn waits for, or has waited for.
type ask struct {
	sessions.Ask
	call  *call
	ended *sessions.AskEnded // nil while it is open
	by    string             // who answered
}

// approved tells whether somebody has approved the call.
func (a *ask) approved() bool {
	return a != nil && a.ended != nil && a.Kind == bus.AskApproval && a.ended.State == bus.AskAnswered && a.ended.Answer != bus.Deny
}

// turnedDown tells whether people were asked and the call did not run: they denied it, or
// nobody answered.
func (a *ask) turnedDown() bool {
	return a != nil && a.ended != nil && (a.ended.State != bus.AskAnswered || a.Kind == bus.AskApproval && a.ended.Answer == bus.Deny)
}

// fold makes a turn of the entries that belong to it.
func fold(id string, records []journal.Record) (*turn, error) {
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
		if err := t.apply(r, calls); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// apply takes in one more entry of the turn.
func (t *turn) apply(r journal.Record, calls map[string]*call) error {
	switch d := r.Data.(type) {
	case sessions.TurnStarted:
		t.person, t.started, t.firstEntry = r.Person, r.At, r.N
		if err := json.Unmarshal(d.Route, &t.route); err != nil {
			return fmt.Errorf("decode the route of turn %s: %w", t.id, err)
		}
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
		if len(t.steps) == t.modelCalls {
			t.steps = append(t.steps, step{})
		}
		last := &t.steps[len(t.steps)-1]
		last.calls = append(last.calls, c)
	case sessions.Usage:
		if len(t.steps) == t.modelCalls {
			t.steps = append(t.steps, step{})
		}
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
		if d.Code == noticeJob {
			t.causes = append(t.causes, r.Cause)
		}
		t.lastStep = t.lastStep || d.Code == noticeLastStep
		t.givenUp = t.givenUp || d.Code == codeGaveUp
		t.unsendable = t.unsendable || d.Code == noticeUnsendable
	case sessions.TurnParked:
		t.park(r, d, calls)
	case sessions.AskEnded:
		t.askEnded(r, d)
	case sessions.TurnDone:
		t.done, t.parked = &d, false
	}
	t.files.Apply(r)
	t.applyMark(r)
	return nil
}

// applyMark takes in an entry that has no data.
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
		t.parkedFor += r.At.Sub(t.parkedAt)
	case sessions.KindPublished:
		if t.parked {
			t.announced = true
		} else {
			t.published = true
		}
	}
}

// askEnded notes how something that the turn waits for has ended.
func (t *turn) askEnded(r journal.Record, d sessions.AskEnded) {
	for _, a := range t.asks {
		if a.ID == d.Ask {
			a.ended, a.by = &d, r.Person
		}
	}
	if r.Cause != d.Ask { // somebody's words were the answer
		t.causes = append(t.causes, r.Cause)
	}
}

// park notes what the turn waits for from now on. The calls begin anew once it goes on.
func (t *turn) park(r journal.Record, d sessions.TurnParked, calls map[string]*call) {
	t.parked, t.announced, t.parkedAt, t.asks = true, false, r.At, nil
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

// openAsks are those that nobody has answered.
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

// unfinished lists the turns that have not ended, or have not published what
// they are to publish, in the order of their beginning.
func unfinished(records []journal.Record) []string {
	var ids []string
	open, done := map[string]bool{}, map[string]bool{}
	for _, r := range records {
		switch d := r.Data.(type) {
		case sessions.TurnStarted:
			ids = append(ids, r.Turn)
			open[r.Turn] = true
		case sessions.TurnDone:
			open[r.Turn], done[r.Turn] = len(d.Outbound) > 0, true
		}
		if r.Kind == sessions.KindPublished && done[r.Turn] { // else it was a question of a turn that waits
			open[r.Turn] = false
		}
	}
	kept := ids[:0]
	for _, id := range ids {
		if open[id] {
			kept = append(kept, id)
		}
	}
	return kept
}

// openCalls lists the calls of the last step that have no result yet.
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

// failedSteps counts the last steps in a row in which every call failed. Those in which
// people decided about every call are passed over: a denial is no failure, and no success.
func (t *turn) failedSteps() int {
	n := 0
	for i := len(t.steps) - 1; i >= 0; i-- {
		failed, undecided := t.steps[i].failed()
		if !failed && undecided {
			break
		}
		if failed {
			n++
		}
	}
	return n
}

// failed tells whether every call of a step failed, of those about which people did not
// decide; undecided is whether there are any.
func (s step) failed() (failed, undecided bool) {
	for _, c := range s.calls {
		if c.ask.turnedDown() {
			continue
		}
		undecided = true
		if c.result == nil || c.result.Code == "" || c.result.Code == string(tools.Cancelled) {
			return false, true
		}
	}
	return undecided, undecided || len(s.calls) == 0
}

// repeats counts the calls like this one whose results were all the same, those
// that were refused for being repeated included.
func (t *turn) repeats(like *call) int {
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

// waited is how long a turn has waited so far.
func (t *turn) waited() time.Duration {
	if t.parked {
		return t.parkedFor + time.Since(t.parkedAt)
	}
	return t.parkedFor
}
