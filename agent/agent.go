// Package agent is what answers: it leases sessions, runs durable turns and asks models.
//
// A Worker claims the mailbox of a session, reads the session's log and goes on
// from there: with the turn that was cut off, or with the next message. A turn is
// a fold over its entries, written before and after each step (C1 to C7 in
// docs/architecture.md), so a process that dies anywhere leaves a log from which
// the next goes on.
//
// The files, in the order in which a message meets them:
//
//	worker.go     claims sessions, and settles their leases, also after an error
//	run.go        sessionRun: one session under one lease; which turn goes on
//	command.go    commander: /new, /stop, /status, /help, and the answers to asks
//	steps.go      turnRun: the steps of one turn, from the log to the turn's end
//	call.go       what a tool call passes, in order, and its audit
//	decide.go     callRunner and preparedCall: whether a call runs, with which arguments, and whether a
//	              person has to approve it
//	park.go       how a turn begins to wait for people, and what these are shown
//	answers.go    how it goes on, and what is said meanwhile
//	window.go     asker: what of the log the model is asked with, and how that is made shorter
//	ask.go        asker: one answer, within the budget
//	lifecycle.go  how a turn begins (C1), ends (C6) and is published (C7)
//	inbox.go      the mail that a run holds, and what of it one turn answers
//	session.go    what all of these share: lease, log, redaction; why a run or a turn ends early
//	turn.go       a turn as its entries tell it
//	agent.go      how a Worker and an Agent are configured
//
// Below are journal (a session's log while it is worked on), transcript (the log
// as a model is shown it), llm (the contract with a model), attempt (a tool run
// once), tally (how many tokens a request has), stream (an answer as it comes, as events), attached (the files that came with
// a turn's messages), news (what becomes of messages later), pictures and transcribe (what
// models are shown and told of files), quota (how many turns a person may have) and purse (what a turn has set aside of budgets).
package agent

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"time"

	"parley/agent/attached"
	"parley/agent/llm"
	"parley/agent/purse"
	"parley/agent/stream"
	"parley/agent/tally"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/tools"
)

// A Store keeps the logs of sessions, and reads of them what matters no more to a turn.
type Store interface {
	sessions.Store
	// Read is that of a sessions.Reader.
	Read(ctx context.Context, key string, from int64) iter.Seq2[sessions.Entry, error]
}

// Config is what a Worker works with.
type Config struct {
	Bus    bus.Bus
	Events bus.Events
	Store  Store
	Budget sessions.Budget
	// Money, if set, bounds what models cost.
	Money purse.Money
	// Agents returns the agent that answers in the session with that key, as it is
	// configured now. An error is as one that keeps the session's log from being
	// opened: the session is tried again, and then its first message is given up.
	Agents func(ctx context.Context, session string) (Agent, error)
	// Limits returns the limits on people as they are configured now.
	Limits func() Limits
	// Asks, if set, lets turns wait for people. Without it a call that needs an
	// approval is denied.
	Asks Asks
	// Deserted, if set, tells of a session that no person takes part in: no question is asked
	// there, and approvals are asked for at Approvals.To alone.
	Deserted func(session string) bool
	// Admit, if set, is asked before a turn begins that answers a message, and says why it is
	// not to. It is asked again about the same message after a crash.
	Admit func(ctx context.Context, in bus.Inbound) (*Refusal, error)
	// Jobs, if set, are what runs in the background.
	Jobs Jobs
	// History, if set, keeps what turns change in workspaces.
	History History
	// Account, if set, returns the person in whose name another is counted and limited: the
	// same for all accounts of one human that are known to be one's.
	Account func(ctx context.Context, person string) (string, error)
	// Usage, if set, says in words what the sender of a command has used.
	Usage func(ctx context.Context, in bus.Inbound) (string, error)
	// Approvals returns how approvals are asked for, as it is configured now.
	Approvals func() Approvals
	// Prefix, if set, tells what people begin a command with on a channel; else
	// it is a slash.
	Prefix func(channel string) string
	// Healthy, if set, tells whether what sessions need is there. While it is
	// not, a failed session is nobody's fault: it is tried again, uncounted.
	Healthy func(ctx context.Context) error
	// MaxInFlight bounds the sessions that are worked on at once.
	MaxInFlight int
	// Drain is how long turns may go on after the context of Run has ended.
	Drain time.Duration
	Log   *slog.Logger
	// Observer, if set, is told what happens, for metrics.
	Observer Observer
	// Audit, if set, keeps a record of each call that has its result; when it
	// returns nil, the record is durable.
	Audit func(ctx context.Context, r sessions.AuditRecord) error
	// Point, if set, is called at each line of a turn's protocol: the places
	// where a chaos test kills the process.
	Point func(name string)

	tally *tally.Tally // of all sessions, like pace
	pace  *stream.Pace
}

