package channels

import (
	"math/rand/v2"
	"sync"
	"time"

	"parley/bus"
)

// A verdict is what is to become of one message after work on it. The zero
// verdict gives it back at once, counted.
type verdict struct {
	done      bool
	bury      string // the reason; "" does not
	after     time.Duration
	uncounted bool
	gone      bool  // the lease is lost: nothing may be done any more
	left      bool  // there is more to be sent to that address
	stop      error // the platform refuses the account
}

// later gives a message back because of something that is not its fault.
func later(after time.Duration) verdict { return verdict{after: after, uncounted: true} }

func (v verdict) apply(end *bus.End, m bus.Message) {
	if v.bury != "" {
		end.Dead, end.Reason = m.Seq, v.bury
		return
	}
	end.After, end.Uncounted = v.after, v.uncounted
}

const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
	// After a send of unknown outcome the next may be a repetition, so they
	// come to be rarer.
	unknownBackoff = 15 * time.Minute
	leastAttempts  = 10
	// leastBeforeFallback is how often sends to an address must have failed.
	leastBeforeFallback = 5
)

// backoff is how long to wait after so many attempts: anything up to a bound
// that doubles, so that what failed together is not tried together again.
func backoff(attempts int, longest time.Duration) time.Duration {
	bound := longest
	if attempts < 20 {
		bound = min(longest, firstBackoff<<max(attempts-1, 0))
	}
	return 100*time.Millisecond + rand.N(bound)
}

// givenUp tells whether a message that cannot be sent has been tried for long
// enough. Where there is a fallback, it is used once the platform has
// failed for a while: not for the message's own failures alone, so that what
// waits behind it for the same address need not wait as long again.
func (l *letter) givenUp() bool {
	if len(l.out.Fallback) > 0 {
		since, tries := l.trouble.of(l.out.To)
		after := l.delivery.FallbackAfter
		if tries >= leastBeforeFallback && time.Since(since) > after && time.Since(l.out.At) > after {
			return true
		}
	}
	return l.worn()
}

// worn says so of a message for its own sake. One that does not say when it was
// said is judged by what its attempts must have taken.
func (l *letter) worn() bool {
	if l.attempts < leastAttempts {
		return false
	}
	if l.out.At.IsZero() {
		return time.Duration(l.attempts)*longestBackoff/2 > l.delivery.GiveUp
	}
	return time.Since(l.out.At) > l.delivery.GiveUp
}

// failing notes that the platform has failed to take something, and not because
// it was asked too often.
func (l *letter) failing(fault *SendError) {
	if !fault.Limited {
		l.trouble.another(l.out.To)
	}
}

// A trouble is since when, and how often in a row, sends to an address have
// failed. What is forgotten, at random when it is full or because the process
// ended, is found out again.
type trouble struct {
	mu sync.Mutex
	at map[bus.Address]failures
}

type failures struct {
	since time.Time
	tries int
}

func newTrouble() *trouble { return &trouble{at: map[bus.Address]failures{}} }

func (t *trouble) of(a bus.Address) (since time.Time, tries int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.at[a]
	return f.since, f.tries
}

func (t *trouble) another(a bus.Address) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.at[a]
	if !known {
		if len(t.at) >= maxRecent {
			forgetOne(t.at)
		}
		f.since = time.Now()
	}
	f.tries++
	t.at[a] = f
}

func (t *trouble) over(a bus.Address) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.at, a)
}

func forgetOne[K comparable, V any](m map[K]V) {
	for old := range m {
		delete(m, old)
		return
	}
}

// moves remembers the new ids of chats that moved, so that each costs one
// refused send only; it forgets at random when it is full.
type moves struct {
	mu sync.Mutex
	to map[string]string
}

func newMoves() *moves { return &moves{to: map[string]string{}} }

func (m *moves) now(chat string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to, ok := m.to[chat]; ok {
		return to
	}
	return chat
}

func (m *moves) set(chat, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.to) >= maxRecent {
		forgetOne(m.to)
	}
	m.to[chat] = to
}
