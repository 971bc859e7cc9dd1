package dispatch

import (
	"math/rand/v2"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
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

// shouldGiveUp tells whether a message that cannot be sent has been tried for long
// enough. Where there is a fallback, it is used once the platform has
// failed for a while: not for the message's own failures alone, so that what
// waits behind it for the same address need not wait as long again.
func (d *delivery) shouldGiveUp() bool {
	if len(d.out.Fallback) > 0 {
		since, tries := d.streaks.of(d.out.To)
		after := d.policy.FallbackAfter
		if tries >= leastBeforeFallback && time.Since(since) > after && time.Since(d.out.At) > after {
			return true
		}
	}
	return d.triedLongEnough()
}

// triedLongEnough says so of a message for its own sake. One that does not say when it was
// said is judged by what its attempts must have taken.
func (d *delivery) triedLongEnough() bool {
	if d.attempts < leastAttempts {
		return false
	}
	if d.out.At.IsZero() {
		return time.Duration(d.attempts)*longestBackoff/2 > d.policy.GiveUp
	}
	return time.Since(d.out.At) > d.policy.GiveUp
}

// noteFailure notes that the platform has failed to take something, and not because
// it was asked too often.
func (d *delivery) noteFailure(fault *channels.SendError) {
	if !fault.Limited {
		d.streaks.add(d.out.To)
	}
}

// failureStreaks hold since when, and how often in a row, sends to an address have
// failed. What is forgotten, at random when it is full or because the process
// ended, is found out again.
type failureStreaks struct {
	mu sync.Mutex
	at map[bus.Address]failureStreak
}

type failureStreak struct {
	since time.Time
	tries int
}

func newFailureStreaks() *failureStreaks { return &failureStreaks{at: map[bus.Address]failureStreak{}} }

func (f *failureStreaks) of(a bus.Address) (since time.Time, tries int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	streak := f.at[a]
	return streak.since, streak.tries
}

func (f *failureStreaks) add(a bus.Address) {
	f.mu.Lock()
	defer f.mu.Unlock()
	streak, known := f.at[a]
	if !known {
		if len(f.at) >= maxRemembered {
			forgetOne(f.at)
		}
		streak.since = time.Now()
	}
	streak.tries++
	f.at[a] = streak
}

func (f *failureStreaks) end(a bus.Address) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.at, a)
}

// maxRemembered bounds each of the things that are remembered in memory about
// addresses, chats and mailboxes. When one is full it forgets any entry, which only
// makes the next send of that entry's take another try.
const maxRemembered = 4096

func forgetOne[K comparable, V any](m map[K]V) {
	for old := range m {
		delete(m, old)
		return
	}
}

// moves remembers the new ids of chats that moved, so that each costs one
// refused send only; it forgets at random when it is full.
type movedChats struct {
	mu sync.Mutex
	to map[string]string
}

func newMovedChats() *movedChats { return &movedChats{to: map[string]string{}} }

func (m *movedChats) current(chat string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to, ok := m.to[chat]; ok {
		return to
	}
	return chat
}

func (m *movedChats) set(chat, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.to) >= maxRemembered {
		forgetOne(m.to)
	}
	m.to[chat] = to
}
