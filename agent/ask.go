package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/purse"
	"parley/agent/shortfall"
	"parley/agent/stream"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
)

// answerTokens is the assumed size of an answer until it is there, in tokens.
const answerTokens = 4096

// An asker asks the model for the answers of one turn.
type asker struct {
	*session
	purse purse.Purse
	// account is the id of the person for whom the turn's cost is counted, who may have
	// several accounts on platforms; "" until it is looked up.
	// It stays the same for all steps of the turn: what one step has reserved, another may
	// spend.
	account string
}

// A turnRun runs one turn, from the state in the log to its end.
type turnRun struct {
	*session
	inbox *inbox
	stop  *turnStop
	calls *callRunner
	model *asker
}

// newAsker makes an asker with an empty purse.
func newAsker(s *session) *asker {
	return &asker{session: s, purse: purse.Purse{Tokens: s.cfg.Budget, Money: s.cfg.Money, Log: s.slog}}
}

// ask asks the model for the turn's next answer, within the person's budget. It returns
// an *llm.Error if the request is too long. Any other failure of the model is an
// *ending, which ends the turn with a message to people.
func (a *asker) ask(ctx context.Context, t *turn, r *llm.Request) (*llm.Answer, error) {
	events := stream.New(a.cfg.streams, t.blocks, func(e bus.Event) { a.emit(t, e) }, a.redactor().Stream)
	defer events.Close()
	if t.resumed {
		events.Reset() // watchers may have seen part of an answer that was cut off
	}
	if err := a.reserve(ctx, t, r); err != nil {
		return nil, err
	}
	answer, err := a.generate(ctx, t, r, events)
	if err == nil && answer.Stop != llm.StopWhole && answer.HasCalls() {
		// Calls in an answer that was cut off may be cut off themselves.
		answer, err = a.askWithMoreRoom(ctx, t, r, answer, events)
	}
	if err != nil {
		return nil, err
	}
	events.End()
	a.spend(t, answer)
	return answer, nil
}

// askWithMoreRoom asks once more, with more room for the answer, after calls in an
// answer were cut off.
func (a *asker) askWithMoreRoom(ctx context.Context, t *turn, asked *llm.Request, answer *llm.Answer, events *stream.Stream) (*llm.Answer, error) {
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
	if isOverflow(err) { // because of the length that was asked for
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
		return nil, failure("answer_too_long", "The model's answer was longer than it may be, twice. Ask for less at once.")
	}
	return nil, failure("answer_cut_off", "The model's answer was cut off twice while it asked for tools, so nothing of it was done. %s", shortfall.Text(*answer.WithoutCalls(), false))
}

// discard drops an answer that is not used. Its cost is recorded all the same, without
// counting as a step of the turn.
func (a *asker) discard(ctx context.Context, t *turn, answer *llm.Answer, events *stream.Stream) error {
	events.Reset()
	return a.recordVoid(ctx, t, answer)
}

// reserve sets aside what a request may cost, from all budgets that bound the turn. If a
// budget is spent, it returns an *ending that says so to people.
func (a *asker) reserve(ctx context.Context, t *turn, r *llm.Request) error {
	if a.account == "" && a.payer.person == t.person { // the turn has just been counted
		a.account = a.payer.account
	}
	if a.account == "" {
		var err error
		if a.account, err = a.accountOf(ctx, t.person); err != nil {
			return err
		}
	}
	want := a.amount(a.countTokens(r), max(answerTokens, r.MaxTokens))
	err := a.purse.Take(ctx, a.reservation(t.id, t.modelCalls+1), want, a.bounds(t.person, t.parent()))
	if over, ok := errors.AsType[*purse.OverError](err); ok {
		return failure("over_budget", "%s", over.Words(t.route.Owner))
	} else if err != nil {
		return fmt.Errorf("%w: %w", errUnreserved, err)
	}
	return nil
}

// amount returns so many tokens of a request and of its answer together with what they
// cost.
func (a *asker) amount(input, output int) purse.Amount {
	u := llm.Usage{Input: int64(input), Output: int64(output)}
	return purse.Amount{Tokens: u.Input + u.Output, Micro: a.agent.Model.Info().Price.Of(u)}
}

// countTokens estimates how many tokens a request has.
func (a *asker) countTokens(r *llm.Request) int {
	return a.count.Of(a.modelName(), transcript.Estimate(r))
}

// modelName returns the name of the model that is asked first.
func (a *asker) modelName() string { return a.agent.Model.Info().Name }

// bounds returns the budgets of a person's turn, which may work for another session.
func (a *asker) bounds(person, parent string) purse.Bounds {
	limits := a.cfg.Limits()
	b := purse.Bounds{Person: a.account, Caps: limits.caps(a.account, cmp.Or(parent, a.key()), a.agent)}
	own, named := limits.Own[person]
	if b.Owner = own.Owner; named || limits.TokensAlways || !a.agent.Model.Info().Priced {
		b.TokensDay = limits.tokensPerDay(person)
	}
	return b
}

