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
// turn, said aloud.
func (v *visit) ask(ctx context.Context, t *turn, r Request) (Answer, error) {
	if err := v.purse.pay(ctx, v, t, int64(estimate(r))+answerTokens); err != nil {
		return Answer{}, err
	}
	answer, err := v.insist(ctx, t, r)
	if err != nil {
		return Answer{}, err
	}
	if answer.CutOff && hasCalls(answer) {
		// Calls of an answer that was cut off may be cut off themselves.
		r.MaxTokens = 4 * answerTokens
		if answer, err = v.insist(ctx, t, r); err != nil {
			return Answer{}, err
		}
		if answer.CutOff && hasCalls(answer) {
			return Answer{}, failure("answer_too_long", "The model's answer was longer than it may be, twice. Ask for less at once.")
		}
	}
	v.purse.spent += answer.Usage.Input + answer.Usage.Output
	return answer, nil
}

func hasCalls(a Answer) bool {
	for _, b := range a.Blocks {
		if b.Kind == BlockToolUse {
			return true
		}
	}
	return false
}

// insist asks until the model answers, a few times.
func (v *visit) insist(ctx context.Context, t *turn, r Request) (Answer, error) {
	events := newStream(t.blocks, func(e bus.Event) { v.emit(t, e) })
	if t.resumed {
		events.reset() // watchers may have seen part of an answer that was cut off
	}
	for try := 1; ; try++ {
		began := time.Now()
		answer, err := v.agent.Model.Generate(ctx, r, events.delta)
		v.observe(answer, err, time.Since(began))
		if err == nil {
			events.end()
			return answer, nil
		}
		if ctx.Err() != nil {
			return Answer{}, context.Cause(ctx)
		}
		events.reset()
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
