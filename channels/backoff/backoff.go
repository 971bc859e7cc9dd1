// Package backoff is how long to wait between attempts that fail, for every adapter.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// first is the longest that the first wait may be.
const first = 200 * time.Millisecond

// A Series is a series of growing waits. The zero Series begins anew.
type Series struct{ last time.Duration }

// Next is the wait before the next attempt: between half and all of a length that
// doubles up to most, so that processes cut off together do not come back together.
func (s *Series) Next(most time.Duration) time.Duration {
	s.last = min(max(2*s.last, first), most)
	return s.last/2 + rand.N(s.last/2)
}

// Began tells whether there was a wait since the series began anew.
func (s *Series) Began() bool { return s.last > 0 }

// Reset begins the series anew.
func (s *Series) Reset() { s.last = 0 }

// Sleep waits; it is false if ctx ended first.
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