// reservation returns the name under which budgets hold what is reserved for a model
// call. The fence of the session's lease is in the name: else a turn that another holder
// resumes would take the reservation of the first holder for its own.
func (a *asker) reservation(turn string, call int) string {
	return fmt.Sprintf("%s#%d.%d", turn, a.lease.Claim().Fence, call)
}

// reservationAhead returns the change of the budgets that reserves what a turn with these messages
// may use, judged by the conversation's last answer. It lets the beginning of the turn and
// the reservation be one write. The change is empty if there is no such answer, if it is
// not known for whom the turn is counted, or for a sub-agent's task: then reserve, before
// the model is asked, reserves by itself.
func (a *asker) reservationAhead(b batch) bill.Change {
	first := b.items[0].in
	if a.payer.person != first.From.ID || a.payer.account == "" || first.Kind == bus.Tasked {
		return bill.Change{}
	}
	records := a.journal.Records()
	for i := len(records) - 1; i >= 0; i-- {
		used, ok := records[i].Data.(sessions.Usage)
		if !ok || used.Model != a.modelName() || records[i].Turn == "" {
			continue
		}
		input := int(used.Input + used.Output)
		for _, it := range b.items {
			input += len(it.in.Text) / transcript.BytesPerToken
		}
		a.account = a.payer.account
		return a.purse.ReservationAhead(a.reservation(first.ID, 1), a.amount(input, answerTokens), a.bounds(first.From.ID, ""))
	}
	return bill.Change{}
}

// generate asks the model for an answer. If the model asks more than once and drops answers
// on the way, their cost is recorded; their calls must not run.
func (a *asker) generate(ctx context.Context, t *turn, r *llm.Request, events *stream.Stream) (*llm.Answer, error) {
	full := a.fullRequest(t, r, events)
	r.Release() // the model releases its own
	answer, err := a.agent.Model.Generate(ctx, full, events.Delta)
	if err == nil {
		return answer, nil
	}
	events.Reset()
	return nil, a.afterFailure(ctx, t, err)
}

// fullRequest returns a request with its session, and with what is done before a model is asked
// again.
func (a *asker) fullRequest(t *turn, asked *llm.Request, events *stream.Stream) *llm.Request {
	asked.Restore()
	r := *asked
	r.Session = a.key()
	r.Retry = func(ctx context.Context, again llm.Retry) error {
		events.Reset()
		a.emitRetry(t, again)
		if again.Void == nil {
			return nil
		}
		if err := a.recordVoid(ctx, t, again.Void); err != nil {
			return err
		}
		defer asked.Release() // which is counted again; the next answer is waited for just as long
		return a.reserve(ctx, t, asked)
	}
	return &r
}

// afterFailure records what the model has cost that gave no answer, and returns the error that
// ends the step.
func (a *asker) afterFailure(ctx context.Context, t *turn, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err
	}
	if err := a.recordVoid(ctx, t, fault.Void); err != nil {
		return err
	}
	if fault.Fault == llm.Overflow {
		return err
	}
	a.slog.Warn("the model gave no answer", slog.String("turn", t.id), slog.Any("error", err))
	return a.endOrWait(fault, t)
}

// Bounds of the time after which a model that gave no answer is asked again. In between
// it is a quarter of the time for which the turn has waited.
const (
	leastAway = time.Second
	mostAway  = 5 * time.Minute
)

// endOrWait returns the ending of a turn whose model gives no answer, or a *modelUnavailable if
// the same request may be answered later and the turn may wait for that.
func (a *asker) endOrWait(fault *llm.Error, t *turn) error {
	waited := time.Since(t.started) - t.waitingTime()
	left := a.cfg.Limits().ModelWait - waited
	if fault.Fault != llm.Busy || left <= 0 {
		return a.endingOf(fault, t)
	}
	after := max(leastAway, min(waited/4, mostAway), fault.RetryAfter)
	return &modelUnavailable{after: min(after, max(left, leastAway)), until: time.Now().Add(left)}
}

// endingOf returns the ending of a turn whose model gives no answer.
func (a *asker) endingOf(fault *llm.Error, t *turn) *ending {
	// Only the people who run the bot are told the provider's words, and only in private.
	tell := t.route.Owner && t.route.IsPrivate()
	code, text := shortfall.Why(fault, a.commandPrefix(t.route.At), tell)
	return failure(code, "%s", text)
}

