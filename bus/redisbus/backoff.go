package redisbus

import (
	"math/rand/v2"
	"time"
)

// These are the shortest and the longest wait between two attempts.
const (
	shortRetry = 20 * time.Millisecond
	longRetry  = 250 * time.Millisecond
)

// jitter returns a random time between half of d and d, so that processes do not all retry
// at once.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// A backoff is the wait before the last attempt, without jitter. It doubles from one
// attempt to the next; zero starts again from the shortest.
type backoff time.Duration

// next returns the wait before the next attempt.
func (b *backoff) next() time.Duration {
	*b = backoff(min(max(2*time.Duration(*b), shortRetry), longRetry))
	return jitter(time.Duration(*b))
}
