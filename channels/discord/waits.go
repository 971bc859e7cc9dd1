package discord

import (
	"context"
	"errors"
	"time"

	"parley/channels"
	"parley/channels/backoff"
)

const (
	maxOwnWait     = 2 * time.Second  // longest wait between attempts after an error of the bus or the book
	maxDiscordWait = 30 * time.Second // longest wait after an error of Discord's
)

// A retryWait makes the waits between attempts, which grow; an error of Discord's may prolong a
// wait.
type retryWait struct{ series backoff.Series }

// pause waits before the next attempt, at least for as long as Discord's error asks. It
// returns false if ctx ended first.
func (w *retryWait) pause(ctx context.Context, err error) bool {
	most, atLeast := maxOwnWait, time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		most, atLeast = maxDiscordWait, refusal.RetryAfter
	}
	return backoff.Sleep(ctx, max(w.series.Next(most), atLeast))
}
