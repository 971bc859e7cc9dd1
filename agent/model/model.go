// Package model asks the model for the answers of a turn.
//
// model.go asks for one answer; window.go decides which part of the log the model is shown, and how that is
// shortened; title.go asks for titles, and judge.go for verdicts on tool calls; speech.go has answers read aloud;
// costs.go sets aside what the answer may cost, within the person's budgets, and records what it did cost.
package model

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"parley/agent/blocks"
	"parley/agent/budget"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/shortfall"
	"parley/agent/stream"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/tools/plainjson"
)

// An Asker asks the model for the answers of one turn.
type Asker struct {
	costs
	Memory       []transcript.Memory // what the agent remembers in the turn
	streams      *stream.Counter
	shown        *stream.Stream // shows the newest answer to watchers
	loggedBlocks []blocks.Block // the blocks of that answer in the log's form, made by AnswerEntries
	text         firstText
}

// Askers makes the askers of a process, and holds what they share.
type Askers struct {
	streams *stream.Counter
	Keeper  *budget.Keeper
}

// NewAskers returns Askers.
func NewAskers() *Askers { return &Askers{streams: new(stream.Counter), Keeper: budget.NewKeeper()} }

// New makes an asker for a session, with no reservation.
func (m *Askers) New(s *turn.Session) *Asker {
	return &Asker{streams: m.streams, costs: costs{Session: s, Reservations: budget.Reservations{
		Tokens: s.Config.Budget, Money: s.Config.Money, Session: s.Key(), Keeper: m.Keeper, Log: s.Log,
	}}}
}

// An UnavailableError ends a turn's steps while none of its models can be reached. The turn is not over: it waits, and
// asks a model again later.
type UnavailableError struct {
	RetryAfter   time.Duration // when to ask again
	GiveUpAt     time.Time     // when the turn is given up
	ProviderWait time.Duration // how long the provider asks clients to wait; 0 if it doesn't say
}

// Error returns the reason.
func (e *UnavailableError) Error() string { return "no model answers" }

// Answer asks the model with as much of the log as it can read. The provider has the last word on how much that
// is: if it says that a request is too long, the request is shortened and sent again. Its errors end the step.
func (a *Asker) Answer(ctx context.Context, t *turn.Turn, r *llm.Request) (*llm.Answer, error) {
	a.learnFromLog(r)
	tries := summaryTries{attempts: t.Summaries}
	var guess tooLongAssumption
	for overflows := 0; ; overflows++ {
		if err := a.prepare(ctx, t, r, &tries); err != nil {
			return nil, err
		}
		estimate := transcript.Estimate(r) // while its messages are not released yet
		answer, err := a.ask(ctx, t, r)
		if err == nil {
			a.Estimator.Add(cmp.Or(answer.Model, a.modelName()), estimate, answer.Usage) // learns how the provider counts tokens
			return answer, nil
		}
		if err := a.afterOverflow(ctx, t, r, err, overflows, &guess); err != nil {
			return nil, err
		}
	}
}

// ask asks the model for the turn's next answer, within the person's budget. It returns an *llm.Error if the
// request is too long, or may be. After any other failure of the model it returns a *turn.Ending, which ends
// the turn with a message to people, or an *UnavailableError if the turn is to wait.
func (a *Asker) ask(ctx context.Context, t *turn.Turn, r *llm.Request) (*llm.Answer, error) {
	events := stream.New(a.streams, t.Blocks.Next(), func(e bus.Event) { a.Emit(t, e) }, a.redactorFor)
	defer events.Close()
	if t.Resumed {
		events.Reset() // watchers may have seen part of an answer that was cut off
	}
	if err := a.recordCutOff(ctx, t, r); err != nil {
		return nil, err
	}
	if err := a.reserve(ctx, t, r); err != nil {
		return nil, err
	}
	answer, err := a.generate(ctx, t, r, events)
	if err == nil && answer.Stop != llm.StopWhole && answer.HasCalls() {
		// The calls in an answer that was cut off may themselves be cut off.
		answer, err = a.askWithMoreRoom(ctx, t, r, answer, events)
	}
	if err != nil {
		return nil, err
	}
	events.End()
	a.shown = events
	a.spend(t, answer)
	return answer, nil
}

