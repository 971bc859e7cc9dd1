package slack

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"parley/channels"
)

// A backoff is a series of growing, jittered waits.
type backoff struct {
	last time.Duration
	most time.Duration // 0 is mostWait
	firm bool          // most also bounds the wait after an error of Slack's
}

const (
	firstWait = 200 * time.Millisecond
	mostWait  = 30 * time.Second // after an error of Slack's
	ownWait   = 2 * time.Second  // after an error of our own bus or book, for which people wait
	asideWait = 10 * time.Second // between questions about one person
)

// pause waits before the next attempt, at least for as long as Slack's error asks.
// It is false if ctx ended first.
func (b *backoff) pause(ctx context.Context, err error) bool {
	most, atLeast := cmp.Or(b.most, mostWait), time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		atLeast = refusal.RetryAfter
		if !b.firm {
			most = mostWait // the error is Slack's, and so Slack is to be spared
		}
	}
	b.last = min(max(2*b.last, firstWait), most)
	return sleep(ctx, max(b.last/2+rand.N(b.last/2), atLeast))
}

// sleep waits; it is false if ctx ended first.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
