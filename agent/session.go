package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/audit"
	"parley/agent/journal"
	"parley/agent/route"
	"parley/agent/tally"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// A session is what the parts of a run share: the lease, the log, the agent that
// answers, and the ways to the outside.
type session struct {
	cfg     *Config
	lease   bus.Lease
	slog    *slog.Logger
	journal *journal.Journal
	agent   Agent
	trail   *audit.Trail // the audit records of calls
	// room is roughly how many tokens of messages fit into a request to the model.
	room int
	// ceiling is the greatest number of tokens of a request, learned from a refusal; 0 if
	// none.
	ceiling int
	count   tally.Count
	payer   payer // the sender of the turn that was counted last
	// folded is the turn that was folded last: each message has its turn folded several times,
	// often with nothing written in between.
	folded atomic.Pointer[foldedTurn]
}

// A foldedTurn is a turn with the records of which it was made.
type foldedTurn struct {
	turn    *turn
	records []journal.Record
}

// isOf reports whether records are those of which the turn was made. Records that were given out are
// never changed, so it is enough that they are at the same place.
func (f *foldedTurn) isOf(records []journal.Record) bool {
	return len(records) == len(f.records) && &records[0] == &f.records[0]
}

// fold makes the state of a turn from the session's journal. Others may have the same turn: who
// writes entries folds it again.
func (s *session) fold(id string) (*turn, error) {
	records := s.journal.Records()
	var known *route.Route
	if last := s.folded.Load(); last != nil && last.turn.id == id {
		if last.isOf(records) {
			return last.turn, nil
		}
		known = &last.turn.route // to decode it would be most of the work
	}
	t, err := fold(id, records, known)
	if err == nil && t.firstEntry > 0 {
		s.folded.Store(&foldedTurn{t, records})
	}
	return t, err
}

// key returns the session's key.
func (s *session) key() string { return s.lease.Claim().Key }

// maxResult is the greatest part of a result that a model is shown, in bytes.
const maxResult = 65536

// resultLimit returns how much of a result this session's model is shown, in bytes.
func (s *session) resultLimit() int { return min(maxResult, s.room*transcript.BytesPerToken/4) }

// point marks a line of the protocol, at which a test may kill the process.
func (s *session) point(name string) { s.cfg.Point(name) }

// emit sends an event of a turn to watchers.
func (s *session) emit(t *turn, e bus.Event) {
	e.Session, e.Turn, e.Route = s.key(), t.id, t.route.At
	s.cfg.Events.Emit(e)
}

// commandPrefix returns the characters that begin a command at an address.
func (s *session) commandPrefix(at bus.Address) string {
	if s.cfg.Prefix == nil {
		return "/"
	}
	return s.cfg.Prefix(at.Channel)
}

// publish publishes a message of this session on the bus. It checks the lease first: a
// holder that has lost the lease must not speak any more, because the next holder does.
func (s *session) publish(ctx context.Context, out bus.Outbound) error {
	if err := s.lease.Held(ctx); err != nil {
		return fmt.Errorf("before publishing %s: %w", out.ID, err)
	}
	if out.To.Channel == bus.SubAgents {
		return nil // nobody is there
	}
	return publish(ctx, s.cfg.Bus, s.complete(out))
}

// complete returns an outbound message with what all messages of a session have.
func (s *session) complete(out bus.Outbound) bus.Outbound {
	out.Session, out.At, out.Text = s.key(), time.Now(), s.redactor().Text(out.Text)
	return out
}

// publish puts an outbound message on the bus. It marks an error as errBusAway if the
// bus did not refuse the message, because then the bus cannot be reached.
func publish(ctx context.Context, b bus.Bus, out bus.Outbound) error {
	err := bus.PublishOutbound(ctx, b, out)
	if err == nil || bus.IsRefusal(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errBusAway, err)
}

