package dispatch

import (
	"sync"
	"time"

	"parley/bus"
)

// failureStreaks counts the failed sends to each address since the platform last accepted or refused one, and
// remembers when they began. The counts are only in memory: when there are too many, any of them may be dropped,
// and they end with the process.
type failureStreaks struct {
	mu        sync.Mutex
	byAddress map[bus.Address]failureStreak
}

// A failureStreak is a number of failures in a row at one address.
type failureStreak struct {
	since    time.Time
	failures int
}

func newFailureStreaks() *failureStreaks {
	return &failureStreaks{byAddress: map[bus.Address]failureStreak{}}
}

// lookup returns since when, and how many times in a row, sends to an address have failed; zeros if the platform
// answered the last one.
func (f *failureStreaks) lookup(a bus.Address) (since time.Time, tries int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	streak := f.byAddress[a]
	return streak.since, streak.failures
}

// add counts a failed send to an address.
func (f *failureStreaks) add(a bus.Address) {
	f.mu.Lock()
	defer f.mu.Unlock()
	streak, known := f.byAddress[a]
	if !known {
		if len(f.byAddress) >= maxRemembered {
			forgetOne(f.byAddress)
		}
		streak.since = time.Now()
	}
	streak.failures++
	f.byAddress[a] = streak
}

// reset forgets the failures at an address.
func (f *failureStreaks) reset(a bus.Address) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byAddress, a)
}

// maxRemembered is the maximum size of each map in memory with addresses, chats or mailboxes as keys. A full map
// forgets a random entry, which only costs one more attempt at the next send for that entry.
const maxRemembered = 4096

// forgetOne deletes a random entry from a map.
func forgetOne[K comparable, V any](m map[K]V) {
	for old := range m {
		delete(m, old)
		return
	}
}