// A Refusal is why a message starts no turn. Text is for people; "" says nothing.
type Refusal struct{ Code, Text string }

// Approvals is how approvals are asked for.
type Approvals struct {
	Expires time.Duration // after which nobody needs to answer any more; 0 is a day
	To      []bus.Address // where people are asked; the conversation where it is empty
}

// Asks keeps what parked turns wait for where every channel finds it, and decides
// which answer is taken.
type Asks interface {
	// Ready says why nobody can be asked now; "" where somebody can.
	Ready(ctx context.Context) (why string, err error)
	// Open records an ask and has it expire in time. It may be called again.
	Open(ctx context.Context, ask bus.Ask) error
	// Answer takes an answer. Once one is taken, or the ask has expired, the session
	// gets mail of the kind Decided. Its errors are bus.ErrNoAsk, ErrMayNotAnswer,
	// ErrBadAnswer and ErrDecided; after any other the same answer is to be given again.
	Answer(ctx context.Context, id string, answer bus.Answer) (bus.Ask, error)
	// Withdraw ends an ask whose answer nobody needs; one that was answered stays so.
	Withdraw(ctx context.Context, id string) (bus.Ask, error)
	// Told notes that the session knows how an ask has ended.
	Told(ctx context.Context, id string) error
	// Granted tells whether what has that hash was approved for the session.
	Granted(ctx context.Context, session, hash string) (by string, ok bool, err error)
	// EndGrants ends what was approved for a session, also by asks that are open now.
	EndGrants(ctx context.Context, session string) error
}

// Jobs are the commands that run in the background for sessions.
type Jobs interface {
	// StopAll asks for the end of a session's jobs, for a cause, and returns how many that
	// were: the same again gives the same.
	StopAll(ctx context.Context, session, cause string) (int, error)
	// Count counts those of a session that run.
	Count(ctx context.Context, session string) (int, error)
}

// A History keeps what turns change in workspaces, so that people can take it back.
type History interface {
	// Begin is called before a call that has an effect. It notes what the session's files
	// are, where the call may change them and the turn has not noted it yet.
	Begin(ctx context.Context, call tools.Call) error
	// End is called once a turn has ended, or waits. It may be called again.
	End(ctx context.Context, session, turn string) error
	// Undo does what somebody wants with /undo, and says what came of it. The same again
	// goes on with what was cut off.
	Undo(ctx context.Context, u Undoing) (reply string, err error)
}

// An Undoing is what somebody wants with /undo.
type Undoing struct {
	Session string
	ID      string // the command's cause
	Person  string
	Args    string
	Prefix  string // of commands, where it was said
	// May tells whether the person may undo what another has asked for.
	May func(person string) bool
	// Waiting are the turns that wait for people, and Jobs counts what runs in the background.
	Waiting []string
	Jobs    int
	// Held is asked before each change of a file.
	Held func(ctx context.Context) error
}

// Limits bounds what one person may ask for.
type Limits struct {
	Turns     int   // at once; owners have no such bound
	TurnsHour int   // in an hour; owners have no such bound
	TokensDay int64 // spent and reserved in a day (UTC), everybody's bound where a model's price is not known
	// TokensAlways has TokensDay hold where it is known, too.
	TokensAlways bool
	// TokensDayOf is the bound of some, in place of TokensDay.
	TokensDayOf map[string]int64
	MaxWaiting  int // messages in a session's mailbox, for /status to name
	// What models may cost, in micro-dollars: for one person in a day, in one session in a
	// day, and for all in a day and a month (UTC); 0 is not bounded.
	UserDay, SessionDay, Day, Month int64
	// UserDayOf is the bound of some, in place of UserDay.
	UserDayOf map[string]int64
}

// caps are those that hold for what a person has an agent do in a session.
func (l Limits) caps(person, session string, a Agent) []bill.Cap {
	var caps []bill.Cap
	userDay, own := l.UserDayOf[person]
	if !own {
		userDay = l.UserDay
	}
	for _, c := range []bill.Cap{
		{Of: bill.Person(person), Most: userDay}, {Of: bill.Session(session), Most: l.SessionDay},
		{Of: bill.Agent(a.Name), Most: a.Day}, {Most: l.Day}, {Month: true, Most: l.Month},
	} {
		if c.Most > 0 {
			caps = append(caps, c)
		}
	}
	return caps
}

// tokensDay is what a person may spend in a day.
func (l Limits) tokensDay(person string) int64 {
	if own, ok := l.TokensDayOf[person]; ok {
		return own
	}
	return l.TokensDay
}

