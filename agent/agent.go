// Package agent defines what an agent is, and what a worker needs to answer messages with agents. It is the
// contract of the agent's loop; package worker implements it.
//
// A message goes through the packages below in this order. worker claims the session's mailbox, reads the
// session's log, and runs each of its turns from beginning to end. turn holds the state of a turn, which is a
// fold over its entries in the log, and the state of the session in which the turn runs. model asks the model
// for the turn's next answer, and calls runs the tool calls in it. Each writes to the log before and after what
// it does (C1 to C7 in docs/protocol/turn.md): if a process dies at any point, the next one continues from the
// log.
//
// These packages use the following ones: journal (a session's log while the session is worked on), sessioncache
// (the journals of recently used sessions), transcript (the messages for a model, made from the log), llm (the
// contract with a model), estimate (how many tokens a request has), stream (turns the pieces of an answer into
// events), route (where a turn's replies go), shortfall (what people are told when an answer is incomplete),
// asks (what people are asked, and what their answers mean), task (what is handed to sub-agents), attached (the
// files that came with a turn's messages), pictures and transcribe (what models see and read of files), speech
// (recordings of answers), episodes (short records of turns with tools), figures (the statistics of a turn), spans (a
// turn as spans of a trace), audit (the records of calls), quota (how many turns a person may have) and budget (what a
// turn has reserved of budgets).
package agent

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"time"

	"parley/agent/asks"
	"parley/agent/attached"
	"parley/agent/budget"
	"parley/agent/judge"
	"parley/agent/llm"
	"parley/agent/proposals"
	"parley/agent/sessioncache"
	"parley/agent/task"
	"parley/agent/transcript"
	"parley/bus"
	"parley/bus/trace"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/tools"
)

// A Store keeps the logs of sessions. Its Read also returns the entries of a log that turns no longer need.
type Store interface {
	sessions.Store
	// Read is the method of sessions.Reader.
	Read(ctx context.Context, key string, from int64) iter.Seq2[sessions.Entry, error]
}

// Config holds what a Worker needs.
type Config struct {
	Bus    bus.Bus
	Events bus.Events
	Store  Store
	Budget sessions.Budget
	// Money, if set, limits the cost of models.
	Money budget.Money
	// Agents returns the agent that answers in the session with that key, as currently configured. An error
	// counts like a failure to open the session's log: the session is tried again, and finally its first message
	// becomes a dead letter.
	Agents func(ctx context.Context, session string) (Agent, error)
	// Limits returns the limits on people, as currently configured.
	Limits func() Limits
	// Asks, if set, lets turns wait until people have approved a call or answered a
	// question. If nil, a call that needs approval is denied.
	Asks Asks
	// Deserted, if set, reports whether no person takes part in a session. Such a session asks no questions, and
	// asks for approvals only at Approvals.To.
	Deserted func(session string) bool
	// Admit, if set, is called before a turn that answers a message begins. It returns nil if the turn may
	// begin, or why it must not. After a crash it is called again with the same message.
	Admit func(ctx context.Context, in bus.Inbound) (*Refusal, error)
	// NodeWaits, if set, lets turns wait for nodes that are away. If nil, a call for such a node fails.
	NodeWaits NodeWaits
	// Jobs, if set, are the commands that run in the background.
	Jobs Jobs
	// SubAgents, if set, lets agents hand tasks to sub-agents. If nil, such calls are denied.
	SubAgents task.SubAgents
	// History, if set, keeps the changes that turns make in workspaces.
	History History
	// Account, if set, returns the person under whom another person is counted and limited: the same one for all
	// accounts that are known to belong to one human.
	Account func(ctx context.Context, person string) (string, error)
	// Usage, if set, returns a text that says how much the sender of a command has used.
	Usage func(ctx context.Context, in bus.Inbound) (string, error)
	// Approvals returns how approvals are requested, as currently configured.
	Approvals func() Approvals
	// Approvers, if set, returns the people, besides owners, who may approve a call: CHANNEL:USER. It returns nil if those
	// may whom the channels name.
	Approvers func(call tools.Call) []string
	// Prefix, if set, returns the characters that begin a command on a channel; if nil, a slash does.
	Prefix func(channel string) string
	// ShowsWholeTexts, if set, reports whether a channel shows texts of any length completely, as a terminal does; if
	// nil, no channel does.
	ShowsWholeTexts func(channel string) bool
	// OwnData, if set, reports whether people on a channel can have their own data sent to them and erased
	// there.
	OwnData func(channel string) bool
	// Link, if set, carries out the command that links the sender with their account on a platform, and returns
	// the reply; "" if a gateway carries the command out.
	Link func(ctx context.Context, in bus.Inbound) (answer string, err error)
	// Presses, if set, reports whether people on a channel press buttons, so that they don't have to be told
	// what to write instead.
	Presses func(channel string) bool
	// Healthy, if set, returns an error if something that sessions need is unavailable. Until it returns nil,
	// failures of sessions are not counted, and the sessions are tried again.
	Healthy func(ctx context.Context) error
	// SessionCache, if set, keeps the logs of sessions in memory until the sessions are worked on again. Code
	// that erases something from a log clears it.
	SessionCache *sessioncache.Journals
	// MaxInFlight limits how many sessions are worked on at the same time.
	MaxInFlight int
	// Drain is how long running turns may continue after the context of Worker.Run has ended. Then they are cut
	// off, and the next process resumes them.
	Drain time.Duration
	Log   *slog.Logger
	// Observer, if set, is told what happens, for metrics.
	Observer Observer
	// Trace, if set, takes the spans of turns and commands.
	Trace trace.Recorder
	// Audit, if set, writes a record of each call that has a result. The record becomes durable no later than
	// anything written to the log or the bus after Audit has returned nil.
	Audit func(ctx context.Context, r sessions.AuditRecord) error
	// QueueAudit, if set, queues the audit record of a turn that has ended or was refused. It doesn't wait for the
	// write: if the process dies first, the turn is still in the log.
	QueueAudit func(r sessions.AuditRecord)
	// Point, if set, is called before and after each step of a turn, with the step's name. A chaos test can kill
	// the process there.
	Point func(name string)
}