// loadPictures reads the pictures that the model is shown. A picture whose file is
// missing or changed, and every picture if the model sees none, is replaced by a text.
func (a *asker) loadPictures(ctx context.Context, messages []llm.Message) {
	why := "it is not there any more as it was shown"
	blind := a.agent.Picture == nil || a.agent.Model.Info().Blind
	if blind {
		why = "you cannot see pictures"
	}
	for _, m := range messages {
		for i, b := range m.Blocks {
			if b.Kind != llm.BlockPicture {
				continue
			}
			if !blind {
				b.Picture.Data = a.agent.Picture(ctx, a.key(), *b.Picture)
			}
			if len(b.Picture.Data) == 0 {
				m.Blocks[i] = llm.Block{Kind: llm.BlockText, Text: transcript.NamePicture(b.Picture.Path, why)}
			}
		}
	}
}

// recordVoid writes to the log what an answer has cost that is not used, without counting
// it as a step of the turn. It does nothing if answer is nil.
func (a *asker) recordVoid(ctx context.Context, t *turn, answer *llm.Answer) error {
	if answer == nil {
		return nil
	}
	a.spend(t, answer)
	return a.journal.Append(ctx, a.usageEntry("", t.person, *answer))
}

// spend takes what an answer has used from the turn's reservation, and reports it to watchers.
func (a *asker) spend(t *turn, answer *llm.Answer) {
	a.purse.Spend(answer.Usage)
	u := a.usageOf(*answer)
	a.emit(t, bus.Event{Type: bus.Used, Usage: &bus.Usage{
		Model: u.Model, Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, Microdollars: u.Cost, Estimated: u.Estimated,
	}})
}

// usageOf returns, in the form that the log keeps, which model has answered, how many
// tokens the answer has taken, and what it has cost if that is known.
func (a *asker) usageOf(answer llm.Answer) sessions.Usage {
	u := answer.Usage
	used := sessions.Usage{
		Model: cmp.Or(answer.Model, a.agent.Model.Info().Name), Agent: a.agent.Name,
		Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, Estimated: u.Estimated,
	}
	if u.Priced {
		used.Cost = &u.Cost
	}
	return used
}

// emitRetry reports to watchers that a model is asked again, and after which wait.
func (a *asker) emitRetry(t *turn, again llm.Retry) {
	a.emit(t, bus.Event{Type: bus.Retried, Retry: &bus.Retry{Attempt: again.Try, AfterMS: again.Wait.Milliseconds(), From: again.From, To: again.To}})
}

// isOverflow reports whether a request was too long for the model.
func isOverflow(err error) bool {
	fault, ok := errors.AsType[*llm.Error](err)
	return ok && fault.Fault == llm.Overflow
}

// answerEntries returns a model's answer as entries for the log, without secrets, and the
// number of its tool calls. In the turn's last step, calls are left out.
func (a *asker) answerEntries(t *turn, answer llm.Answer) (entries []sessions.Entry, calls int) {
	for _, b := range answer.Blocks {
		switch b.Kind {
		case llm.BlockThinking:
			entries = append(entries, journal.NewEntry(t.id, sessions.KindThinking, sessions.Thinking{Text: b.Text, Provider: b.Provider}))
		case llm.BlockText:
			entries = append(entries, journal.NewEntry(t.id, sessions.KindText, sessions.Text{Text: a.redactor().Text(b.Text), Provider: b.Provider}))
		case llm.BlockToolUse:
			if t.lastStep {
				continue
			}
			calls++
			e := journal.NewEntry(t.id, sessions.KindToolUse, sessions.ToolUse{
				Name: b.Name, Args: safeArgs(b.Args), ProviderID: b.ProviderID, Provider: b.Provider,
			})
			e.Call = newCallID()
			entries = append(entries, e)
		}
	}
	return append(entries, a.usageEntry(t.id, t.person, answer)), calls
}

// appendWith appends entries to the log and changes budgets in the same write, if the log can do
// both; else it only appends. choose returns the log or a variant of it, and so decides whether the
// entries are durable when it returns. done says which part of the change was certainly made.
func (s *session) appendWith(ctx context.Context, c bill.Change, choose func(sessions.Log) sessions.Log, entries ...sessions.Entry) (done bill.Done, err error) {
	err = s.journal.AppendBy(ctx, func(ctx context.Context, log sessions.Log, at int64, entries []sessions.Entry) (err error) {
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

// appendLast writes the turn's last answer and its end, and settles what the turn has reserved.
func (a *asker) appendLast(ctx context.Context, t *turn, end sessions.TurnDone, entries []sessions.Entry) error {
	done, err := a.appendEnd(ctx, t, a.purse.Settlement(), end, entries)
	a.purse.Settled(done)
	return err
}

// usageEntry returns the entry about an answer's tokens and cost.
func (a *asker) usageEntry(turn, person string, answer llm.Answer) sessions.Entry {
	e := journal.NewEntry(turn, sessions.KindUsage, a.usageOf(answer))
	e.Person = person
	return e
}
