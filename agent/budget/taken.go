package budget

import (
	"context"
	"time"

	"parley/sessions"
)

// A TakenError says that a budget has room for a call, which only what is set aside for others takes. It
// is worth waiting for these.
type TakenError struct {
	Over   *OverError
	After  time.Duration // when to try again
	Until  time.Time     // when to give up
	waited time.Duration // so far
}

// Error returns the reason.
func (e *TakenError) Error() string { return "what is left of a budget is set aside for others" }

const (
	mostWait   = 15 * time.Minute // for what is set aside for others
	silentWait = 5 * time.Second  // who waits less is not told
	leastPoll  = time.Second
	mostPoll   = 15 * time.Second
)

// IsTold reports whether who waits is told: a moment is not worth a word.
func (e *TakenError) IsTold() bool { return e.waited >= silentWait }

// Taken returns how to wait for a call that has been waiting since a time; nil if waiting would not help,
// or has taken too long.
func (e *OverError) Taken(since time.Time) *TakenError {
	waited := time.Since(since)
	if !e.Waits() || waited >= mostWait {
		return nil
	}
	return &TakenError{Over: e, waited: waited, After: max(leastPoll, min(waited/4, mostPoll)), Until: since.Add(mostWait)}
}

// Today returns the tokens that a person has spent today, and those that are only set aside.
func Today(ctx context.Context, budget sessions.Budget, person string) (spent, reserved int64, err error) {
	now := time.Now()
	if reserved, err = budget.Reserved(ctx, person, now); err != nil {
		return 0, 0, err
	}
	both, err := budget.Spent(ctx, person, now)
	return max(0, both-reserved), reserved, err
}
