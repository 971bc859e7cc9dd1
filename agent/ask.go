package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/purse"
	"parley/agent/stream"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
)

// answerTokens is what an answer is taken to cost until it is there.
const answerTokens = 4096

// An asker asks the model for the answers of one turn.
type asker struct {
	*session
	purse purse.Purse
	// payer is the person in whose name the turn is counted; "" until it is looked up. It
	// stays the same for the turn's steps: what one step has reserved another may spend.
	payer string
}

func newAsker(s *session) *asker {
	return &asker{session: s, purse: purse.Purse{Tokens: s.cfg.Budget, Money: s.cfg.Money, Log: s.slog}}
}

// ask asks the model for the turn's next answer, within its person's budget. An answer that cannot be had ends the
// turn, said aloud; a request that is too long is an *llm.Error.
func (a *asker) ask(ctx context.Context, t *turn, r llm.Request) (llm.Answer, error) {
	events := stream.New(a.cfg.pace, t.blocks, func(e bus.Event) { a.emit(t, e) }, a.redactor().Stream)
	defer events.Close()
	if t.resumed {
		events.Reset() // watchers may have seen part of an answer that was cut off
	}
	if err := a.reserve(ctx, t, r); err != nil {
		return llm.Answer{}, err
	}
	answer, err := a.generate(ctx, t, r, events)
	if err == nil && answer.Stop != llm.StopWhole && has(answer, llm.BlockToolUse) {
		// Calls of an answer that was cut off may be cut off themselves.
		answer, err = a.askWithMoreRoom(ctx, t, r, answer, events)
	}
	if err != nil {
		return llm.Answer{}, err
	}
	events.End()
	a.purse.Spend(answer.Usage)
	return answer, nil
}

// askWithMoreRoom asks once more, with more room, where an answer's calls were cut off.
func (a *asker) askWithMoreRoom(ctx context.Context, t *turn, r llm.Request, answer llm.Answer, events *stream.Stream) (llm.Answer, error) {
	if err := a.discard(ctx, t, answer, events); err != nil {
		return llm.Answer{}, err
	}
	r.MaxTokens = 4 * answerTokens
	if err := a.reserve(ctx, t, r); err != nil {
		return llm.Answer{}, err
	}
	answer, err := a.generate(ctx, t, r, events)
	if isOverflow(err) { // for the length that was asked for
		r.MaxTokens = 0
		answer, err = a.generate(ctx, t, r, events)
	}
	if err != nil || answer.Stop == llm.StopWhole || !has(answer, llm.BlockToolUse) {
		return answer, err
	}
	if err := a.discard(ctx, t, answer, events); err != nil {
		return llm.Answer{}, err
	}
	if answer.Stop == llm.StopLength {
		return llm.Answer{}, failure("answer_too_long", "The model's answer was longer than it may be, twice. Ask for less at once.")
	}
	return llm.Answer{}, failure("answer_cut_off", "The model's answer was cut off twice while it asked for tools, so nothing of it was done. %s", shortfall(withoutCalls(answer), false))
}

// discard drops an answer that has come and is not used. It was paid for all the
// same, which is written without being a step of the turn.
func (a *asker) discard(ctx context.Context, t *turn, answer llm.Answer, events *stream.Stream) error {
	events.Reset()
	return a.spendVoid(ctx, t, &answer)
}

// reserve takes what a request may cost out of the budgets. One that is spent ends the
// turn, said aloud.
func (a *asker) reserve(ctx context.Context, t *turn, r llm.Request) error {
	if a.payer == "" {
		var err error
		if a.payer, err = a.account(ctx, t.person); err != nil {
			return err
		}
	}
	input, info, limits := int64(transcript.Estimate(r)), a.agent.Model.Info(), a.cfg.Limits()
	want := purse.Amount{Tokens: input + answerTokens, Micro: info.Price.Of(llm.Usage{Input: input, Output: answerTokens})}
	bounds := purse.Bounds{Person: a.payer, Caps: limits.caps(a.payer, a.key(), a.agent)}
	if _, own := limits.TokensDayOf[t.person]; own || limits.TokensAlways || !info.Priced {
		bounds.TokensDay = limits.tokensDay(t.person)
	}
	// The fence is in the name, so that a turn that is resumed by another holder does
	// not take the reservation of the first for its own.
	name := fmt.Sprintf("%s#%d.%d", t.id, a.lease.Claim().Fence, t.modelCalls+1)
	err := a.purse.Take(ctx, name, want, bounds)
	if over, ok := errors.AsType[*purse.OverError](err); ok {
		return failure("over_budget", "%s", over.Words(t.route.Owner))
	}
	return err
}

// generate asks for an answer. What a model that asks more than once throws away on the
// way is paid for and dropped: its calls must not run.
func (a *asker) generate(ctx context.Context, t *turn, r llm.Request, events *stream.Stream) (llm.Answer, error) {
	r.Session = a.key()
	r.Retry = func(ctx context.Context, again llm.Retry) error {
		events.Reset()
		a.emit(t, bus.Event{Type: bus.Retried, Retry: &bus.Retry{Attempt: again.Try, AfterMS: again.Wait.Milliseconds(), From: again.From, To: again.To}})
		if again.Void == nil {
			return nil
		}
		if err := a.spendVoid(ctx, t, again.Void); err != nil {
			return err
		}
		return a.reserve(ctx, t, r)
	}
	answer, err := a.agent.Model.Generate(ctx, r, events.Delta)
	if err == nil {
		return answer, nil
	}
	events.Reset()
	if ctx.Err() != nil {
		return llm.Answer{}, context.Cause(ctx)
	}
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return llm.Answer{}, err
	}
	if err := a.spendVoid(ctx, t, fault.Void); err != nil {
		return llm.Answer{}, err
	}
	if fault.Fault == llm.Overflow {
		return llm.Answer{}, err
	}
	a.slog.Warn("the model gave no answer", slog.String("turn", t.id), slog.Any("error", err))
	return llm.Answer{}, a.modelFailed(fault, t)
}