// redactorFor returns a function that removes secrets from a growing block of that kind.
func (a *Asker) redactorFor(kind llm.BlockKind) func(piece string, last bool) string {
	if kind == llm.BlockToolUse {
		return a.Redactor().JSONStream()
	}
	return a.Redactor().Stream()
}

// AnnounceWritten tells watchers that the newest answer's entries are in the log.
func (a *Asker) AnnounceWritten() {
	if a.shown != nil {
		a.shown.Written(a.loggedBlocks)
	}
	a.shown, a.loggedBlocks = nil, nil
}

// askWithMoreRoom asks once more with more room for the answer, after an answer was cut off in its calls. If that
// happens again, it returns a *turn.Ending.
func (a *Asker) askWithMoreRoom(ctx context.Context, t *turn.Turn, asked *llm.Request, answer *llm.Answer, events *stream.Stream) (*llm.Answer, error) {
	if err := a.discard(ctx, t, answer, events); err != nil {
		return nil, err
	}
	longer := *asked
	r := &longer
	r.MaxTokens = 4 * answerTokens
	if err := a.reserve(ctx, t, r); err != nil {
		return nil, err
	}
	answer, err := a.generate(ctx, t, r, events)
	if fault, ok := errors.AsType[*llm.Error](err); ok && (fault.Fault == llm.Overflow || fault.MayBeLength()) { // because of the requested answer length
		r.MaxTokens = 0
		answer, err = a.generate(ctx, t, r, events)
	}
	if err != nil || answer.Stop == llm.StopWhole || !answer.HasCalls() {
		return answer, err
	}
	if err := a.discard(ctx, t, answer, events); err != nil {
		return nil, err
	}
	if answer.Stop == llm.StopLength {
		return nil, turn.Failed("answer_too_long", textTooLong)
	}
	return nil, turn.Failed("answer_cut_off", textCutOff, shortfall.Text(*answer.WithoutCalls(), false))
}

// discard drops an answer that is not used. Its cost is still recorded, but it doesn't count as a step of the
// turn.
func (a *Asker) discard(ctx context.Context, t *turn.Turn, answer *llm.Answer, events *stream.Stream) error {
	events.Reset()
	return a.recordUnused(ctx, t, answer)
}

// generate asks the model for an answer. If the model asks more than once and drops answers on the way, their
// cost is recorded; their calls must not run.
func (a *Asker) generate(ctx context.Context, t *turn.Turn, r *llm.Request, events *stream.Stream) (*llm.Answer, error) {
	a.text = firstText{}
	full := a.fullRequest(t, r, events)
	r.Release() // the model releases its own copy
	answer, err := a.Agent.Model.Generate(ctx, full, func(d llm.Delta) {
		a.answerBytes += len(d.Text) + len(d.Name)
		a.text.note(d)
		events.Delta(d)
	})
	if err == nil {
		return answer, nil
	}
	if ctx.Err() != nil {
		events.End() // what arrived stays visible; whoever continues the turn says that it is void
	} else {
		events.Reset()
	}
	return nil, a.afterFailure(ctx, t, err)
}

// fullRequest returns a request with its session's name and with the steps to take before a model is asked again.
func (a *Asker) fullRequest(t *turn.Turn, asked *llm.Request, events *stream.Stream) *llm.Request {
	asked.Restore()
	r := *asked
	r.Session, r.Turn = a.Key(), t.ID
	r.Retry = func(ctx context.Context, again llm.Retry) error {
		events.Reset()
		a.answerBytes, a.text = 0, firstText{}
		a.emitRetry(t, again)
		return a.reserveAgain(ctx, t, asked, again)
	}
	return &r
}

// afterFailure records the cost of a model call that gave no answer, and returns the error that ends the step, or err
// itself if the request was or may have been too long.
func (a *Asker) afterFailure(ctx context.Context, t *turn.Turn, err error) error {
	if ctx.Err() != nil {
		a.recordStopped(ctx, t)
		return context.Cause(ctx)
	}
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err
	}
	if err := a.recordUnused(ctx, t, fault.Void); err != nil {
		return err
	}
	if fault.Fault == llm.Overflow || fault.MayBeLength() {
		return err
	}
	return a.afterNoAnswer(t, fault)
}

// afterNoAnswer returns the error that ends the step of a turn whose model gave no answer.
func (a *Asker) afterNoAnswer(t *turn.Turn, fault *llm.Error) error {
	a.Log.Warn("the model gave no answer", slog.String("turn", t.ID), slog.Any("error", fault), slog.Duration("retry_after", fault.RetryAfter))
	return a.endOrWait(fault, t)
}

