// Package turn holds the state of a turn. turn.go makes it from the turn's entries in a session's log;
// session.go holds what all code that works on a session's turns shares.
package turn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agent/attached"
	"parley/agent/blocks"
	"parley/agent/journal"
	"parley/agent/route"
	"parley/agent/task"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// CommandStop is the command that stops a session's turns.
const CommandStop = "stop"

// Codes that say in the log what a notice is for.
const (
	NoticeLastStep   = "last_step"
	NoticeUnsendable = "unsendable" // no bus accepts the turn's answer
	NoticeJob        = "job"        // a background job has ended; may begin a turn
	CodeGaveUp       = sessions.CodeGaveUp
	// CodeRepeated is the code of a call's result if the call was refused because it was repeated too often.
	// Calls that were denied for other reasons have the same code.
	CodeRepeated = string(tools.PermissionDenied)
)

// A Turn is the state of a turn, made only from its entries. None of it is stored elsewhere: a process that
// continues the turn after a crash knows as much as the one that began it.
type Turn struct {
	ID            string
	Person        string
	PersonName    string // the person's name on the platform
	Scheduled     bool   // the turn was begun by a schedule, and no person is speaking
	Route         route.Route
	Started       time.Time
	answersPerson bool      // the turn answers a person's message, rather than a program's
	SaidAt        time.Time // when the first message was sent, as its platform says; zero if it doesn't

	Causes       []string // ids of the messages that the turn answers
	Steps        []step
	ModelCalls   int                // model calls whose answer is in the log
	FirstMS      int64              // milliseconds until the first text; 0 if there was none yet
	Summaries    int                // summaries of parts of the past since the last model call
	Blocks       blocks.Numbering   // numbers what watchers are shown
	Resumes      int                // how often it was resumed after a crash since the last answer or result
	GivenUp      bool               // it was cut off too often
	Unsendable   bool               // the turn's answer can never be sent
	LastStep     bool               // the model was told that this is its last step
	Stopped      bool               // somebody said /stop
	UnreadReason string             // why the answer was not read aloud, if the log has a notice about that; "" otherwise
	Done         *sessions.TurnDone // the turn's end; nil while it continues
	Ended        time.Time
	Published    bool // the turn's replies are on the bus

	Tasks []sessions.Tasked // the tasks that the turn has to report on; nil if it isn't a sub-agent's
	Files attached.Files    // the files that came with the turn's messages

	Asks              []*Ask // of the step that parked the turn last
	Parked            bool   // the turn waits for at least one of the asks
	Announced         bool   // people were asked
	ParkedAt          time.Time
	parkedFor         time.Duration   // total of the waits that have ended
	MessagesMeanwhile map[string]bool // the messages that came while it waited

	FirstEntry int64     // the number of the turn's first entry
	Resumed    bool      // resumed since the last answer
	CutOff     bool      // it was killed since the last answer, perhaps during a model call
	Progress   time.Time // the time of the last entry, not counting those that only put the turn off
	Suspended  bool      // it was stopped in an orderly way, so its next resume doesn't follow a crash
}

// A step is one answer of the model, with its calls.
type step struct {
	Calls []*Call
}

// A Call is one tool call of a turn.
type Call struct {
	ID          string
	Use         sessions.ToolUse
	EntryNumber int64 // the number of the call's entry
	Attempts    int   // number of attempts that were started
	// Started is the start of the last attempt. It has arguments if they differ from what the model wrote.
	Started   sessions.ToolStarted
	Ask       *Ask // the ask to people about the call; nil if there is none
	NodeWait  *Ask // the last wait for the node that runs the call; nil if there was none
	NodeWaits int  // how often the turn has waited for that node
	// Delegated is the task that the turn waits for, or has waited for.
	Delegated sessions.Delegated
	Result    *sessions.ToolResult
}

// Key returns the call's key: the turn's id and the call's.
func (c *Call) Key(turn string) string { return turn + "#" + c.ID }