// spendVoid writes what an answer has cost that is not used, where there is one. It is no
// step of the turn.
func (a *asker) spendVoid(ctx context.Context, t *turn, answer *llm.Answer) error {
	if answer == nil {
		return nil
	}
	a.purse.Spend(answer.Usage)
	return a.journal.Append(ctx, a.usageEntry("", t.person, *answer))
}

func isOverflow(err error) bool {
	fault, ok := errors.AsType[*llm.Error](err)
	return ok && fault.Fault == llm.Overflow
}

// modelFailed is how a turn ends whose model gives no answer.
func (a *asker) modelFailed(fault *llm.Error, t *turn) *ending {
	prefix := a.commandPrefix(t.route.At)
	// What the provider says is for those who run the bot, and not before others.
	tell := t.route.Owner && t.route.private()
	switch {
	case fault.Fault == llm.Overflow:
		return failure("context_too_long", "This conversation has become longer than the model can read. %snew begins afresh; files and memory stay.", prefix)
	case fault.Fault == llm.Refused && tell:
		return failure("model_refused", "%s", fault.Explain())
	case fault.Fault == llm.Refused:
		return failure("model_refused", "The model's provider refuses this bot%s. The operator has to look at the model's name and key; the server's log says more.", statusOf(fault))
	case fault.Fault == llm.Rejected && tell:
		return failure("model_rejected", "%s %snew begins afresh.", fault.Explain(), prefix)
	case fault.Fault == llm.Rejected:
		return failure("model_rejected", "The model's provider does not accept this request%s. The server's log says more; %snew begins afresh.", statusOf(fault), prefix)
	case tell:
		return failure("model_busy", "%s I have given up after %s.", fault.Explain(), triesOf(fault))
	}
	return failure("model_busy", "The model cannot be reached or is too busy, and I have given up after %s. Please ask again a little later.", triesOf(fault))
}

// triesOf is how often a model was asked, in words.
func triesOf(fault *llm.Error) string {
	if fault.Tries <= 1 {
		return "one try"
	}
	return fmt.Sprintf("%d tries", fault.Tries)
}

// statusOf is a fault's status in brackets, where it had one.
func statusOf(fault *llm.Error) string {
	if fault.Status == 0 {
		return ""
	}
	return fmt.Sprintf(" (status %d)", fault.Status)
}

// usageEntry is what an answer has cost, as an entry.
func (a *asker) usageEntry(turn, person string, answer llm.Answer) sessions.Entry {
	u := answer.Usage
	used := sessions.Usage{
		Model: cmp.Or(answer.Model, a.agent.Model.Info().Name), Agent: a.agent.Name,
		Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, Estimated: u.Estimated,
	}
	if u.Priced {
		used.Cost = &u.Cost
	}
	e := journal.NewEntry(turn, sessions.KindUsage, used)
	e.Person = person
	return e
}

func has(a llm.Answer, kind llm.BlockKind) bool {
	return slices.ContainsFunc(a.Blocks, func(b llm.Block) bool { return b.Kind == kind && b.Text+b.Name != "" })
}

// withoutCalls is an answer whose calls are not to be trusted.
func withoutCalls(a llm.Answer) llm.Answer {
	a.Blocks = slices.DeleteFunc(slices.Clone(a.Blocks), func(b llm.Block) bool { return b.Kind == llm.BlockToolUse })
	return a
}

// shortfall says in words what an answer lacks, "" of one that lacks nothing.
// Some of it may stand before these words.
func shortfall(a llm.Answer, some bool) string {
	reason := ""
	if a.Reason != "" {
		reason = fmt.Sprintf(" (“%s”)", a.Reason)
	}
	switch {
	case a.Stop == llm.StopLength && some:
		return "_(The answer was cut off at the model's length limit. Say “go on” for more.)_"
	case a.Stop == llm.StopLength && has(a, llm.BlockThinking):
		return "_(The model reached its length limit while it was still thinking, and has not come to an answer. Ask for less at once, or say “go on”.)_"
	case a.Stop == llm.StopLength:
		return "_(The model's length limit left no room for an answer. Ask for less at once.)_"
	case a.Stop == llm.StopWindow && some:
		return "_(The answer was cut off because the model's window is full. Say “go on” for more.)_"
	case a.Stop == llm.StopFiltered && some:
		return "_(The provider's content filter" + reason + " has cut the answer off here.)_"
	case a.Stop == llm.StopFiltered:
		return "_(The provider's content filter" + reason + " has kept the answer back. Ask in other words.)_"
	case a.Stop == llm.StopBroken:
		return "_(The provider broke the answer off here" + reason + ", each time it was asked. Ask again a little later for the rest.)_"
	case a.Stop == llm.StopLost && some:
		return "_(The model announced a tool call that never came, each time it was asked, so this may not be all.)_"
	case a.Stop == llm.StopLost:
		return "_(The model announced a tool call that never came, each time it was asked. Ask again, perhaps in other words.)_"
	case a.Stop == llm.StopUnknown && some:
		return "_(The model ended for a reason that I do not know" + reason + ", so this may not be all.)_"
	case !some:
		return "_(The model gave an empty answer. Ask again, perhaps in other words.)_"
	}
	return ""
}
