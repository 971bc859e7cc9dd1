package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"parley/agent"
	"parley/agent/audit"
	"parley/agent/estimate"
	"parley/agent/journal"
	"parley/agent/route"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/tools"
)

// A Session holds what the parts of one run share, which is the work on a leased session: the lease, the session's log
// (Journal), the agent that answers, and the connections to the outside.
type Session struct {
	Config  *agent.Config
	Lease   bus.Lease
	Log     *slog.Logger
	Journal *journal.Journal
	Agent   agent.Agent
	Audits  *audit.Queue // the audit records of calls
	// MessageRoom is roughly how many tokens of messages fit into a request to the model.
	MessageRoom int
	// RequestLimit is the most tokens that a request may have, as learned from a refusal; 0 if nothing was learned.
	RequestLimit int
	Estimator    estimate.Estimator
	// TrustedTurn is the id of the turn for which it was found that strangers have written nothing in the agent's
	// memory.
	TrustedTurn string
	// Traced is the turn, and the number of its last entry, up to which this run has recorded spans.
	Traced Traced
	Payer  Payer // the sender of the turn that was last counted
	// folded is the last folded turn: each message has its turn folded several times, often with nothing written
	// in between.
	folded atomic.Pointer[foldedTurn]
}

// ErrBusAway is returned if work can't continue because the bus, or something that belongs to it, doesn't
// respond.
var ErrBusAway = errors.New("the bus is away")

// A Traced is a turn whose spans were recorded up to an entry's number.
type Traced struct {
	Turn string
	UpTo int64
}

// A foldedTurn is a turn with the records that it was made from.
type foldedTurn struct {
	turn    *Turn
	records []journal.Record
}

// isOf reports whether the turn was made from these records. Records that were handed out never change, so it
// is enough to compare where they are in memory.
func (f *foldedTurn) isOf(records []journal.Record) bool {
	return len(records) > 0 && len(records) == len(f.records) && &records[0] == &f.records[0]
}

// Fold makes the state of a turn from the session's journal. Others may get the same Turn: after writing
// entries, fold it again.
func (s *Session) Fold(id string) (*Turn, error) {
	records := s.Journal.Current()
	var known *route.Route
	if last := s.folded.Load(); last != nil && last.turn.ID == id {
		if last.isOf(records) {
			return last.turn, nil
		}
		known = &last.turn.Route // decoding it would be most of the work
	}
	t, err := Fold(id, records, known)
	if err == nil && t.FirstEntry > 0 {
		s.folded.Store(&foldedTurn{t, records})
		return t, nil
	}
	if err == nil { // it was already over, so Current doesn't include it
		t, err = Fold(id, s.Journal.Records(), nil)
	}
	return t, err
}

// NewSession makes a leased session, without its journal and its agent. learned collects how models count tokens.
func NewSession(cfg *agent.Config, lease bus.Lease, learned *estimate.Ratios) *Session {
	s := &Session{Config: cfg, Lease: lease, Log: loggerFor(cfg.Log, lease.Claim()), Estimator: estimate.Estimator{Ratios: learned}}
	s.Audits = audit.New(s.writeAudit)
	return s
}

// WithoutTurnState returns a copy of the session without its turn's counts and audit records.
func (s *Session) WithoutTurnState() *Session {
	return &Session{Config: s.Config, Lease: s.Lease, Log: s.Log, Journal: s.Journal, Agent: s.Agent, Estimator: estimate.Estimator{Ratios: s.Estimator.Ratios}}
}

// Key returns the session's key.
func (s *Session) Key() string { return s.Lease.Claim().Key }

// Point marks a step of the protocol, at which a test may kill the process.
func (s *Session) Point(name string) { s.Config.Point(name) }

// Emit sends an event of a turn to watchers.
func (s *Session) Emit(t *Turn, e bus.Event) {
	e.Session, e.Turn = s.Key(), t.ID
	if !isForLog(&e) {
		e.Route = t.Route.At
	}
	s.Config.Events.Emit(e)
	s.emitProgress(t, e.Type)
}