// recordChanges has History record what a turn has changed in the session's files. That
// is done before anybody hears of the turn's end and can change more.
func (s *session) recordChanges(ctx context.Context, id string) {
	if s.cfg.History == nil {
		return
	}
	err := s.lease.Held(ctx)
	if err == nil {
		err = s.cfg.History.End(ctx, s.key(), id)
	}
	if err != nil && ctx.Err() == nil {
		s.slog.Warn("what a turn has changed in its workspace is not noted yet", slog.String("turn", id), slog.Any("error", err))
	}
}

// parkedTurns returns the turns of the session that wait for people.
func (s *session) parkedTurns() ([]*turn, error) {
	var parked []*turn
	for _, id := range parkedIDs(s.journal.Records()) {
		t, err := s.fold(id)
		if err != nil {
			return nil, err
		}
		if t.parked {
			parked = append(parked, t)
		}
	}
	return parked, nil
}

// parkedIDs returns the ids of the turns that were parked and not unparked since. Most
// sessions have none; asking this first saves folding their turns.
func parkedIDs(records []journal.Record) []string {
	var ids []string
	for _, r := range records {
		switch r.Kind {
		case sessions.KindTurnParked:
			ids = append(ids, r.Turn)
		case sessions.KindTurnUnparked, sessions.KindTurnDone:
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == r.Turn })
		}
	}
	return ids
}

// Why a run ends before all of its mail is handled.
var (
	errShutdown = errors.New("shutting down")
	errLater    = errors.New("the person has enough turns at once")
	errStopped  = errors.New("stopped by /stop")
	errTooLong  = errors.New("the turn took too long")
	errBusAway  = errors.New("the bus is away")
	errParked   = errors.New("the turn waits for people")
	// errUnreserved is the error of a model call for which nothing could be set aside, because a budget
	// gave no answer.
	errUnreserved = errors.New("what the call may use cannot be set aside")
	// errUnsendable is the error of a turn that is over and whose answer no bus accepts.
	errUnsendable = errors.New("the answer can never be sent")
)

// An openError is the error of a session whose log cannot be opened or understood.
type openError struct{ err error }

// Error returns the reason.
func (e *openError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *openError) Unwrap() error { return e.err }

// A buryError says that a message must become a dead letter.
type buryError struct {
	seq    int64
	reason string
}

// Error returns why the message must become a dead letter.
func (e *buryError) Error() string { return e.reason }

// A modelUnavailable is the error that ends the steps of a turn while none of its models can be
// reached. The turn is not over: it waits, and asks a model again later.
type modelUnavailable struct {
	after time.Duration // when to ask again
	until time.Time     // when the turn is given up
}

// Error returns the reason.
func (e *modelUnavailable) Error() string { return "no model gives an answer" }

// An ending says why a turn ends without a last answer of the model. As an error it ends
// the turn's steps.
type ending struct {
	state string
	code  string
	text  string // for the person; "" tells nothing
}

// Error returns the code.
func (e *ending) Error() string { return "turn " + e.state + ": " + e.code }

// failure returns the ending of a failed turn, with a text for the person.
func failure(code, format string, args ...any) *ending {
	return &ending{state: sessions.TurnFailed, code: code, text: fmt.Sprintf(format, args...)}
}

// A turnStop lets a command end the running turn.
type turnStop struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil while no turn runs
}

// set sets the function that ends the running turn; nil if none runs any more.
func (s *turnStop) set(cancel context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
}

// stop ends the running turn, if there is one.
func (s *turnStop) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(errStopped)
	}
}

// redactor returns the agent's Redactor, or one that changes nothing.
func (s *session) redactor() Redactor {
	if s.agent.Redact == nil {
		return noRedaction{}
	}
	return s.agent.Redact
}

// noRedaction is a Redactor that changes nothing.
type noRedaction struct{}

func (noRedaction) Text(text string) string                  { return text }
func (noRedaction) JSON(raw json.RawMessage) json.RawMessage { return raw }
func (noRedaction) Stream() func(piece string, last bool) string {
	return func(p string, _ bool) string { return p }
}

// An outcome is what has come of a tool call: its result, or its failure.
type outcome struct {
	result  tools.Result
	failed  *tools.Error
	changed bool // the hooks changed the result; it counts even beside a failure
}