// A Refusal says why a message starts no turn. Text is for people; "" tells them nothing.
type Refusal struct{ Code, Text string }

// Approvals says how approvals are requested.
type Approvals struct {
	Expires time.Duration // an ask expires after this time; 0 means a day
	To      []bus.Address // where people are asked; if empty, in the conversation
}

// Asks stores the asks that parked turns wait for where every channel finds them, and decides which answer
// counts.
type Asks interface {
	// Ready returns why nobody can be asked now, in words for the model, or "" if people can be asked.
	Ready(ctx context.Context) (why string, err error)
	// Open stores an ask, which expires at ask.Expires. It may be called again with the same ask.
	Open(ctx context.Context, ask bus.Ask) error
	// Answer answers an ask. Once an answer counts, or the ask has expired, the session gets mail of the kind
	// Decided. Errors are bus.ErrNoAsk, ErrMayNotAnswer, ErrBadAnswer, ErrNotShown and ErrDecided; after any
	// other error the caller must give the same answer again.
	Answer(ctx context.Context, id string, answer bus.Answer) (bus.Ask, error)
	// Withdraw ends an ask that no longer needs an answer. An ask that was answered stays answered.
	Withdraw(ctx context.Context, id string) (bus.Ask, error)
	// NoteTold records that the session's log says how an ask ended, so the session doesn't need to get that
	// mail again.
	NoteTold(ctx context.Context, id string) error
	// Granted reports whether the call with that hash was approved for the whole session, and who approved it.
	Granted(ctx context.Context, session, hash string) (by string, ok bool, err error)
	// EndGrants ends all approvals for a whole session, including those from asks that are still open.
	EndGrants(ctx context.Context, session string) error
}

// NodeWaits records which turns wait for nodes where every process finds it.
type NodeWaits interface {
	// OpenWait records a wait. Once the node is back or removed, or the time has come, the session gets mail of the kind
	// Decided under the wait's id. It may be called again with the same wait.
	OpenWait(ctx context.Context, w sessions.NodeWait) error
	// CloseWait records that the session needs no mail about a wait anymore. It may be called again.
	CloseWait(ctx context.Context, id string) error
}

// Jobs are the commands that run in the background for sessions.
type Jobs interface {
	// StopAll asks all jobs of a session to end, and returns how many it asked. A repeated call with the same
	// cause returns the same number.
	StopAll(ctx context.Context, session, cause string) (int, error)
	// Count returns how many jobs of a session are running.
	Count(ctx context.Context, session string) (int, error)
}

// A History keeps the changes that turns make in workspaces, so that people can undo them.
type History interface {
	// Begin is called before each tool call that may change something. If the call may change files, and the
	// turn has not recorded them yet, Begin records the session's files as they are before the call.
	Begin(ctx context.Context, call tools.Call) error
	// End is called when a turn has ended, or waits for people. It records what the turn has changed in the
	// files. It may be called again.
	End(ctx context.Context, session, turn string) error
	// Undo carries out an /undo command, and returns the reply. If it is called again with the same command, it
	// continues where it was cut off.
	Undo(ctx context.Context, u UndoCommand) (reply string, err error)
}

