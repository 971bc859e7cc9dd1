package dispatch

import (
	"sync"
	"time"

	"parley/bus"
)

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

// movedChats remembers the new ids of chats that moved, so that each costs one
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
