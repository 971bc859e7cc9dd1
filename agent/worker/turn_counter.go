package worker

import (
	"context"
	"errors"
	"fmt"

	"parley/agent/quota"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// A turnCounter counts people's turns, to limit how many each person may have at once and in an hour.
type turnCounter struct {
	*turn.Session
	quota *quota.Quota
}

// countTurn counts a turn of a person as running until release is called. It returns errTooManyTurns if the
// person has enough turns running, and a refusal, which ends the turn, if the person has begun enough turns in
// this hour or Admit refuses the message. These limits don't apply to owners.
func (c *turnCounter) countTurn(ctx context.Context, in *bus.Inbound) (release func(), refusal *turn.Ending, err error) {
	account := in.From.Account // the gate has just looked it up
	if account == "" && !in.From.Owner {
		if account, err = c.AccountOf(ctx, in.From.ID); err != nil {
			return nil, nil, err
		}
	}
	c.Payer = turn.Payer{Person: in.From.ID, Account: account}
	if in.Kind == bus.Tasked {
		return c.countTask(ctx, in)
	}
	if in.From.Owner {
		release, err = c.stopCounting(ctx)
		return release, nil, err
	}
	group, atOnce, hour := c.Config.Limits().TurnsOf(account, &c.Agent)
	most := quota.Limits{AtOnce: atOnce, Hour: hour}
	release, again, err := c.quota.Begin(ctx, c.Lease, group, in.ID, most)
	if err != nil {
		return nil, nil, countError(err)
	}
	if !again.IsZero() {
		refusal = turn.Failed("too_many_turns", textTooManyTurns,
			most.Hour, again.UTC().Format("15:04"))
		refusal.Refused = true
	}
	if refusal != nil || c.Config.Admit == nil {
		return release, refusal, nil
	}
	refused, err := c.Config.Admit(ctx, *in)
	if err != nil {
		release()
		return nil, nil, fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	if refused != nil {
		refusal = &turn.Ending{State: sessions.TurnFailed, Code: refused.Code, Text: refused.Text, Refused: true}
	}
	return release, refusal, nil
}

// countTask does the same as countTurn for a task. A task is not a turn of the person that the sub-agent works for: the
// number of tasks is limited where they are handed out.
func (c *turnCounter) countTask(ctx context.Context, in *bus.Inbound) (release func(), refusal *turn.Ending, err error) {
	wanted, err := c.Config.SubAgents.Begin(ctx, in.Task.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	if !wanted {
		refusal = &turn.Ending{State: sessions.TurnCancelled}
	}
	release, err = c.stopCounting(ctx)
	return release, refusal, err
}

// stopCounting ends the counting of the last turn, and counts nothing until another turn is counted. Turns of owners
// and of sub-agents are not counted, so a person who waits for a sub-agent's report can still be answered.
func (c *turnCounter) stopCounting(ctx context.Context) (release func(), err error) {
	return func() {}, countError(c.quota.Leave(ctx, c.Lease))
}

// countResumed counts a resumed turn as running until release is called, regardless of limits. Turns of owners and
// sub-agents are not counted. It also looks up whose account the turn is counted for, so the turn's steps don't have
// to.
func (c *turnCounter) countResumed(ctx context.Context, t *turn.Turn) (release func(), err error) {
	account, err := c.AccountOf(ctx, t.Person)
	if err != nil {
		return nil, err
	}
	c.Payer = turn.Payer{Person: t.Person, Account: account}
	if t.Route.Owner || t.Parent() != "" {
		return c.stopCounting(ctx)
	}
	group, _, _ := c.Config.Limits().TurnsOf(account, &c.Agent)
	release, err = c.quota.Resume(ctx, c.Lease, group)
	return release, countError(err)
}

// countError returns the error with which a run ends if a turn could not be counted.
func countError(err error) error {
	switch {
	case errors.Is(err, quota.ErrBusy):
		return errTooManyTurns
	case err == nil, errors.Is(err, bus.ErrFenced):
		return err
	}
	return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
}