// emitProgress tells those who watch the sessions that a sub-agent's turn works for that the turn is making
// progress. The code that records a task's end announces the end.
func (s *Session) emitProgress(t *Turn, event string) {
	state := bus.StateRunning
	switch event {
	case bus.TurnStart, bus.ToolStart, bus.ToolEnd, bus.Used:
	case bus.TurnParked:
		state = bus.StateWaiting
	default:
		return
	}
	for _, d := range t.Tasks {
		s.Config.Events.Emit(bus.Event{Type: bus.TaskMoved, Session: d.Parent, News: &bus.News{ID: d.ID, State: state}})
	}
}

// isForLog reports whether an event is only for those who watch the session's log. The channel where people
// read the answer doesn't show it: they know what they have said, and tool_start and tool_end announce calls.
func isForLog(e *bus.Event) bool {
	switch sessions.Kind(e.Kind) {
	case sessions.KindUser, sessions.KindToolResult:
		return true
	case sessions.KindToolUse:
		return e.Type != bus.BlockStart
	}
	return false
}

// CommandPrefix returns the characters that begin a command at an address.
func (s *Session) CommandPrefix(at bus.Address) string {
	if s.Config.Prefix == nil {
		return "/"
	}
	return s.Config.Prefix(at.Channel)
}

// Redactor returns the agent's Redactor, or one that changes nothing.
func (s *Session) Redactor() agent.Redactor {
	if s.Agent.Redact == nil {
		return noRedaction{}
	}
	return s.Agent.Redact
}

// noRedaction is a Redactor that changes nothing.
type noRedaction struct{}

func (noRedaction) Text(text string) string                  { return text }
func (noRedaction) JSON(raw json.RawMessage) json.RawMessage { return raw }
func (noRedaction) Stream() func(piece string, last bool) string {
	return func(p string, _ bool) string { return p }
}
func (n noRedaction) JSONStream() func(piece string, last bool) string { return n.Stream() }

// DurableAtOnce returns the log unchanged: its entries are durable once an append returns. It is a choice for
// AppendWith.
func DurableAtOnce(log sessions.Log) sessions.Log { return log }

// defaultExpiry is how long an ask waits for an answer if no time is configured.
const defaultExpiry = 24 * time.Hour

// Approvals returns how approvals are asked for, with the default expiry.
func (s *Session) Approvals() agent.Approvals {
	a := agent.Approvals{}
	if s.Config.Approvals != nil {
		a = s.Config.Approvals()
	}
	if a.Expires <= 0 {
		a.Expires = defaultExpiry
	}
	return a
}

// A Payer is a person with the account under which the person is counted.
type Payer struct{ Person, Account string }

// AccountOf returns the id under which a person is counted and limited. It is the same for all the person's
// accounts on platforms.
func (s *Session) AccountOf(ctx context.Context, person string) (string, error) {
	if s.Config.Account == nil {
		return person, nil
	}
	account, err := s.Config.Account(ctx, person)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBusAway, err)
	}
	return account, nil
}

// PayerOf returns a person with the account that AccountOf returns. It doesn't look that up for the sender of the turn that was
// last counted, nor if known, which may be nil, has it.
func (s *Session) PayerOf(ctx context.Context, person string, known *Payer) (Payer, error) {
	if s.Payer.Person == person && s.Payer.Account != "" {
		return s.Payer, nil
	}
	if known != nil && known.Person == person {
		return *known, nil
	}
	account, err := s.AccountOf(ctx, person)
	return Payer{Person: person, Account: account}, err
}

// HasNoPeople reports whether no person takes part in the session.
func (s *Session) HasNoPeople() bool { return s.Config.Deserted != nil && s.Config.Deserted(s.Key()) }

