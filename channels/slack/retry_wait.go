package slack

import (
	"cmp"
	"context"
	"errors"
	"time"

	"parley/channels"
	"parley/channels/backoff"
)

// A retryWait is a series of growing waits that Slack's errors may prolong.
type retryWait struct {
	series backoff.Series
	most   time.Duration // 0 is mostWait
	firm   bool          // most also bounds the wait after an error of Slack's
}

const (
	mostWait  = 30 * time.Second // after an error of Slack's
	ownWait   = 2 * time.Second  // after an error of our own bus or book, for which people wait
	asideWait = 10 * time.Second // between questions about one person
)

// pause waits before the next attempt, at least for as long as Slack's error asks.
// It is false if ctx ended first.
func (w *retryWait) pause(ctx context.Context, err error) bool {
	most, atLeast := cmp.Or(w.most, mostWait), time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		atLeast = refusal.RetryAfter
		if !w.firm {
			most = mostWait // the error is Slack's, and so Slack is to be spared
		}
	}
	return backoff.Sleep(ctx, max(w.series.Next(most), atLeast))
}
