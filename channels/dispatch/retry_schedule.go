package dispatch

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// lookInterval is the time after which a waiting mailbox is claimed again to check whether the platform works
	// again; it grows to longestLookInterval for a mailbox that has waited long. All waiting mailboxes together are claimed
	// at most looksPerSecond times a second.
	lookInterval        = 3 * time.Second
	longestLookInterval = 30 * time.Second
	looksPerSecond      = 50
	earlyClaimLeeway    = time.Second // if a mailbox is claimed earlier than planned by more than this, something urgent has arrived in it
	earlyTryInterval    = time.Minute // the minimum time between two early sends from one mailbox
	// probeInterval is the time between two early sends that test whether the platform works again; it grows with the
	// length of the outage.
	probeInterval = 10 * time.Second
)

const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	// unknownBackoff is longer because, if the last send did arrive, people see the next one as a repetition.
	unknownBackoff = 15 * time.Minute
	storageWait    = 5 * time.Second // how long a message waits after a failure of the book or the bus
)

// backoff returns how long to wait after a number of attempts: a random time below a limit that doubles with each
// attempt, so that messages that failed together are not tried again together.
func backoff(attempts int, longest time.Duration) time.Duration {
	bound := longest
	if attempts < 20 {
		bound = min(longest, firstBackoff<<max(attempts-1, 0))
	}
	return 100*time.Millisecond + rand.N(bound)
}

// A retrySchedule remembers the mailboxes that wait because the platform has failed. In an outage their waits grow
// long; the schedule ends them soon after the outage. To this end, each mailbox goes back to the bus only for a
// short time and is then claimed and checked again. Mail is sent from it before its wait is over once the platform
// works again (but at most once a minute), or if it is chosen as the probe that finds that out. Entries can be
// lost, when the process ends or there is no room; that only causes earlier attempts.
type retrySchedule struct {
	mu           sync.Mutex
	mailboxes    map[string]mailboxWait // the waiting mailboxes, by key
	lastTry      time.Time              // when any mailbox was last allowed to send
	failingNow   bool                   // whether no send has been answered since the last failure
	workingSince time.Time              // when the platform was found to work again
}

// A mailboxWait says until when one mailbox waits, and why.
type mailboxWait struct {
	firstFailure time.Time // when its sends began to fail
	lastFailure  time.Time // when its last send failed
	until        time.Time
	nextLook     time.Time // when the bus next lets the mailbox be claimed
	earlyTry     time.Time // when mail was last sent before the wait was over, because the platform worked again
	unsent       bool      // whether certainly no part of its message has arrived
	unreachable  bool      // whether the platform could not be reached
}

func newRetrySchedule() *retrySchedule { return &retrySchedule{mailboxes: map[string]mailboxWait{}} }

// add records a failure after which a mailbox should wait for the time after. It returns how long to wait before
// claiming the mailbox to check whether it must still wait. sure says that certainly no part of its message has
// arrived, lost that the platform could not be reached.
func (s *retrySchedule) add(key string, after time.Duration, sure, lost bool) time.Duration {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.mailboxes[key]
	if !known && len(s.mailboxes) >= maxRemembered {
		forgetOne(s.mailboxes)
	}
	s.failingNow = true
	if !known {
		one.firstFailure = now
	}
	s.mailboxes[key] = mailboxWait{firstFailure: one.firstFailure, lastFailure: now, until: now.Add(after), earlyTry: one.earlyTry, unsent: sure, unreachable: lost}
	return s.planLook(key, now)
}

// planLook returns how long to wait before claiming a mailbox again. The caller holds s.mu.
func (s *retrySchedule) planLook(key string, now time.Time) time.Duration {
	one := s.mailboxes[key]
	every := max(lookInterval, min(now.Sub(one.firstFailure)/60, longestLookInterval), time.Duration(len(s.mailboxes))*time.Second/looksPerSecond)
	after := min(one.until.Sub(now), every+rand.N(every/3))
	one.nextLook = now.Add(after)
	s.mailboxes[key] = one
	return after
}

// waits reports whether the mailbox is waiting after a failure.
func (s *retrySchedule) waits(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.mailboxes[key]
	return known
}

// remaining returns how much longer a claimed mailbox should wait; 0 means that its mail is to be sent now.
// connected says that the platform can be reached.
func (s *retrySchedule) remaining(key string, connected bool) time.Duration {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.mailboxes[key]
	well := s.workingSince.After(one.lastFailure) || one.unreachable && connected
	switch {
	case !known, !now.Before(one.until),
		one.nextLook.Sub(now) > earlyClaimLeeway, // the claim came early: something urgent has arrived in the mailbox
		// Something urgent may have arrived here too, but the wait ends too soon to tell. If the mailbox went back
		// for such a short time, it would be claimed again and again, because the bus does not let unread urgent
		// mail wait.
		one.nextLook.After(now) && one.until.Sub(now) <= earlyClaimLeeway:
	case well && now.Sub(one.earlyTry) > earlyTryInterval:
		one.earlyTry = now
		s.mailboxes[key] = one
	case one.unsent && now.Sub(s.lastTry) > max(probeInterval, now.Sub(one.firstFailure)/10):
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
	if s.failingNow {
		s.failingNow, s.workingSince = false, time.Now()
	}
}

// remove forgets a mailbox that no longer waits.
func (s *retrySchedule) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mailboxes, key)
}
