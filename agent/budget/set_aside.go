package budget

import (
	"context"
	"time"

	"parley/sessions"
)

// A SetAsideError is returned when a budget has too little room for a call only because of other reservations. It is
// worth waiting until these are settled.
type SetAsideError struct {
	Over       *OverError
	RetryAfter time.Duration // how long to wait before the next try
	GiveUpAt   time.Time     // when to give up
	waited     time.Duration // so far
}

// Error returns the reason.
func (e *SetAsideError) Error() string { return "the rest of the budget is set aside for other calls" }

const (
	maxWait       = 15 * time.Minute // for the reservations of others
	maxSilentWait = 5 * time.Second  // a shorter wait is not announced to people
	minPoll       = time.Second
	maxPoll       = 15 * time.Second
)

// IsAnnounced reports whether the waiting people are told. A short wait isn't worth a message.
func (e *SetAsideError) IsAnnounced() bool { return e.waited >= maxSilentWait }

// WaitSince returns how to wait for a call that has been waiting since the given time; nil if waiting would not
// help, or has taken too long.
func (e *OverError) WaitSince(since time.Time) *SetAsideError {
	waited := time.Since(since)
	if !e.FitsLater() || waited >= maxWait {
		return nil
	}
	return &SetAsideError{Over: e, waited: waited, RetryAfter: max(minPoll, min(waited/4, maxPoll)), GiveUpAt: since.Add(maxWait)}
}

// SpentToday returns how many tokens a person has spent today, and how many more are reserved.
func SpentToday(ctx context.Context, budget sessions.Budget, person string) (spent, reserved int64, err error) {
	now := time.Now()
	if reserved, err = budget.Reserved(ctx, person, now); err != nil {
		return 0, 0, err
	}
	both, err := budget.Spent(ctx, person, now)
	return max(0, both-reserved), reserved, err
}