// Limits on how long to wait before a model that gave no answer is asked again. Between these limits, the wait
// is a quarter of the turn's age, not counting its waits for people and sub-agents. A provider may ask for a longer
// wait. No wait is longer than the turn may still wait, unless that is less than minRetryWait.
const (
	minRetryWait = time.Second
	maxRetryWait = 5 * time.Minute
)

// endOrWait returns the ending of a turn whose model gives no answer, or an *UnavailableError if the same
// request may be answered later and the turn may wait for that.
func (a *Asker) endOrWait(fault *llm.Error, t *turn.Turn) error {
	waited := time.Since(t.Started) - t.WaitingTime()
	left := a.Config.Limits().ModelWait - waited
	if fault.Fault != llm.Busy || left <= 0 {
		return a.endingOf(fault, t)
	}
	after := max(minRetryWait, min(waited/4, maxRetryWait), fault.RetryAfter)
	return &UnavailableError{RetryAfter: min(after, max(left, minRetryWait)), GiveUpAt: time.Now().Add(left), ProviderWait: fault.RetryAfter}
}

// endingOf returns the ending of a turn whose model gives no answer.
func (a *Asker) endingOf(fault *llm.Error, t *turn.Turn) *turn.Ending {
	// Only the people who run the bot see the provider's message, and only in private.
	tell := t.Route.Owner && t.Route.IsPrivate()
	code, text := shortfall.Why(fault, a.CommandPrefix(t.Route.At), tell)
	return turn.Failed(code, "%s", text)
}

// emitRetry tells watchers that a model is asked again, and after which wait.
func (a *Asker) emitRetry(t *turn.Turn, again llm.Retry) {
	a.Emit(t, bus.Event{Type: bus.Retried, Retry: &bus.Retry{Attempt: again.Try, AfterMS: again.Wait.Milliseconds(), From: again.From, To: again.To}})
}

// AnswerEntries returns a model's answer as entries for the log, its texts without secrets, and the number of its tool
// calls. In the turn's last step, calls are left out. The caller has to call Written once it has written the
// entries.
func (a *Asker) AnswerEntries(t *turn.Turn, answer llm.Answer) (entries []sessions.Entry, calls int) {
	a.loggedBlocks = nil
	for _, b := range answer.Blocks {
		switch b.Kind {
		case llm.BlockThinking:
			entries = append(entries, a.blockEntry(t, sessions.KindThinking, "", sessions.Thinking{Text: b.Text, Provider: b.Provider}))
		case llm.BlockText:
			entries = append(entries, a.blockEntry(t, sessions.KindText, "", sessions.Text{Text: b.Text, Provider: b.Provider}))
		case llm.BlockToolUse:
			if t.LastStep {
				continue
			}
			calls++
			entries = append(entries, a.blockEntry(t, sessions.KindToolUse, newCallID(), sessions.ToolUse{
				Name: b.Name, Args: argsAsJSON(b.Args), ProviderID: b.ProviderID, Provider: b.Provider,
			}))
		}
	}
	return append(entries, a.usageEntry(t.ID, t.Person, answer, a.text.after(t, &answer))), calls
}

// blockEntry returns the entry for a block of the answer, and remembers how watchers should see it. The log
// contains a text as watchers see it, without secrets.
func (a *Asker) blockEntry(t *turn.Turn, kind sessions.Kind, call string, data any) sessions.Entry {
	b, _ := blocks.Show(data, a.Redactor())
	b.Call = call
	a.loggedBlocks = append(a.loggedBlocks, b)
	if said, is := data.(sessions.Text); is {
		said.Text = b.Text
		data = said
	}
	e := journal.NewEntry(t.ID, kind, data)
	e.Call = call
	return e
}

// newCallID returns a new random id of a call.
func newCallID() string { return "c" + strings.ToLower(rand.Text()[:15]) }

// argsAsJSON returns what the model wrote as JSON: unchanged if it is JSON, or else as a JSON string.
func argsAsJSON(args json.RawMessage) json.RawMessage {
	if json.Valid(args) {
		return args
	}
	raw, err := plainjson.Marshal(string(args))
	if err != nil { // a string always marshals
		panic(err)
	}
	return raw
}
