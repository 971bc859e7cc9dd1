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
// enough. One that does not say when it was said is judged by what its attempts
// must have taken.
func (p *post) givenUp(out bus.Outbound, attempts int) bool {
	if attempts < leastAttempts {
		return false
	}
	if out.At.IsZero() {
		return time.Duration(attempts)*longestBackoff/2 > p.delivery.GiveUp
	}
	return time.Since(out.At) > p.delivery.GiveUp
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
		for old := range m.to {
			delete(m.to, old)
			break
		}
	}
	m.to[chat] = to
}