// An Ask is an ask that a parked turn waits for, or has waited for.
type Ask struct {
	sessions.Ask
	ForCall *Call
	Ended   *sessions.AskEnded // nil while it is open
	By      string             // the person who answered
}

// IsApproved reports whether somebody has approved the call.
func (a *Ask) IsApproved() bool {
	return a != nil && a.Ended != nil && a.Kind == bus.AskApproval && a.Ended.State == bus.AskAnswered && a.Ended.Answer != bus.Deny
}

// isTurnedDown reports whether people were asked and the call did not run because they denied it or nobody
// answered.
func (a *Ask) isTurnedDown() bool {
	return a != nil && a.Ended != nil && (a.Ended.State != bus.AskAnswered || a.Kind == bus.AskApproval && a.Ended.Answer == bus.Deny)
}

// Fold makes the state of a turn from the entries that belong to it. known is where the turn's replies go, or
// nil if Fold has to decode that.
func Fold(id string, records []journal.Record, known *route.Route) (*Turn, error) {
	t := &Turn{ID: id}
	calls := map[string]*Call{}
	for i := range records {
		r := &records[i]
		if c, ok := r.Data.(sessions.Command); ok {
			t.Stopped = t.Stopped || c.Name == CommandStop && t.FirstEntry > 0
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
			t.Route = *known
		}
		t.apply(*r, calls)
	}
	return t, nil
}

// apply updates the turn with its next entry in the log. calls contains the turn's calls so far, by id; apply
// adds the calls in the entry.
func (t *Turn) apply(r journal.Record, calls map[string]*Call) {
	if r.Kind != sessions.KindSuspended && r.Kind != sessions.KindResumed {
		t.Progress = r.At()
	}
	t.Blocks.Add(r.Kind, r.Call)
	switch d := r.Data.(type) {
	case sessions.TurnStarted:
		t.Person, t.Started, t.FirstEntry = r.Person, r.At(), r.N
	case sessions.User:
		t.applyUser(r, d)
	case sessions.ToolUse:
		c := &Call{ID: r.Call, Use: d, EntryNumber: r.N}
		calls[r.Call] = c
		last := t.openStep()
		last.Calls = append(last.Calls, c)
	case sessions.Usage:
		t.openStep()
		t.ModelCalls++
		t.FirstMS = cmp.Or(t.FirstMS, d.FirstMS)
		t.Resumes, t.Resumed, t.CutOff, t.Summaries = 0, false, false, 0
	case sessions.Summary:
		t.Summaries++
	case sessions.ToolStarted:
		if c := calls[r.Call]; c != nil {
			c.Attempts, c.Started = d.Attempt, d
		}
	case sessions.ToolResult:
		if c := calls[r.Call]; c != nil {
			c.Result = &d
		}
		t.Resumes = 0
	case sessions.Notice:
		if d.Code == NoticeJob || d.Code == task.NoticeReport {
			t.Causes = append(t.Causes, r.Cause)
		}
		t.UnreadReason = cmp.Or(t.UnreadReason, d.UnreadReason)
		t.LastStep = t.LastStep || d.Code == NoticeLastStep
		t.GivenUp = t.GivenUp || d.Code == CodeGaveUp
		t.Unsendable = t.Unsendable || d.Code == NoticeUnsendable
	case sessions.TurnParked:
		t.applyParked(r, d, calls)
	case sessions.AskEnded:
		t.applyAskEnded(r, d)
	case sessions.TurnDone:
		t.Done, t.Ended, t.Parked = &d, r.At(), false
	}
	t.applyTask(r, calls)
	t.Files.Apply(r)
	t.applyMark(r)
}

// applyUser updates the turn with what a person has said.
func (t *Turn) applyUser(r journal.Record, d sessions.User) {
	if len(t.Causes) == 0 {
		t.SaidAt = d.Sent
	}
	t.Causes = append(t.Causes, r.Cause)
	if t.Parked {
		t.MessagesMeanwhile[r.Cause] = true
	}
	if t.PersonName == "" {
		t.PersonName = d.Name
	}
	t.Scheduled = t.Scheduled || d.Schedule != ""
	t.answersPerson = t.answersPerson || !slices.ContainsFunc(d.Quotes, func(q sessions.Quote) bool { return q.Kind == bus.Posted })
}

