package discord

import (
	"context"
	"errors"
	"time"

	"parley/channels"
	"parley/channels/backoff"
)

const (
	maxOwnWait     = 2 * time.Second  // longest wait between attempts after an error from the bus or the book
	maxDiscordWait = 30 * time.Second // longest wait after an error from Discord
)

// A retryWait waits between attempts, longer each time; an error from Discord may prolong a wait.
type retryWait struct{ series backoff.Series }

// pause waits before the next attempt, at least for as long as Discord's error asks. It returns false if ctx ended
// first.
func (w *retryWait) pause(ctx context.Context, err error) bool {
	most, atLeast := maxOwnWait, time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		most, atLeast = maxDiscordWait, refusal.RetryAfter
	}
	return backoff.Sleep(ctx, max(w.series.Next(most), atLeast))
}
