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
	"time"

	"parley/agent/audit"
	"parley/agent/journal"
	"parley/agent/tally"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// A session is what the parts of a run share: the lease that they work under, the
// log that they write to, the agent that answers, and the ways to the outside.
type session struct {
	cfg     *Config
	lease   bus.Lease
	slog    *slog.Logger
	journal *journal.Journal
	agent   Agent
	trail   *audit.Trail // of calls
	// room is about how many tokens of messages the model can be shown.
	room int
	// ceiling is how many tokens a request may have, where a refusal taught that; else 0.
	ceiling int
	count   tally.Count
}

func (s *session) key() string { return s.lease.Claim().Key }

// maxResult is the most of a result that a model is shown, in bytes.
const maxResult = 65536

// resultLimit is the most of a result that the model is shown, in bytes.
func (s *session) resultLimit() int { return min(maxResult, s.room*transcript.BytesPerToken/4) }

// point names a line of the protocol at which a test may kill the process.
func (s *session) point(name string) { s.cfg.Point(name) }

// emit publishes news of a turn for those who watch.
func (s *session) emit(t *turn, e bus.Event) {
	e.Session, e.Turn, e.Route = s.key(), t.id, t.route.At
	s.cfg.Events.Emit(e)
}

// commandPrefix is what people begin a command with where they are.
func (s *session) commandPrefix(at bus.Address) string {
	if s.cfg.Prefix == nil {
		return "/"
	}
	return s.cfg.Prefix(at.Channel)
}

// publish puts a message of this session on the bus. It asks for the lease first:
// whoever has lost it must not speak any more, since the next holder does.
func (s *session) publish(ctx context.Context, out bus.Outbound) error {
	if err := s.lease.Held(ctx); err != nil {
		return fmt.Errorf("before publishing %s: %w", out.ID, err)
	}
	out.Session, out.At, out.Text = s.key(), time.Now(), s.redactor().Text(out.Text)
	return publish(ctx, s.cfg.Bus, out)
}

// publish puts an outbound message on the bus. An error that the bus itself does
// not name means that it cannot be reached.
func publish(ctx context.Context, b bus.Bus, out bus.Outbound) error {
	err := bus.PublishOutbound(ctx, b, out)
	if err == nil || bus.IsRefusal(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errBusAway, err)
}

// parkedTurns are the turns of the session that wait.
func (s *session) parkedTurns() ([]*turn, error) {
	records := s.journal.Records()
	var parked []*turn
	for _, id := range parkedIDs(records) {
		t, err := fold(id, records)
		if err != nil {
			return nil, err
		}
		if t.parked {
			parked = append(parked, t)
		}
	}
	return parked, nil
}

// parkedIDs are the turns that have been parked and not unparked since. Most
// sessions have none, so nothing is folded to find that out.
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

// Why a run ends before its mail is through.
var (
	errShutdown = errors.New("shutting down")
	errLater    = errors.New("the person has enough turns at once")
	errStopped  = errors.New("stopped by /stop")
	errTooLong  = errors.New("the turn took too long")
	errBusAway  = errors.New("the bus is away")
	errParked   = errors.New("the turn waits for people")
	// errUnsendable says that a turn is over and that no bus takes its answer.
	errUnsendable = errors.New("the answer can never be sent")
)

// openError says that a session's log cannot be opened or understood.
type openError struct{ err error }

// Error is the reason.
func (e *openError) Error() string { return e.err.Error() }

// Unwrap gives the reason.
func (e *openError) Unwrap() error { return e.err }

// buryError says that a message is to become a dead letter.
type buryError struct {
	seq    int64
	reason string
}

// Error is the reason.
func (e *buryError) Error() string { return e.reason }

// An ending is why a turn ends without the model's own last word. As an error
// it ends the turn's steps.
type ending struct {
	state string
	code  string
	text  string // for the person; "" says nothing
}

// Error is the code.
func (e *ending) Error() string { return "turn " + e.state + ": " + e.code }

// failure is an ending that tells the person why.
func failure(code, format string, args ...any) *ending {
	return &ending{state: sessions.TurnFailed, code: code, text: fmt.Sprintf(format, args...)}
}

// A turnStop lets a command end the turn that runs beside it.
type turnStop struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil while no turn runs
}

// set says how the turn that runs is ended; nil says that none runs any more.
func (s *turnStop) set(cancel context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
}

// stop ends the turn that runs, if one does.
func (s *turnStop) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(errStopped)
	}
}

// redactor is the agent's, or one that takes out nothing.
func (s *session) redactor() Redactor {
	if s.agent.Redact == nil {
		return asItIs{}
	}
	return s.agent.Redact
}

type asItIs struct{}

func (asItIs) Text(text string) string                  { return text }
func (asItIs) JSON(raw json.RawMessage) json.RawMessage { return raw }
func (asItIs) Stream() func(piece string, last bool) string {
	return func(p string, _ bool) string { return p }
}

// An outcome is what came of a call.
type outcome struct {
	result  tools.Result
	failed  *tools.Error
	changed bool // result stands for what failed says as well
}

// content is what it says to the model.
func (o *outcome) content() json.RawMessage {
	if o.failed != nil && !o.changed {
		return o.failed.Result().Content
	}
	return o.result.Content
}

// resultEntry is C5 of a call: what came of it, as an entry.
func resultEntry(t *turn, c *call, content []byte, o *outcome) sessions.Entry {
	r := sessions.ToolResult{Content: content, Untrusted: o.result.Untrusted}
	if o.failed != nil {
		r.Code = string(o.failed.Code)
	}
	e := journal.NewEntry(t.id, sessions.KindToolResult, r)
	e.Call = c.id
	return e
}

func newCallID() string { return "c" + strings.ToLower(rand.Text()[:15]) }

// safeArgs keeps what the model wrote as JSON, whatever it is.
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

// resultEntries are C5 of a call that ran: its result, and the pictures that it shows.
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

// askLives is how long people are asked where no other time is set.
const askLives = 24 * time.Hour

// approvals is how approvals are asked for.
func (s *session) approvals() Approvals {
	a := Approvals{}
	if s.cfg.Approvals != nil {
		a = s.cfg.Approvals()
	}
	if a.Expires <= 0 {
		a.Expires = askLives
	}
	return a
}

// account is the person in whose name another is counted.
func (s *session) account(ctx context.Context, person string) (string, error) {
	if s.cfg.Account == nil {
		return person, nil
	}
	account, err := s.cfg.Account(ctx, person)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBusAway, err)
	}
	return account, nil
}

// deserted tells that no person takes part in the session.
func (s *session) deserted() bool { return s.cfg.Deserted != nil && s.cfg.Deserted(s.key()) }

// encodePlaces writes addresses into the log; none is the conversation itself.
func encodePlaces(places []bus.Address) json.RawMessage {
	if len(places) == 0 {
		return nil
	}
	raw, err := json.Marshal(places)
	if err != nil { // texts always marshal
		panic(err)
	}
	return raw
}