// An UndoCommand is a person's /undo command.
type UndoCommand struct {
	Session string
	ID      string // the command's cause
	Person  string
	Args    string // what follows /undo
	Prefix  string // begins a command in the place where this one was sent
	// MayUndoFor reports whether the sender may undo what another person requested.
	MayUndoFor func(person string) bool
	// Waiting are the turns that wait for people. Jobs is how many commands are running in the background.
	Waiting []string
	Jobs    int
	// CheckLease is called before each change of a file. It returns an error if the lease is lost.
	CheckLease func(ctx context.Context) error
}

// An Agent is one configured agent.
type Agent struct {
	Name  string
	Model llm.Model
	// Tools are granted to the agent; each turn keeps the set that it began with. Known are all tools, granted
	// or not: with them, a call of a tool that isn't granted gets an error that says which capability is
	// missing. Known may be nil.
	Tools      *tools.Set
	KnownTools *tools.Set
	// Prompt returns the prompt's prefix for a turn. It is called once per turn.
	Prompt func(ctx context.Context, who Asker) (string, error)
	// Memory returns what the agent remembers for a turn, and whether strangers may have written some of it. It
	// is called whenever work on a turn begins. If nil, the agent has no memory.
	Memory func(ctx context.Context, who Asker) (memory []transcript.Memory, untrusted bool, err error)
	// Untrusted reports whether strangers may by now have written some of what Prompt and Memory read in the
	// session. If nil, they have not.
	Untrusted func(ctx context.Context, session string) bool
	// StoreLongResult stores a result that is too long for the model, and returns the path where the model can open it. If
	// nil, such results are not stored.
	StoreLongResult func(ctx context.Context, call tools.Call, content json.RawMessage) (path string, err error)
	// Picture returns the content of a picture's file; nil if the file is missing or
	// changed. If Picture is nil, models are shown no pictures.
	Picture func(ctx context.Context, session string, p llm.Picture) []byte
	// Fetch puts a file that came with a message into the session's workspace. After a crash it is called again.
	// An error ends the run, which is then tried again. If nil, no files are fetched.
	Fetch func(ctx context.Context, f FileToFetch) (sessions.Fetched, error)
	// MayNote returns why the log must not record files that arrive and pictures that tools show, or "" if it
	// may. It must not while processes of an older release, which don't know these entries, may read the log. If
	// nil, the log may always record them.
	MayNote func(ctx context.Context) (why string, err error)
	// MaySummarizeTurn reports whether a summary may cover a part of the current turn. It may not while processes of an
	// older release may read the log: they would think that the turn belongs to an ended conversation. If nil, a
	// summary always may.
	MaySummarizeTurn func(ctx context.Context) (bool, error)
	// Titles, if set, is asked once for a title of a conversation, after its first answer. MayTitle reports
	// whether the store may contain such a title. It may not while processes of an older release run, which
	// would not erase the title. If MayTitle is nil, the store always may.
	Titles   llm.Model
	MayTitle func(ctx context.Context) (bool, error)
	// Proposals, if set, stores what a model finds worth remembering when a long conversation in a private chat
	// ends, and tells the person.
	Proposals proposals.Store
	// CopyFiles stores copies of the workspace's files that go with an answer, so that they can be sent: those that
	// its text shows, and those that the turn's calls enclose. It may be called again. If nil, answers have no files.
	CopyFiles func(ctx context.Context, session string, answer AnswerWithFiles) AnswerFiles
	// Voice, if set, reads answers aloud.
	Voice Voice
	// Discard removes files from the session's workspace that came with a message that was deleted. It isn't an
	// error if they are already gone. If nil, the files stay.
	Discard func(ctx context.Context, session string, paths []string) error
	// Redact takes secrets out of results, progress and everything that is said. If nil, nothing is taken out.
	Redact Redactor
	// HashInput returns a hash of what a call works on besides its arguments: the directory, and the content of
	// the files that it may read. An approval holds only as long as that stays the same. like is the mode of an
	// earlier hash that the new one is compared with; nil leaves the choice to HashInput. If HashInput is nil,
	// only the arguments count.
	HashInput func(ctx context.Context, call tools.Call, like *string) (asks.InputsHash, error)
	// Guard decides about each call before it runs. If it changes the arguments, it is called again with the new
	// ones. If nil, all calls are allowed.
	Guard func(ctx context.Context, call tools.Call) tools.Verdict
	// CountCall counts a call that the guard and the hooks allow for the person on whose behalf it is made, if the
	// operator limits how many such calls one may have. It returns why the call must not run if that many are
	// reached. A call is counted once, by its key. person, which it asks only if there is a limit, returns who that is:
	// the same for all accounts of one human. If CountCall is nil, calls are not limited.
	CountCall func(ctx context.Context, call tools.Call, person func(context.Context) (string, error)) (refused *tools.Error, err error)
	// Before are hooks that are called, in order, for each call that the guard allows. If one changes the
	// arguments, the guard is called again.
	Before []func(ctx context.Context, call tools.Call) tools.Verdict
	// Judge says which calls a model judges after the guard and the hooks. If nil, none.
	Judge *judge.Judge
	// After are hooks that are called, in order, with the result or failure of each call that ran.
	After []func(ctx context.Context, call tools.Call, result tools.Result) tools.ResultReview

	MaxIterations    int // model calls in a turn
	ErrorLimit       int // a turn fails after so many consecutive steps in which every call failed
	MaxParallelTools int
	ContextTokens    int
	// Turns and TurnsHour are how many turns one person may have with this agent, at once and in an hour; 0
	// means as many as Limits says. If either is set, the agent's turns are counted separately; otherwise they
	// are counted together with those of all other agents.
	Turns, TurnsHour int
	Day              int64 // the most that the agent's models may cost in a day (UTC), in micro-dollars; 0 means no limit
	// Caps are additional limits on the cost of the agent's models.
	Caps []bill.Cap
	// Steer makes the model read, within the running turn, what the turn's sender says meanwhile. If false, the
	// next turn reads it.
	Steer bool
}

