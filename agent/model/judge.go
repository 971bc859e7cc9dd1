package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"parley/agent/budget"
	"parley/agent/judge"
	"parley/agent/llm"
	"parley/agent/turn"
)

// errLongAnswer stops an answer that is too long to be a verdict.
var errLongAnswer = errors.New("the answer is too long to be a verdict")

// Judging returns a function that asks the model that judges calls for the session's agent about a call of a turn.
// Several goroutines may call it at once. The person pays for it as for the turn. If the model gives no verdict, the
// function returns a verdict that says so; its error ends the run.
func (m *Askers) Judging(s *turn.Session) func(ctx context.Context, t *turn.Turn, q *judge.Question) (judge.Verdict, error) {
	return func(ctx context.Context, t *turn.Turn, q *judge.Question) (judge.Verdict, error) {
		j := s.Agent.Judge
		if j.Model == nil {
			s.Config.Observer.Judged(string(judge.NoModel))
			return judge.Unanswered(judge.NoModel), nil
		}
		r := q.Request()
		return j.Answers.VerdictFor(ctx, j.Hash(q, r), func() (judge.Verdict, error) {
			began := time.Now()
			v, err := askVerdict(ctx, m.newForJudging(s), t, r, j.Timeout)
			if err == nil {
				v.Took = time.Since(began)
				s.Config.Observer.Judged(v.Word())
			}
			return v, err
		})
	}
}

// newForJudging makes an asker for one call. Its reservations have names of their own, because several calls of a step
// may be judged at the same time.
func (m *Askers) newForJudging(s *turn.Session) *Asker {
	a := m.newForOtherModel(s, s.Agent.Judge.Model)
	a.reservationSuffix = fmt.Sprintf(".%d", rand.Uint64())
	return a
}

// askVerdict asks the model once, for at most the given time. If the model gives no verdict, the returned one says why.
// An error ends the run.
func askVerdict(ctx context.Context, a *Asker, t *turn.Turn, r llm.Request, within time.Duration) (judge.Verdict, error) {
	defer func() { a.Reservations.Settle(context.WithoutCancel(ctx)) }()
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	asking, stop := context.WithCancelCause(asking)
	defer stop(nil)
	if has := a.Agent.Model.Info().ContextTokens; has > 0 && a.countTokens(&r)+r.MaxTokens > has {
		return judge.Unanswered(judge.TooLong), nil // some servers would cut the call or the instructions off
	}
	a.Point("judge:ask")
	found, err := askWithin(ctx, asking, a, t, r, func() {
		if a.answerBytes > judge.MaxAnswer {
			stop(errLongAnswer)
		}
	})
	a.Point("judged")
	if err == nil {
		return judge.Read(found.Text(), a.Redactor().Text), nil
	}
	why := whyUnjudged(ctx, asking, err)
	if why == "" {
		return judge.Verdict{}, err
	}
	a.Log.Warn("no model has judged a tool call, so people are asked", slog.String("turn", t.ID), slog.String("why", string(why)), slog.Any("error", err))
	return judge.Unanswered(why), nil
}

// whyUnjudged returns why the model gave no verdict, or "" if err ends the run.
func whyUnjudged(ctx, asking context.Context, err error) judge.Fault {
	_, ended := errors.AsType[*turn.Ending](err)
	_, taken := errors.AsType[*budget.SetAsideError](err)
	switch {
	case ctx.Err() != nil:
		return ""
	case ended || taken:
		return judge.OverBudget
	case errors.Is(err, errLongAnswer):
		return judge.Unreadable
	case errors.Is(err, context.DeadlineExceeded) && asking.Err() != nil:
		return judge.TimedOut
	case IsNoAnswer(err):
		return judge.Failed
	}
	return ""
}