// applyTask updates the turn with an entry about tasks that are handed to sub-agents.
func (t *Turn) applyTask(r journal.Record, calls map[string]*Call) {
	switch d := r.Data.(type) {
	case sessions.Tasked:
		t.Tasks = append(t.Tasks, d)
	case sessions.Delegated:
		if c := calls[r.Call]; c != nil {
			c.Delegated = d
		}
	}
}

// openStep returns the step whose model call has not ended yet, and begins one if needed.
func (t *Turn) openStep() *step {
	if len(t.Steps) == t.ModelCalls {
		t.Steps = append(t.Steps, step{})
	}
	return &t.Steps[len(t.Steps)-1]
}

// HasCalls reports whether the model has asked for any tool call.
func (t *Turn) HasCalls() bool {
	return slices.ContainsFunc(t.Steps, func(s step) bool { return len(s.Calls) > 0 })
}

// applyMark updates the turn with an entry that has no data.
func (t *Turn) applyMark(r journal.Record) {
	switch r.Kind {
	case sessions.KindSuspended:
		t.Suspended, t.CutOff = true, false // an earlier cut-off is already recorded
	case sessions.KindResumed:
		if !t.Suspended {
			t.Resumes++
			t.CutOff = t.CutOff || len(t.OpenCalls()) == 0 // otherwise its tools were running
		}
		t.Suspended, t.Resumed = false, true
	case sessions.KindTurnUnparked:
		t.Parked, t.Resumes = false, 0
		t.parkedFor += r.At().Sub(t.ParkedAt)
	case sessions.KindPublished:
		if t.Parked {
			t.Announced = true
		} else {
			t.Published = true
		}
	}
}

// applyAskEnded records how an ask of the turn has ended. If a message has answered it, the turn answers that message,
// too.
func (t *Turn) applyAskEnded(r journal.Record, d sessions.AskEnded) {
	for _, a := range t.Asks {
		if a.ID == d.Ask {
			a.Ended, a.By = &d, r.Person
		}
	}
	if r.Cause != d.Ask { // the answer was a message
		t.Causes = append(t.Causes, r.Cause)
	}
}

// applyParked records what the turn waits for from now on. The calls begin again when it continues.
func (t *Turn) applyParked(r journal.Record, d sessions.TurnParked, calls map[string]*Call) {
	t.Parked, t.Announced, t.ParkedAt, t.Asks = true, false, r.At(), nil
	if t.MessagesMeanwhile == nil {
		t.MessagesMeanwhile = map[string]bool{}
	}
	for _, of := range d.Asks {
		c := calls[of.Call]
		if c == nil {
			continue
		}
		a := &Ask{Ask: of, ForCall: c}
		if of.Kind == sessions.AskNode { // if somebody has approved the call, that stands
			c.NodeWait = a
			c.NodeWaits++
		} else {
			c.Ask = a
		}
		c.Attempts, c.Started = 0, sessions.ToolStarted{}
		t.Asks = append(t.Asks, a)
	}
}

// OpenAsks returns the asks that the turn waits for.
func (t *Turn) OpenAsks() []*Ask {
	var open []*Ask
	if !t.Parked {
		return nil
	}
	for _, a := range t.Asks {
		if a.Ended == nil {
			open = append(open, a)
		}
	}
	return open
}

// OpenCalls returns the calls of the last step that have no result yet.
func (t *Turn) OpenCalls() []*Call {
	if len(t.Steps) == 0 {
		return nil
	}
	var open []*Call
	for _, c := range t.Steps[len(t.Steps)-1].Calls {
		if c.Result == nil {
			open = append(open, c)
		}
	}
	return open
}

// CountFailedSteps counts the most recent consecutive steps in which every call failed. It skips steps in which
// people decided about every call, because a denial is neither a failure nor a success.
func (t *Turn) CountFailedSteps() int {
	n := 0
	for i := len(t.Steps) - 1; i >= 0; i-- {
		failed, undecided := t.Steps[i].allFailed()
		if !failed && undecided {
			break
		}
		if failed {
			n++
		}
	}
	return n
}

