package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/agent/budget"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
)

// costs keeps track of the costs of one turn's model calls: the reservations made beforehand, and the actual use.
type costs struct {
	*turn.Session
	Reservations budget.Reservations
	// The estimated tokens of the current request, and the bytes of its answer that have arrived.
	requestTokens, answerBytes int
	// account is the id of the person whose turn this is counted as: one person may have several accounts on
	// platforms. It is "" until it is looked up. It stays the same for all steps of the turn, because one step
	// may spend what another has reserved.
	account string
	// reservationSuffix ends the names of reservations for calls that are made at the same time as the turn's steps; ""
	// for the turn's own. It consists of numbers, so a process that resumes the turn takes these reservations over,
	// too.
	reservationSuffix string
	// cutOffCounted says that the cost of the call that was cut off under an earlier holder is recorded.
	cutOffCounted bool
}

// ErrUnreserved is returned for a model call whose cost could not be reserved, because a budget could not be reached.
var ErrUnreserved = errors.New("what the call may use cannot be set aside")

// answerTokens is the assumed size of an answer before it arrives, in tokens.
const answerTokens = 4096

// reserve reserves the likely cost of a request in all budgets that limit the turn. If a budget has too little left, it
// returns a *turn.Ending that tells people so, or a *budget.SetAsideError if it is worth waiting. It returns
// ErrUnreserved if a budget can't be reached.
func (a *costs) reserve(ctx context.Context, t *turn.Turn, r *llm.Request) error {
	return a.reserveAt(ctx, t, r, a.price())
}

// reserveAt does what reserve does, at the price of the model that is asked.
func (a *costs) reserveAt(ctx context.Context, t *turn.Turn, r *llm.Request, price llm.Price) error {
	if err := a.findAccount(ctx, t); err != nil {
		return err
	}
	a.requestTokens, a.answerBytes = a.countTokens(r), 0
	a.Estimator.Ratios.NoteAsked(a.Key(), a.requestTokens)
	want := budget.CallOf(a.requestTokens, cmp.Or(r.MaxTokens, answerTokens), price)
	err := a.Reservations.Take(ctx, a.reservationName(t.ID, t.ModelCalls+1), want, a.bounds(t.Person, t.Parent()))
	if over, ok := errors.AsType[*budget.OverError](err); ok {
		if taken := over.WaitSince(t.Progress); taken != nil {
			return taken
		}
		end := turn.Failed("over_budget", "%s", over.Words())
		end.Refused = t.ModelCalls == 0
		return end
	} else if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreserved, err)
	}
	return nil
}

// findAccount looks up whose account the turn's cost is counted for, unless that is known.
func (a *costs) findAccount(ctx context.Context, t *turn.Turn) error {
	if a.account != "" {
		return nil
	}
	of, err := a.PayerOf(ctx, t.Person, nil)
	if err != nil {
		return err
	}
	a.account = of.Account
	return nil
}

// TakeOver takes over the reservations that earlier holders of the session have made for a turn.
func (a *costs) TakeOver(ctx context.Context, t *turn.Turn) error {
	if err := a.findAccount(ctx, t); err != nil {
		return err
	}
	if err := a.Reservations.TakeOver(ctx, a.reservationName(t.ID, t.ModelCalls+1), t.ID, a.bounds(t.Person, t.Parent())); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreserved, err)
	}
	return nil
}

// price returns the price of the model that is likely to answer.
func (a *costs) price() llm.Price {
	if chain, ok := a.Agent.Model.(interface {
		PriceFor(session string) llm.Price
	}); ok {
		return chain.PriceFor(a.Key())
	}
	return a.Agent.Model.Info().Price
}

// bounds returns the budgets of a person's turn. If the turn works for a parent session, that session's cap
// applies. Tokens are limited only if the person has limits of their own, if limits.TokensAlways is set, or if the
// price of the model is not known.
func (a *costs) bounds(person, parent string) budget.Bounds {
	limits := a.Config.Limits()
	b := budget.Bounds{Person: a.account, Caps: limits.Caps(a.account, cmp.Or(parent, a.Key()), &a.Agent)}
	own, named := limits.NamedBudgets[person]
	if b.Owner = budget.Owner(own.Owner); named || limits.TokensAlways || !a.Agent.Model.Info().Priced {
		b.TokensDay = limits.TokensPerDay(person)
	}
	return b
}

// reservationName returns the name under which budgets hold what is reserved for a model call. It contains the
// fence of the session's lease: otherwise another holder that resumes the turn would mistake the first holder's
// reservation for its own.
func (a *costs) reservationName(turn string, call int) string {
	return fmt.Sprintf("%s#%d.%d%s", turn, a.Lease.Claim().Fence, call, a.reservationSuffix)
}

// extraTokens is how many tokens the next request is assumed to have in addition to the texts that are already known.
const extraTokens = 64

// ReservationChange returns the budget change that reserves the likely cost of a turn's first call. first is the
// message that begins the turn, and said is the number of bytes in its messages; the estimate is based on the
// conversation's last answer. With this change, the beginning of the turn and the reservation are one write. The change
// is empty if there is no such answer, if it isn't known whose account the turn is counted for, or for a sub-agent's
// task: then reserve makes the reservation before the model is asked.
func (a *costs) ReservationChange(first *bus.Inbound, said int) bill.Change {
	if a.Payer.Person != first.From.ID || a.Payer.Account == "" || first.Kind == bus.Tasked {
		return bill.Change{}
	}
	records := a.Journal.Records()
	for i := len(records) - 1; i >= 0; i-- {
		used, ok := records[i].Data.(sessions.Usage)
		if !ok || used.Model != a.modelName() || records[i].Turn == "" {
			continue
		}
		input := max(int(used.Input), a.Estimator.Ratios.Asked(a.Key())) + int(used.Output)
		input += input/16 + extraTokens // otherwise the reservation is often slightly too small, and has to be renewed
		input += said / transcript.BytesPerToken
		a.account = a.Payer.Account
		return a.Reservations.ReservationChange(a.reservationName(first.ID, 1), budget.CallOf(input, answerTokens, a.price()), a.bounds(first.From.ID, ""))
	}
	return bill.Change{}
}

