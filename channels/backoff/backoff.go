// Package backoff computes how long adapters wait between failing attempts.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// maxFirstWait is the maximum length of the first wait.
const maxFirstWait = 200 * time.Millisecond

// A Series is a series of growing waits. The zero Series has not waited yet.
type Series struct{ last time.Duration }

// Next returns the wait before the next attempt: a random time between half and all of a length that doubles with
// each call, up to most. It is random so that processes that lost their connections together do not come back
// together.
func (s *Series) Next(most time.Duration) time.Duration {
	s.last = min(max(2*s.last, maxFirstWait), most)
	return s.last/2 + rand.N(s.last/2)
}

// HasWaited reports whether Next was called since the series began or was reset.
func (s *Series) HasWaited() bool { return s.last > 0 }

// Reset starts the series over.
func (s *Series) Reset() { s.last = 0 }

// Sleep waits for the duration, and returns false if ctx ended first.
func Sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