// allFailed reports whether all calls of a step failed, except those that people turned down. undecided reports
// whether there are any other calls, or no calls at all.
func (s step) allFailed() (failed, undecided bool) {
	for _, c := range s.Calls {
		if c.Ask.isTurnedDown() {
			continue
		}
		undecided = true
		if c.Result == nil || c.Result.Code == "" || c.Result.Code == string(tools.Cancelled) {
			return false, true
		}
	}
	return undecided, undecided || len(s.Calls) == 0
}

// CountRepeats counts the turn's calls, except like itself, with the same name and arguments as like that had
// the same result as the latest of them. It also counts those that were denied. If like is from another Fold
// of the turn, its counterpart here counts, too.
func (t *Turn) CountRepeats(like *Call) int {
	var latest *sessions.ToolResult
	n := 0
	for i := len(t.Steps) - 1; i >= 0; i-- {
		for _, c := range t.Steps[i].Calls {
			if c == like || c.Result == nil || c.Use.Name != like.Use.Name || string(c.Use.Args) != string(like.Use.Args) {
				continue
			}
			if c.Result.Code == CodeRepeated {
				n++
				continue
			}
			if latest == nil {
				latest = c.Result
			}
			if string(c.Result.Content) == string(latest.Content) {
				n++
			}
		}
	}
	return n
}

// WaitingTime returns how long the turn has waited for people and sub-agents so far.
func (t *Turn) WaitingTime() time.Duration {
	if t.Parked {
		return t.parkedFor + time.Since(t.ParkedAt)
	}
	return t.parkedFor
}

// IsAwaited reports whether a person waits for the turn's answer: somebody has said something, rather than a program, a schedule,
// another agent or a job.
func (t *Turn) IsAwaited() bool { return t.answersPerson && !t.Scheduled && len(t.Tasks) == 0 }

// Parent returns the key of the session that a sub-agent's turn works for, or "" for other turns.
func (t *Turn) Parent() string {
	if len(t.Tasks) == 0 {
		return ""
	}
	return t.Tasks[0].Parent
}

// ReplyText returns the text of all replies of a turn that has ended.
func (t *Turn) ReplyText() string {
	var texts []string
	for _, r := range t.Done.Outbound {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "\n\n")
}

// An Outcome is what a tool call led to: its result, or its failure.
type Outcome struct {
	Result tools.Result
	Failed *tools.Error
	// Bytes is the length of the result's text before it was shortened; 0 if it is whole. See sessions.ToolResult.
	Bytes   int64
	Changed bool // the hooks changed the result, which then counts even beside a failure
}

// Content returns the result in the form that the model is shown.
func (o *Outcome) Content() json.RawMessage {
	if o.Failed != nil && !o.Changed {
		return o.Failed.Result().Content
	}
	return o.Result.Content
}

// Logged returns what the log has of the outcome of a call: content, which is the content in the form in which it is
// stored, and what describes it.
func (o *Outcome) Logged(content json.RawMessage) sessions.ToolResult {
	r := sessions.ToolResult{Content: content, Untrusted: o.Result.Untrusted, IsPlaceholder: o.Result.StoredContent != nil}
	if o.Failed != nil {
		r.Code = string(o.Failed.Code)
	} else if !o.Changed {
		r.AnswerFiles = o.Result.Enclosed
	}
	if !r.IsPlaceholder {
		r.Field, r.MIME, r.Bytes = o.Result.Field, o.Result.MIME, o.Bytes
	}
	return r
}

// NoteWhole sets Bytes for the outcome of a call whose content is shortened. whole is the content before that.
func (o *Outcome) NoteWhole(whole json.RawMessage) {
	o.Bytes = o.Logged(whole).Result("").Metadata.Bytes
}

