package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"parley/bus"
)

const (
	modelTries    = 3
	modelBackoff  = 500 * time.Millisecond
	maxRetryAfter = time.Minute
	answerTokens  = 4096 // what an answer is taken to cost until it is there
)

// ask asks the model for the turn's next answer, within its person's budget, and
// again where the model is merely busy. An answer that cannot be had ends the
// turn, said aloud; a request that is too long is a *ModelError.
func (v *visit) ask(ctx context.Context, t *turn, r Request) (Answer, error) {
	events := newStream(t.blocks, func(e bus.Event) { v.emit(t, e) })
	if t.resumed {
		events.reset() // watchers may have seen part of an answer that was cut off
	}
	if err := v.pay(ctx, t, r); err != nil {
		return Answer{}, err
	}
	answer, err := v.insist(ctx, t, r, events)
	if err == nil && answer.Stop != StopWhole && answer.has(BlockToolUse) {
		// Calls of an answer that was cut off may be cut off themselves.
		answer, err = v.askForMore(ctx, t, r, answer, events)
	}
	if err != nil {
		return Answer{}, err
	}
	events.end()
	v.purse.spent += answer.Usage.Input + answer.Usage.Output
	return answer, nil
}

// askForMore asks once more, with more room, where an answer's calls were cut off.
func (v *visit) askForMore(ctx context.Context, t *turn, r Request, answer Answer, events *stream) (Answer, error) {
	if err := v.discard(ctx, t, answer, events); err != nil {
		return Answer{}, err
	}
	r.MaxTokens = 4 * answerTokens
	if err := v.pay(ctx, t, r); err != nil {
		return Answer{}, err
	}
	answer, err := v.insist(ctx, t, r, events)
	if isOverflow(err) { // for the length that was asked for
		r.MaxTokens = 0
		answer, err = v.insist(ctx, t, r, events)
	}
	if err != nil || answer.Stop == StopWhole || !answer.has(BlockToolUse) {
		return answer, err
	}
	if err := v.discard(ctx, t, answer, events); err != nil {
		return Answer{}, err
	}
	if answer.Stop == StopLength {
		return Answer{}, failure("answer_too_long", "The model's answer was longer than it may be, twice. Ask for less at once.")
	}
	return Answer{}, failure("answer_cut_off", "The model's answer was cut off twice while it asked for tools, so nothing of it was done. %s", answer.withoutCalls().shortfall(false))
}

// discard drops an answer that has come and is not used. It was paid for all the
// same, which is written without being a step of the turn.
func (v *visit) discard(ctx context.Context, t *turn, answer Answer, events *stream) error {
	events.reset()
	v.purse.spent += answer.Usage.Input + answer.Usage.Output
	return v.j.append(ctx, v.usage("", t.person, answer))
}

// pay takes what a request may cost out of the person's budget.
func (v *visit) pay(ctx context.Context, t *turn, r Request) error {
	return v.purse.pay(ctx, v, t, int64(estimate(r))+answerTokens)
}

// insist asks until the model answers, a few times.
func (v *visit) insist(ctx context.Context, t *turn, r Request, events *stream) (Answer, error) {
	for try := 1; ; try++ {
		began := time.Now()
		answer, err := v.agent.Model.Generate(ctx, r, events.delta)
		v.observe(answer, err, time.Since(began))
		if r.NoCalls && answer.Stop == StopLost {
			answer.Stop = StopWhole // it may not call
		}
		switch {
		case ctx.Err() != nil && err != nil:
			return Answer{}, context.Cause(ctx)
		case isOverflow(err):
			events.reset()
			return Answer{}, err
		case err != nil:
			events.reset()
		case !answer.again():
			return answer, nil
		case try >= modelTries && answer.has(BlockText):
			return answer.withoutCalls(), nil // what there is of it, said to be that
		default:
			if err := v.discard(ctx, t, answer, events); err != nil {
				return Answer{}, err
			}
			if err := v.pay(ctx, t, r); err != nil {
				return Answer{}, err
			}
			err = &ModelError{Fault: ModelBusy, Code: answer.Reason, Err: errBroken}
		}
		wait, end := v.excuse(err, try, t)
		if end != nil {
			v.slog.Warn("the model gave no answer", slog.String("turn", t.id), slog.Any("error", err))
			return Answer{}, end
		}
		v.slog.Info("asking the model again", slog.String("turn", t.id), slog.Int("try", try+1), slog.Duration("wait", wait), slog.Any("error", err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		}
	}
}

func isOverflow(err error) bool {
	fault, ok := errors.AsType[*ModelError](err)
	return ok && fault.Fault == ModelOverflow
}

// errBroken says that an answer came in part.
var errBroken = errors.New("the provider broke the answer off")

func (v *visit) observe(answer Answer, err error, d time.Duration) {
	result := "ok"
	if err != nil {
		result = "failed"
		if fault, ok := errors.AsType[*ModelError](err); ok {
			result = string(fault.Fault)
		}
	}
	v.w.cfg.Observer.Model(v.agent.Model.Info().Name, result, answer.Usage, d)
}

// excuse judges a failed call: how long to wait before the next, or how the turn ends.
func (v *visit) excuse(err error, try int, t *turn) (time.Duration, *ending) {
	fault, ok := errors.AsType[*ModelError](err)
	if !ok {
		fault = &ModelError{Fault: ModelBusy, Err: err}
	}
	prefix := v.prefix(t.route.At)
	// What the provider says is for those who run the bot, and not before others.
	told := t.route.Owner && !t.route.Group
	switch {
	case fault.Fault == ModelOverflow:
		return 0, failure("context_too_long", "This conversation has become longer than the model can read. %snew begins afresh; files and memory stay.", prefix)
	case fault.Fault == ModelRefused && told:
		return 0, failure("model_refused", "%s", fault.Told())
	case fault.Fault == ModelRefused:
		return 0, failure("model_refused", "The model's provider refuses this bot%s. The operator has to look at the model's name and key; the server's log says more.", statusOf(fault))
	case fault.Fault == ModelRejected && told:
		return 0, failure("model_rejected", "%s %snew begins afresh.", fault.Told(), prefix)
	case fault.Fault == ModelRejected:
		return 0, failure("model_rejected", "The model's provider does not accept this request%s. The server's log says more; %snew begins afresh.", statusOf(fault), prefix)
	}
	if try >= modelTries || fault.RetryAfter > maxRetryAfter {
		if told {
			return 0, failure("model_busy", "%s I have given up after %d tries.", fault.Told(), try)
		}
		return 0, failure("model_busy", "The model cannot be reached or is too busy, and I have given up after %d tries. Please ask again a little later.", try)
	}
	if fault.RetryAfter > 0 {
		return fault.RetryAfter, nil
	}
	most := modelBackoff << (2 * try)
	return modelBackoff/2 + rand.N(most), nil
}

// statusOf is a fault's status in brackets, where it had one.
func statusOf(fault *ModelError) string {
	if fault.Status == 0 {
		return ""
	}
	return fmt.Sprintf(" (status %d)", fault.Status)
}