// An Agent is one configured agent.
type Agent struct {
	Name  string
	Model llm.Model
	// Tools are those granted to it, as each turn finds them when it begins; Known are all that there are, so that a
	// call of another one is told what is missing. Known may be nil.
	Tools *tools.Set
	Known *tools.Set
	// Prompt returns the prompt's prefix for a turn, and whether it holds what strangers may
	// have written. It is asked once a turn.
	Prompt func(ctx context.Context, who Asker) (text string, untrusted bool, err error)
	// Untrusted tells whether the session holds, where Prompt reads it, what strangers may
	// have written by now. Nil takes it that it does not.
	Untrusted func(ctx context.Context, session string) bool
	// Keep stores a result that is too long for the model and says where, as
	// the model would open it. Nil keeps nothing.
	Keep func(ctx context.Context, call tools.Call, content json.RawMessage) (path string, err error)
	// Picture reads the content of a picture's file, nil if it is not there as it was. Nil
	// shows no pictures.
	Picture func(ctx context.Context, session string, p llm.Picture) []byte
	// Fetch puts what came with a message into the session's workspace. It is called again
	// after a crash; its error ends the run, which is then tried again. Nil fetches nothing.
	Fetch func(ctx context.Context, f Fetching) (sessions.Fetched, error)
	// MayNote says why files that come, and pictures that tools show, cannot be noted in the
	// log now; "" where they can. Processes of an older release would not know what these
	// entries are. Nil is always.
	MayNote func(ctx context.Context) (why string, err error)
	// MaySumUp tells whether a summary may stand for a part of a turn that goes on:
	// processes of an older release would take that turn for one of a conversation that has
	// ended. Nil is always.
	MaySumUp func(ctx context.Context) (bool, error)
	// Enclose keeps the files of the workspace that an answer shows, so that they go with
	// the message of that id. It may be asked again. Nil, and a text that shows none, is
	// none.
	Enclose func(ctx context.Context, session, message string, at bus.Address, text string) Enclosed
	// Discard removes files of a session's workspace, those that are there. Nil removes none.
	Discard func(ctx context.Context, session string, paths []string) error
	// Redact takes out of results, of progress and of all that is said what nobody is
	// to see. Nil takes out nothing.
	Redact Redactor
	// Named is a sum of what a call works on beside its arguments: the directory, and
	// the files that the arguments name, with their content. An approval is for these.
	// Nil is nothing.
	Named func(ctx context.Context, call tools.Call) (string, error)
	// Guard decides about each call before it runs; nil allows all. It is asked
	// again about arguments that it has changed.
	Guard func(ctx context.Context, call tools.Call) tools.Verdict
	// Before are asked in their order about a call that the guard lets run. The guard
	// is asked again about what one of them has changed.
	Before []func(ctx context.Context, call tools.Call) tools.Verdict
	// After are shown in their order what came of a call that ran, also how it failed.
	After []func(ctx context.Context, call tools.Call, result tools.Result) tools.Review

	MaxIterations    int // model calls a turn
	ErrorLimit       int // consecutive steps in which every call failed
	MaxParallelTools int
	ContextTokens    int
	Day              int64 // what its models may cost in a day (UTC), in micro-dollars; 0 is not bounded
	// Steer lets mail of the turn's sender join the turn; else it waits.
	Steer bool
}

// An Asker is on whose behalf a turn runs, and where.
type Asker struct {
	Session string
	Person  string // CHANNEL:USER
	Private bool   // nobody else reads the conversation
}

// A Fetching is a file to be fetched: what came with a message.
type Fetching struct {
	Session string
	Turn    string
	At      bus.Address
	attached.File
	// Held tells whether the session is still ours: it is asked before something is written.
	Held func(ctx context.Context) error
}

// An Observer is told what happens. Its methods return at once.
type Observer interface {
	Turn(result string, d time.Duration) // done, failed, cancelled
	Step()
	Tool(tool, result string, d time.Duration)  // ok or the error's code
	Batch(concurrency int, saved time.Duration) // calls that ran side by side
	Compaction(result string)                   // cleared, summarised, too_little, failed
	AuditLost()                                 // a call's audit record could not be kept
}

// Enclosed are the files that go with an answer.
type Enclosed struct {
	Files []bus.FileRef
	// Refused says in words of each file that cannot go why it cannot.
	Refused []string
}

// A Redactor takes out of what leaves an agent what nobody is to see.
type Redactor interface {
	Text(text string) string
	// JSON gives a JSON value for a JSON value.
	JSON(raw json.RawMessage) json.RawMessage
	// Stream takes one text in pieces, and gives on what is sure to hold no part of a
	// secret; the rest comes with what follows, or with last.
	Stream() func(piece string, last bool) string
}
