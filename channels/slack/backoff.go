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
	firm bool          // most holds for Slack's refusals too
}

const (
	firstWait = 200 * time.Millisecond
	mostWait  = 30 * time.Second // for Slack
	ownWait   = 2 * time.Second  // for servers of our own: people wait for these
	asideWait = 10 * time.Second // for what Slack tells of one person
)

// pause waits for the next attempt, at least for as long as the error asks; it
// is false if ctx ended first.
func (b *backoff) pause(ctx context.Context, err error) bool {
	most, atLeast := cmp.Or(b.most, mostWait), time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		atLeast = refusal.RetryAfter
		if !b.firm {
			most = mostWait // it is Slack that is to be spared, whoever asked
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