// ResultEntry returns the entry with the outcome of a call (C5).
func ResultEntry(t *Turn, c *Call, content []byte, o *Outcome) sessions.Entry {
	r := o.Logged(content)
	r.Allowances = c.Started.Allowances
	e := journal.NewEntry(t.ID, sessions.KindToolResult, r)
	e.Call = c.ID
	return e
}

// ResultEntries returns the entries for a call that ran (C5): its outcome and the pictures that it shows.
func ResultEntries(t *Turn, c *Call, content []byte, o *Outcome) []sessions.Entry {
	entries := []sessions.Entry{ResultEntry(t, c, content, o)}
	if o.Failed != nil || o.Changed {
		return entries
	}
	for _, p := range o.Result.Pictures {
		e := journal.NewEntry(t.ID, sessions.KindPicture, sessions.Picture(p))
		e.Call = c.ID
		entries = append(entries, e)
	}
	return entries
}

// Enclosed returns the paths of the files that go with the turn's answer because a call says so, each once.
func (t *Turn) Enclosed() []string {
	var paths []string
	for _, step := range t.Steps {
		for _, c := range step.Calls {
			if c.Result == nil {
				continue
			}
			for _, path := range c.Result.AnswerFiles {
				if !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}

// ReplyMessage returns the message that carries a reply to the chat of a turn that has ended.
func (t *Turn) ReplyMessage(r sessions.Reply, state string) (bus.Outbound, error) {
	out := bus.Outbound{ID: r.ID, To: t.Route.At, Text: r.Text, ReplyTo: t.Route.ReplyTo, Turn: t.ID, Failed: state == sessions.TurnFailed}
	if len(t.Causes) > 1 {
		out.Causes = t.Causes
	}
	if len(r.Files) > 0 {
		if err := json.Unmarshal(r.Files, &out.Files); err != nil {
			return out, fmt.Errorf("decode the files of %s: %w", r.ID, err)
		}
	}
	return out, nil
}

// ResultCode returns how a call ended, for logs and metrics: "ok", or the code of its failure.
func ResultCode(failed *tools.Error) string {
	if failed == nil {
		return "ok"
	}
	return string(failed.Code)
}

// Outcomes returns how the calls of the turn ended, by their ids, in the words of sessions.CallsCount. ending
// are the entries with which the turn is about to end.
func (t *Turn) Outcomes(ending []sessions.Entry) map[string]string {
	late := map[string]*sessions.ToolResult{}
	for _, e := range ending {
		if e.Kind != sessions.KindToolResult {
			continue
		}
		if result, err := sessions.Decode[sessions.ToolResult](e); err == nil {
			late[e.Call] = &result
		}
	}
	outcomes := map[string]string{}
	for _, step := range t.Steps {
		for _, c := range step.Calls {
			outcomes[c.ID] = sessions.CallCancelled
			if result := cmp.Or(c.Result, late[c.ID]); result != nil {
				outcomes[c.ID] = countedAs(tools.Code(result.Code))
			}
		}
	}
	return outcomes
}

// countedAs returns the name under which a call that ended with a code is counted.
func countedAs(code tools.Code) string {
	switch code {
	case "":
		return sessions.CallOK
	case tools.PermissionDenied, tools.RateLimited:
		return sessions.CallDenied
	case tools.Timeout:
		return sessions.CallTimeout
	case tools.Cancelled:
		return sessions.CallCancelled
	case tools.OutcomeUnknown:
		return sessions.CallUnknown
	}
	return sessions.CallFailed
}

// An Ending says why a turn ends without a final answer of the model. As an error, it ends the turn's steps.
type Ending struct {
	State string
	Code  string
	Text  string // for the person; "" says nothing
	// Refused says that a limit kept the turn from doing anything; Code says which one.
	Refused bool
}

// Error returns the state and the code.
func (e *Ending) Error() string { return "turn " + e.State + ": " + e.Code }

// Failed returns the ending of a failed turn, with a text for the person.
func Failed(code, format string, args ...any) *Ending {
	return &Ending{State: sessions.TurnFailed, Code: code, Text: fmt.Sprintf(format, args...)}
}