// ToolName returns name if there is a tool with that name, and sessions.OtherTool if a model has made the name
// up.
func (a *Agent) ToolName(name string) string {
	for _, set := range []*tools.Set{a.Tools, a.KnownTools} {
		if set == nil {
			continue
		}
		if _, known := set.Lookup(name); known {
			return name
		}
	}
	return sessions.OtherTool
}

// An Asker says which person a turn runs for, and in which session.
type Asker struct {
	Session string
	Turn    string // the turn's id; "" if none is running
	Person  string // CHANNEL:USER
	Private bool   // nobody else reads the conversation
}

// A FileToFetch is a file that came with a message and is not in the workspace yet.
type FileToFetch struct {
	Session string
	Turn    string
	At      bus.Address
	attached.File
	// CheckLease returns an error if the session's lease is lost. It is called before something is written.
	CheckLease func(ctx context.Context) error
}

// An Observer is told by a Worker about each turn, model call and tool call, for metrics. Its methods must
// return at once.
type Observer interface {
	Turn(t EndedTurn)
	Step()
	Tool(tool, result string, d time.Duration)  // ok or the error's code
	Batch(concurrency int, saved time.Duration) // calls that ran in parallel, and how much time that saved
	Compaction(result string)                   // cleared, summarised, too_little, failed
	AuditLost()                                 // a call's audit record could not be written
	Judged(verdict string)                      // a model was asked about a call: its verdict, or why there is none
	SessionOpened(fromMemory bool)              // a run began: its session was in memory, or was read from the log
	ReadAloud(result string)                    // an answer was to be read aloud: ok, stopped, or the code of an UnreadError
}

// An EndedTurn is what metrics count of a turn that has ended. All of it comes from the log, so it is about the whole
// turn, whoever has resumed it.
type EndedTurn struct {
	Result string        // done, failed or cancelled
	Took   time.Duration // without the time that it waited for people
	// Answer is how long the person waited for the answer, from the message on, without the time that the turn
	// waited for people; 0 if there is no answer, or nobody waited for it.
	Answer time.Duration
	Steps  int // requests to a model that were answered
	// Recovered is how many calls of tools failed before another call of the same tool succeeded in a later step,
	// and Unrecovered how many others failed. What a rule, a rate or a person has refused counts as neither.
	Recovered, Unrecovered int
}

// An AnswerWithFiles is an answer that files may go with.
type AnswerWithFiles struct {
	ID       string // the message's
	At       bus.Address
	Text     string
	Enclosed []string // the paths of files that the turn's calls have asked to send with it
}

// AnswerFiles are the files that go with an answer.
type AnswerFiles struct {
	Files []bus.FileRef
	// Refused has a text for each file that can't be sent, which says why.
	Refused []string
}

// A Redactor takes secrets out of everything that leaves an agent.
type Redactor interface {
	// Text returns a text without secrets.
	Text(text string) string
	// JSON returns a JSON value without secrets.
	JSON(raw json.RawMessage) json.RawMessage
	// Stream returns a function that redacts one text piece by piece. The function returns what certainly
	// contains no part of a secret; it returns the rest with later pieces or, at the latest, when last is true.
	Stream() func(piece string, last bool) string
	// JSONStream does what Stream does for a JSON value in pieces. It lets nothing through that JSON would take
	// out.
	JSONStream() func(piece string, last bool) string
}
