package failover

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"parley/agent/llm"
)

const (
	maxBusyTries   = 3 // of one model that is merely busy
	firstRetryWait = 500 * time.Millisecond
	maxRetryAfter  = time.Minute // if a provider asks for a longer wait, the next model is asked at once
)

// errTooLong is returned for a request that is longer than a later model of the chain can read.
var errTooLong = errors.New("the request is longer than this model reads")

// errBroken is returned for a try whose answer arrived only in part.
var errBroken = errors.New("the provider broke the answer off")

// A requestState is the state of one request to the chain, while its models are asked one after another.
type requestState struct {
	*Chain
	request *llm.Request
	emit    func(llm.Delta)

	tries           int           // how many so far, of all models
	model           string        // the one that was asked last
	began           time.Time     // when that was
	firstPieceAfter time.Duration // from then until the first piece of its answer; 0 if none has arrived
	failed          *llm.Error    // the error to return if no model answers
	tooLong         *llm.Error    // the error of a model whose window is too small for the request; nil if there is none
	retryAfter      time.Duration // how soon a model that was merely busy may be asked again; 0 for any time
	voidAnswer      *llm.Answer   // the part of the last try's answer that arrived before it broke off; it is not used
	partialAnswer   *llm.Answer   // the last partial answer with text; used if no model gives a whole answer
	partialCounted  bool          // whether the caller has counted the usage of part
}

// askLink asks one model, and asks it again if it is merely busy. A model that is being probed is asked once, and a
// later model not at all if the request is too long for it. A model that stays busy or refuses gets a cooldown.
func (a *requestState) askLink(ctx context.Context, link int) (*llm.Answer, error) {
	l := &a.cfg.Links[link]
	if link > 0 { // the caller has checked only the first model's window
		if err := a.checkLength(l); err != nil {
			return nil, err
		}
	}
	probing := a.cooldowns.isProbing(l.ID)
	var wait time.Duration
	var err error
	for try := 1; ; try++ {
		if a.tries > 0 {
			if err := a.prepareRetry(ctx, l, wait, err); err != nil {
				return nil, err
			}
		}
		var answer *llm.Answer
		answer, err = a.try(ctx, l)
		if err == nil {
			a.cooldowns.end(ctx, l.ID)
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		fault := faultOf(err)
		var again bool
		wait, again = waitFor(fault, try)
		if again && !probing {
			continue
		}
		if fault.Fault == llm.Busy || fault.Fault == llm.Refused {
			a.beginCooldown(ctx, l, fault)
		}
		return nil, fault
	}
}

// checkLength returns an error if the request is longer than a model can read, because some servers silently
// cut off such a request.
func (a *requestState) checkLength(l *Link) error {
	if reads := l.Model.Info().ContextTokens; reads > 0 && a.request.Tokens > reads {
		return &llm.Error{Fault: llm.Overflow, Window: reads, Err: errTooLong}
	}
	return nil
}

// prepareRetry tells the chain's caller about the next try, and waits until it may begin.
func (a *requestState) prepareRetry(ctx context.Context, l *Link, wait time.Duration, why error) error {
	info := l.Model.Info()
	to := info.Name
	if a.model != to {
		a.cfg.OnFailover(a.model, to)
	}
	a.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "asking the model again", slog.String("from", a.model), slog.String("to", to),
		slog.Int("try", a.tries+1), slog.Duration("wait", wait), slog.Any("error", why))
	if a.request.Retry != nil {
		if err := a.request.Retry(ctx, llm.Retry{Try: a.tries + 1, Wait: wait, From: a.model, To: to, Price: info.Price, Void: a.voidAnswer}); err != nil {
			return err
		}
	}
	a.partialCounted = true // the caller has counted the usage of the void answer, which may be the same as part
	a.voidAnswer = nil
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// try asks one model once. If the provider broke off the answer, try returns an error.
func (a *requestState) try(ctx context.Context, l *Link) (*llm.Answer, error) {
	a.begin(l)
	a.request.Restore()
	answer, err := l.Model.Generate(ctx, a.request, a.emitPiece)
	return a.checkAnswer(answer, err)
}

// begin records that a try of a model begins.
func (a *requestState) begin(l *Link) {
	a.tries++
	a.model, a.began, a.firstPieceAfter = l.Model.Info().Name, time.Now(), 0
}

// emitPiece passes on a piece of the answer.
func (a *requestState) emitPiece(d llm.Delta) {
	if a.firstPieceAfter == 0 {
		a.firstPieceAfter = time.Since(a.began)
	}
	a.emit(d)
}

// checkAnswer returns the answer of a try, or an error if the provider broke it off.
func (a *requestState) checkAnswer(answer *llm.Answer, err error) (*llm.Answer, error) {
	done := Try{Turn: a.request.Turn, Model: a.model, Result: "ok", Began: a.began, Took: time.Since(a.began), First: a.firstPieceAfter}
	if err != nil {
		fault := faultOf(err)
		done.Result = string(fault.Fault)
		if a.voidAnswer = fault.Void; a.voidAnswer != nil {
			done.Usage, a.voidAnswer.Model = a.voidAnswer.Usage, a.model
		}
		a.cfg.OnTry(done)
		return nil, err
	}
	done.Usage = answer.Usage
	a.cfg.OnTry(done)
	answer.Model = a.model
	if a.request.NoCalls && answer.Stop == llm.StopLost {
		answer.Stop = llm.StopWhole // the model must not call tools, so no calls can be missing
	}
	if answer.Stop != llm.StopBroken && answer.Stop != llm.StopLost {
		return answer, nil
	}
	a.voidAnswer = answer
	if part := answer.WithoutCalls(); hasText(part) {
		a.partialAnswer, a.partialCounted = part, false
	}
	return nil, &llm.Error{Fault: llm.Busy, Code: answer.Reason, Err: errBroken}
}

// afterFailure records the error of a model that gave no answer. It returns the error that ends the whole
// request, or nil if another model may be asked.
func (a *requestState) afterFailure(err error) error {
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err // ctx's error, or that of the request's Retry
	}
	switch {
	case errors.Is(fault, errTooLong): // a later model may read more
		a.tooLong = fault
		return nil
	case fault.Fault == llm.Overflow: // the caller has to send a shorter request
		return a.errorOf(fault)
	case fault.Fault == llm.Busy && (a.failed == nil || a.failed.Fault != llm.Busy):
		a.retryAfter = fault.RetryAfter
	case fault.Fault == llm.Busy:
		a.retryAfter = min(a.retryAfter, fault.RetryAfter)
	}
	if a.failed == nil || fault.Fault == llm.Busy && a.failed.Fault != llm.Busy {
		a.failed = fault
	}
	return nil
}