// Offered returns the specs of the tools in a set that the model is shown. If nobody can be asked, it leaves
// out tools that only ask people.
func (s *Session) Offered(set *tools.Set) []tools.Spec {
	if s.Config.Asks != nil && !s.HasNoPeople() {
		return set.Specs()
	}
	return slices.DeleteFunc(slices.Clone(set.Specs()), func(spec tools.Spec) bool {
		tool, _ := set.Lookup(spec.Name)
		_, asks, _ := tools.QuestionOf(tool, tools.Call{Name: spec.Name, Args: json.RawMessage(`{}`)}) // what is wrong with the arguments does not matter
		return asks
	})
}

// AppendWith appends entries to the log and changes budgets in the same write, if the log can do both; otherwise it
// only appends. choose returns the log or a variant of it, and so decides whether the entries are durable when
// AppendWith returns. done says which part of the change was certainly made.
func (s *Session) AppendWith(ctx context.Context, c bill.Change, choose func(sessions.Log) sessions.Log, entries ...sessions.Entry) (done bill.Changed, err error) {
	err = s.Journal.AppendBy(ctx, func(ctx context.Context, log sessions.Log, at int64, entries []sessions.Entry) (err error) {
		log = choose(log)
		with, ok := log.(bill.Log)
		if !ok {
			return log.Append(ctx, at, entries...)
		}
		done, err = with.AppendWith(ctx, at, c, entries...)
		return err
	}, entries...)
	return done, err
}

// Audit records a call whose result is in the log. It comes after the entry with the result (C5), because what
// is not in the log has not happened. The record is written in parallel with the turn, and before the turn says
// anything, so it may share the flush of the turn's end. If the process dies between the two writes, the record
// is lost, but the log contains the call and its result.
func (s *Session) Audit(t *Turn, c *Call, r sessions.AuditRecord) {
	if s.Config.Audit == nil {
		return
	}
	r.At, r.Kind, r.By = time.Now(), sessions.AuditTool, t.Person
	r.Agent, r.Session, r.Turn, r.Call, r.Tool = s.Agent.Name, s.Key(), t.ID, c.ID, c.Use.Name
	if r.Arguments == nil {
		r.Arguments = tools.AsJSON(c.Use.Args)
	}
	r.Arguments, _ = tools.Shorten(s.Redactor().JSON(r.Arguments), maxAuditedArgs, "")
	s.Audits.Record(r)
}

// AuditJudgement records that the model that judges calls was asked about a call of a turn: its verdict, and "ok" or
// why it gave none. The record has no text.
func (s *Session) AuditJudgement(t *Turn, c *Call, verdict tools.Decision, result string, took time.Duration) {
	if s.Config.Audit == nil {
		return
	}
	s.Audits.Record(sessions.AuditRecord{
		At: time.Now(), Kind: sessions.AuditJudgement, By: t.Person, Agent: s.Agent.Name, Session: s.Key(), Turn: t.ID, Call: c.ID, Tool: c.Use.Name,
		Verdict: string(verdict), Result: result, Elapsed: took.Milliseconds(),
	})
}

// writeAudit writes a record. If that fails, the call is not undone; the failure is logged and counted. The end
// of a run doesn't interrupt the write.
func (s *Session) writeAudit(r sessions.AuditRecord) {
	ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
	defer cancel()
	if err := s.Config.Audit(ctx, r); err != nil {
		s.Config.Observer.AuditLost()
		s.Log.Error("a tool call is in the log and not in the audit", slog.String("turn", r.Turn), slog.String("call", r.Call),
			slog.String("tool", r.Tool), slog.Any("error", err))
	}
}

const (
	// maxAuditedArgs is the largest size of the arguments in an audit record, in bytes.
	maxAuditedArgs = 4096
	// auditTimeout limits how long writing a record may take.
	auditTimeout = 10 * time.Second
)

// loggerFor returns a logger that adds the session's name to each record.
func loggerFor(log *slog.Logger, claim bus.Claim) *slog.Logger {
	return log.With(slog.String("session", claim.Key), slog.Int64("fence", claim.Fence))
}