// resultTokens is how many tokens a tool's result is likely to add to the next request.
const resultTokens = 1024

// reserveAgain records the cost of an attempt that was broken off, and reserves the likely cost of the next attempt,
// perhaps of another model. It does nothing if the same model is asked again and the first attempt cost nothing.
func (a *costs) reserveAgain(ctx context.Context, t *turn.Turn, asked *llm.Request, again llm.Retry) error {
	if again.Void == nil && again.From == again.To {
		return nil
	}
	if err := a.recordUnused(ctx, t, again.Void); err != nil {
		return err
	}
	defer asked.Release() // counting restores the messages, but the wait for the next answer is just as long
	return a.reserveAt(ctx, t, asked, again.Price)
}

// recordUnused writes to the log the cost of an answer that is not a step of the turn, such as an unused answer
// or a summary. It does nothing if answer is nil.
func (a *costs) recordUnused(ctx context.Context, t *turn.Turn, answer *llm.Answer) error {
	if answer == nil {
		return nil
	}
	a.spend(t, answer)
	c := a.Reservations.SpendingChange()
	done, err := a.AppendWith(ctx, c, turn.DurableAtOnce, a.usageEntry("", t.Person, *answer, 0))
	if err == nil {
		a.Reservations.Keep(c, done)
	}
	return err
}

// recordCutOff records, once, the estimated cost of a call that an earlier holder of the turn may have been
// making when it was killed: at least its request was read.
func (a *costs) recordCutOff(ctx context.Context, t *turn.Turn, r *llm.Request) error {
	if !t.CutOff || a.cutOffCounted {
		return nil
	}
	if err := a.recordUnused(ctx, t, budget.Estimated(a.countTokens(r), 0, a.price(), a.Agent.Model.Info().Priced)); err != nil {
		return err
	}
	a.cutOffCounted = true
	return nil
}

// recordStopped records the estimated cost of a call that was stopped or timed out while its answer was arriving: the
// model has at least read the request. It records nothing if the lease is lost. A failure is only logged, because
// nobody waits for the answer anymore.
func (a *costs) recordStopped(ctx context.Context, t *turn.Turn) {
	late := errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	if a.answerBytes == 0 && !late || errors.Is(context.Cause(ctx), bus.ErrFenced) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := a.recordUnused(ctx, t, budget.Estimated(a.requestTokens, a.answerBytes, a.price(), a.Agent.Model.Info().Priced)); err != nil {
		a.Log.Warn("what a stopped call has cost is not in the log", slog.String("turn", t.ID), slog.Any("error", err))
	}
}

// recordTimeout limits how long the end of a turn waits for recordStopped.
const recordTimeout = 2 * time.Second

// spend deducts what an answer has used from the turn's reservation, and reports it to watchers.
func (a *costs) spend(t *turn.Turn, answer *llm.Answer) {
	a.Reservations.Spend(answer.Usage)
	a.emitUsed(t, *answer)
}

// emitUsed reports to watchers what an answer has used.
func (a *costs) emitUsed(t *turn.Turn, answer llm.Answer) {
	u := a.usageOf(answer)
	a.Emit(t, bus.Event{Type: bus.Used, Usage: &bus.Usage{
		Model: u.Model, Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, Microdollars: u.Cost, Estimated: u.Estimated,
	}})
}

// usageOf returns in the log's form which model answered, how many tokens the answer used, and what it cost, if
// that is known.
func (a *costs) usageOf(answer llm.Answer) sessions.Usage {
	u := answer.Usage
	used := sessions.Usage{
		Model: cmp.Or(answer.Model, a.Agent.Model.Info().Name), Agent: a.Agent.Name,
		Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning, Estimated: u.Estimated,
	}
	if u.Priced {
		used.Cost = &u.Cost
	}
	return used
}

// usageEntry returns the entry with an answer's tokens and cost, and with the number of milliseconds until its
// first text.
func (a *costs) usageEntry(turn, person string, answer llm.Answer, firstMS int64) sessions.Entry {
	used := a.usageOf(answer)
	used.FirstMS = firstMS
	e := journal.NewEntry(turn, sessions.KindUsage, used)
	e.Person = person
	return e
}

// AppendStep writes an answer that calls tools and, in the same write, adjusts the reservation to what the
// turn's next call is likely to use.
func (a *costs) AppendStep(ctx context.Context, t *turn.Turn, answer llm.Answer, calls int, entries []sessions.Entry) error {
	input := a.requestTokens + int(answer.Usage.Output) + calls*resultTokens
	c := a.Reservations.RenewalChange(budget.CallOf(input, answerTokens, a.price()), a.bounds(t.Person, t.Parent()))
	done, err := a.AppendWith(ctx, c, journal.Soon, entries...)
	if err == nil {
		a.Reservations.Keep(c, done)
	}
	return err
}

// countTokens estimates how many tokens a request has.
func (a *costs) countTokens(r *llm.Request) int {
	return a.Estimator.Of(a.modelName(), transcript.Estimate(r))
}

// modelName returns the name of the model that is asked first.
func (a *costs) modelName() string { return a.Agent.Model.Info().Name }