// lastPart returns the last partial answer that has text, with the usage that the caller has not counted yet:
// its own, or that of a later try that produced nothing to show.
func (a *requestState) lastPart() *llm.Answer {
	if a.partialCounted {
		a.partialAnswer.Usage = llm.Usage{}
		if a.voidAnswer != nil {
			a.partialAnswer.Usage = a.voidAnswer.Usage
		}
	}
	return a.partialAnswer
}

// beginCooldown begins a cooldown of a model if the chain has another one to ask.
func (a *requestState) beginCooldown(ctx context.Context, l *Link, fault *llm.Error) {
	if len(a.cfg.Links) > 1 {
		a.cooldowns.begin(ctx, l.ID, l.Model.Info().Name, fault)
	}
}

// errorOf returns the error with which the whole request to the chain fails, made from the error of one model.
func (a *requestState) errorOf(fault *llm.Error) *llm.Error {
	end := *fault
	if end.Tries, end.Void = a.tries, a.voidAnswer; end.Fault == llm.Busy {
		end.RetryAfter = a.retryAfter
	}
	return &end
}

// faultOf returns a failure as an *llm.Error. An error of another type counts as Busy.
func faultOf(err error) *llm.Error {
	if fault, ok := errors.AsType[*llm.Error](err); ok {
		return fault
	}
	return &llm.Error{Fault: llm.Busy, Err: err}
}

// waitFor returns how long to wait before the next try of the same model; false if it should not be tried
// again.
func waitFor(fault *llm.Error, try int) (time.Duration, bool) {
	if fault.Fault != llm.Busy || try >= maxBusyTries || fault.RetryAfter > maxRetryAfter {
		return 0, false
	}
	if fault.RetryAfter > 0 {
		return fault.RetryAfter, true
	}
	return firstRetryWait/2 + rand.N(firstRetryWait<<(2*try)), true
}

// hasText reports whether an answer has a block with text.
func hasText(a *llm.Answer) bool {
	return slices.ContainsFunc(a.Blocks, func(b llm.Block) bool { return b.Kind == llm.BlockText && b.Text != "" })
}
