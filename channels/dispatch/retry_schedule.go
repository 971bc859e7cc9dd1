package dispatch

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// lookEvery is the time between two claims of a waiting mailbox, which check whether the
	// platform works again; it grows to lookRarely for a mailbox that has waited long. All waiting
	// mailboxes together are claimed at most looksPerSecond times a second.
	lookEvery      = 3 * time.Second
	lookRarely     = 30 * time.Second
	looksPerSecond = 50
	lookLeeway     = time.Second
	earlyTryEvery  = time.Minute
	// probeEvery is the time between two early sends that test whether the platform works
	// again; it grows with the length of the outage.
	probeEvery = 10 * time.Second
)

const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
	// unknownBackoff is longer, because a send after one of unknown outcome may be a
	// repetition that people see.
	unknownBackoff = 15 * time.Minute
	storageWait    = 5 * time.Second // how long a message waits after a failure of the book or the bus
)

// backoff returns how long to wait after that many attempts: a random time below a bound
// that doubles, so that messages that failed together are not tried together again.
func backoff(attempts int, longest time.Duration) time.Duration {
	bound := longest
	if attempts < 20 {
		bound = min(longest, firstBackoff<<max(attempts-1, 0))
	}
	return 100*time.Millisecond + rand.N(bound)
}

// A retrySchedule remembers the mailboxes that wait because the platform has failed, so
// that their waits, which grow long in an outage, end soon after it. Each mailbox goes back
// to the bus for a short time only, and is looked at again. Before its wait is over, mail
// is sent from it once the platform works again (then not again within a minute), or as the
// one probe that finds that out. Entries that are lost, because the process ended or there
// is no room, only cause earlier attempts.
type retrySchedule struct {
	mu           sync.Mutex
	mailboxes    map[string]mailboxWait // the waiting mailboxes, by key
	lastTry      time.Time              // when mail was last sent from any mailbox before its wait was over
	failing      bool                   // whether no send has succeeded since the last failure
	workingSince time.Time              // when the platform was found to work again
}

// A mailboxWait says until when one mailbox waits, and why.
type mailboxWait struct {
	firstFailure time.Time // when its sends began to fail
	lastFailure  time.Time // when its last send failed
	until        time.Time
	nextLook     time.Time // when the bus lets the mailbox be claimed next
	earlyTry     time.Time // when mail was last sent from the mailbox before its wait was over
	unsent       bool      // whether nothing of its message can have arrived
	unreachable  bool      // whether the platform could not be reached
}

func newRetrySchedule() *retrySchedule { return &retrySchedule{mailboxes: map[string]mailboxWait{}} }

// add records a failure after which a mailbox should wait for the time after, and returns after
// what time to claim it and look whether it must still wait. sure says that nothing of its message
// can have arrived, lost that the platform could not be reached.
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

// planLook returns after what time to claim a mailbox again. The caller holds s.mu.
func (s *retrySchedule) planLook(key string, now time.Time) time.Duration {
	one := s.mailboxes[key]
	every := max(lookEvery, min(now.Sub(one.firstFailure)/60, lookRarely), time.Duration(len(s.mailboxes))*time.Second/looksPerSecond)
	after := min(one.until.Sub(now), every+rand.N(every/3))
	one.nextLook = now.Add(after)
	s.mailboxes[key] = one
	return after
}

// waits reports whether the mailbox waits after a failure.
func (s *retrySchedule) waits(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.mailboxes[key]
	return known
}

// remaining returns how much longer a claimed mailbox should wait; 0 means to send from it now.
// connected says that the platform can be reached.
func (s *retrySchedule) remaining(key string, connected bool) time.Duration {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.mailboxes[key]
	well := s.workingSince.After(one.lastFailure) || one.unreachable && connected
	switch {
	case !known, !now.Before(one.until),
		one.nextLook.Sub(now) > lookLeeway, // something urgent has arrived in it
		// Perhaps something has too. Sent back for so short a time, the mailbox would be claimed for
		// that again and again, as the bus lets nothing urgent wait that nobody has read.
		one.nextLook.After(now) && one.until.Sub(now) <= lookLeeway:
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

// notePlatformWorks records that the platform works: it has accepted or refused something.
func (s *retrySchedule) notePlatformWorks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing {
		s.failing, s.workingSince = false, time.Now()
	}
}

// remove forgets a mailbox that does not wait any more.
func (s *retrySchedule) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mailboxes, key)
}
