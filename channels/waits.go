package channels

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// glanceEvery is how often a mailbox that waits after a failure is looked at,
	// whether the platform is well again: more rarely the longer it waits, and
	// where many wait, they share so many looks a second.
	glanceEvery  = 3 * time.Second
	glanceRarely = 30 * time.Second
	glancesASec  = 50
	glanceLeeway = time.Second
	earlyAtMost  = time.Minute
	// probeEvery is how often one of them is sent from before its time to find
	// that out, more rarely the longer it waits.
	probeEvery = 10 * time.Second
)

// A waits remembers what waits because a platform has failed, so that an outage
// is not followed by the waits that it has made long. Each mailbox is given back
// to the bus for a moment only; until its wait is over it is sent from sooner
// once the platform is known to be well again, and then not again within a
// minute, or as the one by which that is found out. What is forgotten, because
// the process has ended or there is no room, is only tried sooner.
type waits struct {
	mu      sync.Mutex
	of      map[string]wait // by mailbox
	tried   time.Time       // anything
	failing bool            // since the last success
	well    time.Time       // when it was found to be well again
}

// A wait is that of one mailbox.
type wait struct {
	first time.Time // it failed
	since time.Time // it failed the last time
	until time.Time
	next  time.Time // the bus gives it out
	early time.Time // it was sent from before its time
	sure  bool      // nothing of it can have arrived
	lost  bool      // the platform was out of reach
}

func newWaits() *waits { return &waits{of: map[string]wait{}} }

// put notes a failure after which a mailbox is to wait, and returns when it is to
// be looked at.
func (w *waits) put(key string, after time.Duration, sure, lost bool) time.Duration {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	one, known := w.of[key]
	if !known && len(w.of) >= maxRecent {
		forgetOne(w.of)
	}
	w.failing = true
	if !known {
		one.first = now
	}
	w.of[key] = wait{first: one.first, since: now, until: now.Add(after), early: one.early, sure: sure, lost: lost}
	return w.glance(key, now)
}

// glance plans the next look at a mailbox. w.mu is held.
func (w *waits) glance(key string, now time.Time) time.Duration {
	one := w.of[key]
	every := max(glanceEvery, min(now.Sub(one.first)/60, glanceRarely), time.Duration(len(w.of))*time.Second/glancesASec)
	after := min(one.until.Sub(now), every+rand.N(every/3))
	one.next = now.Add(after)
	w.of[key] = one
	return after
}

// hold is how much longer a mailbox that was claimed is to wait; 0 sends from it
// now. Connected says that the platform is in reach.
func (w *waits) hold(key string, connected bool) time.Duration {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	one, known := w.of[key]
	well := w.well.After(one.since) || one.lost && connected
	switch {
	case !known, !now.Before(one.until),
		one.next.Sub(now) > glanceLeeway: // something urgent has come
	case well && now.Sub(one.early) > earlyAtMost:
		one.early = now
		w.of[key] = one
	case one.sure && now.Sub(w.tried) > max(probeEvery, now.Sub(one.first)/10):
	default:
		return w.glance(key, now)
	}
	w.tried = now
	return 0
}

// answered notes that the platform is well: it has taken, or refused, something.
func (w *waits) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing {
		w.failing, w.well = false, time.Now()
	}
}

// over forgets a mailbox that does not wait any more.
func (w *waits) over(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, key)
}