// content returns the result as the model is shown it.
func (o *outcome) content() json.RawMessage {
	if o.failed != nil && !o.changed {
		return o.failed.Result().Content
	}
	return o.result.Content
}

// resultEntry returns the entry with the outcome of a call (C5).
func resultEntry(t *turn, c *call, content []byte, o *outcome) sessions.Entry {
	r := sessions.ToolResult{Content: content, Untrusted: o.result.Untrusted}
	if o.failed != nil {
		r.Code = string(o.failed.Code)
	}
	e := journal.NewEntry(t.id, sessions.KindToolResult, r)
	e.Call = c.id
	return e
}

// newCallID returns a new random id of a call.
func newCallID() string { return "c" + strings.ToLower(rand.Text()[:15]) }

// safeArgs returns what the model wrote as JSON: itself if it is JSON, or else a JSON
// string.
func safeArgs(args json.RawMessage) json.RawMessage {
	if json.Valid(args) {
		return args
	}
	raw, err := json.Marshal(string(args))
	if err != nil { // a string always marshals
		panic(err)
	}
	return raw
}

// resultEntries returns the entries of a call that ran (C5): its outcome and the
// pictures that it shows.
func resultEntries(t *turn, c *call, content []byte, o *outcome) []sessions.Entry {
	entries := []sessions.Entry{resultEntry(t, c, content, o)}
	if o.failed != nil || o.changed {
		return entries
	}
	for _, p := range o.result.Pictures {
		e := journal.NewEntry(t.id, sessions.KindPicture, sessions.Picture(p))
		e.Call = c.id
		entries = append(entries, e)
	}
	return entries
}

// howToBegin returns the log to which the beginning of a turn is written. As a rule nobody
// waits for the disk: after a crash the messages come again, and the model is asked again
// as it would be anyway. But a turn that more ends is over with it, files are kept where
// the numbers of their entries say, and a turn that kills its process must be known to
// have begun.
func (s *session) howToBegin(entries, more []sessions.Entry) func(sessions.Log) sessions.Log {
	isFile := func(e sessions.Entry) bool { return e.Kind == sessions.KindAttached }
	if len(more) > 0 || slices.ContainsFunc(entries, isFile) || s.lease.Claim().Attempts > 1 {
		return atOnce
	}
	return journal.Soon
}

// atOnce returns the log as one whose entries are durable once they are appended.
func atOnce(log sessions.Log) sessions.Log { return log }

// defaultExpiry is how long an ask waits for an answer if no time is configured.
const defaultExpiry = 24 * time.Hour

// approvals returns how approvals are asked for, with the default expiry.
func (s *session) approvals() Approvals {
	a := Approvals{}
	if s.cfg.Approvals != nil {
		a = s.cfg.Approvals()
	}
	if a.Expires <= 0 {
		a.Expires = defaultExpiry
	}
	return a
}

// A payer is a person with the person under whose name they are counted.
type payer struct{ person, account string }

// accountOf returns the id under which a person is counted and limited, which is the same
// for all their accounts on platforms.
func (s *session) accountOf(ctx context.Context, person string) (string, error) {
	if s.cfg.Account == nil {
		return person, nil
	}
	account, err := s.cfg.Account(ctx, person)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBusAway, err)
	}
	return account, nil
}

// isDeserted reports whether no person takes part in the session.
func (s *session) isDeserted() bool { return s.cfg.Deserted != nil && s.cfg.Deserted(s.key()) }

// replyMessage returns the message in which a reply goes to the chat of a turn that has ended.
func (t *turn) replyMessage(r sessions.Reply, state string) (bus.Outbound, error) {
	out := bus.Outbound{ID: r.ID, To: t.route.At, Text: r.Text, ReplyTo: t.route.ReplyTo, Turn: t.id, Failed: state == sessions.TurnFailed}
	if len(t.causes) > 1 {
		out.Causes = t.causes
	}
	if len(r.Files) > 0 {
		if err := json.Unmarshal(r.Files, &out.Files); err != nil {
			return out, fmt.Errorf("decode the files of %s: %w", r.ID, err)
		}
	}
	return out, nil
}
