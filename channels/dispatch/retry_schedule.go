package dispatch

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// lookEvery is how often a mailbox that waits after a failure is claimed to see
	// whether the platform is well again: at most every lookRarely once it has waited
	// for long. All that wait share looksPerSecond.
	lookEvery      = 3 * time.Second
	lookRarely     = 30 * time.Second
	looksPerSecond = 50
	lookLeeway     = time.Second
	earlyTryEvery  = time.Minute
	// probeEvery is how often one of them is sent from before its time to find
	// that out, more rarely the longer it waits.
	probeEvery = 10 * time.Second
)

const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
	// unknownBackoff is longer: a send after one of unknown outcome may be a
	// repetition that people see.
	unknownBackoff = 15 * time.Minute
	storageWait    = 5 * time.Second // after a failure of the book's or the bus's
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

// A retrySchedule remembers what waits because a platform has failed, so that an outage
// is not followed by the waits that it has made long. Each mailbox is given back
// to the bus for a moment only; until its wait is over it is sent from sooner
// once the platform is known to be well again, and then not again within a
// minute, or as the one by which that is found out. What is forgotten, because
// the process has ended or there is no room, is only tried sooner.
type retrySchedule struct {
	mu        sync.Mutex
	mailboxes map[string]mailboxWait // by mailbox
	lastTry   time.Time              // anything
	failing   bool                   // since the last success
	wellSince time.Time              // when it was found to be well again
}

// A mailboxWait is how long one mailbox waits, and why.
type mailboxWait struct {
	firstFailure time.Time // it failed
	lastFailure  time.Time // it failed the last time
	until        time.Time
	nextLook     time.Time // the bus gives it out
	earlyTry     time.Time // it was sent from before its time
	unsent       bool      // nothing of it can have arrived
	unreachable  bool      // the platform was out of reach
}

func newRetrySchedule() *retrySchedule { return &retrySchedule{mailboxes: map[string]mailboxWait{}} }

// add notes a failure after which a mailbox is to wait, and returns when it is to
// be looked at.
func (s *retrySchedule) add(key string, after time.Duration, sure, lost bool) time.Duration {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.mailboxes[key]
	if !known && len(s.mailboxes) >= maxRemembered {
		forgetOne(s.mailboxes)
	}
	s.failing = true
	if !known {
		one.firstFailure = now
	}
	s.mailboxes[key] = mailboxWait{firstFailure: one.firstFailure, lastFailure: now, until: now.Add(after), earlyTry: one.earlyTry, unsent: sure, unreachable: lost}
	return s.planLook(key, now)
}

// planLook plans the next look at a mailbox. s.mu is held.
func (s *retrySchedule) planLook(key string, now time.Time) time.Duration {
	one := s.mailboxes[key]
	every := max(lookEvery, min(now.Sub(one.firstFailure)/60, lookRarely), time.Duration(len(s.mailboxes))*time.Second/looksPerSecond)
	after := min(one.until.Sub(now), every+rand.N(every/3))
	one.nextLook = now.Add(after)
	s.mailboxes[key] = one
	return after
}

// remaining is how much longer a mailbox that was claimed is to wait; 0 sends from it
// now. Connected says that the platform is in reach.
func (s *retrySchedule) remaining(key string, connected bool) time.Duration {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.mailboxes[key]
	well := s.wellSince.After(one.lastFailure) || one.unreachable && connected
	switch {
	case !known, !now.Before(one.until),
		one.nextLook.Sub(now) > lookLeeway: // something urgent has come
	case well && now.Sub(one.earlyTry) > earlyTryEvery:
		one.earlyTry = now
		s.mailboxes[key] = one
	case one.unsent && now.Sub(s.lastTry) > max(probeEvery, now.Sub(one.firstFailure)/10):
	default:
		return s.planLook(key, now)
	}
	s.lastTry = now
	return 0
}

// platformWell notes that the platform is well: it has taken, or refused, something.
func (s *retrySchedule) platformWell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing {
		s.failing, s.wellSince = false, time.Now()
	}
}

// remove forgets a mailbox that does not wait any more.
func (s *retrySchedule) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mailboxes, key)
}
