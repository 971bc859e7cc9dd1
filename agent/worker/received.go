package worker

import (
	"sync"

	"parley/bus"
)

// mostTold limits the number of sessions that a told keeps track of.
const mostTold = 10_000

// A told tracks, per session, the newest message that this process has announced to watchers, so that a session
// that is claimed repeatedly doesn't announce the same mail twice.
type told struct {
	mu     sync.Mutex
	newest map[string]int64 // by session: the number of the newest message told
}

// raise records that a session's messages up to number seq are announced to watchers, and returns the number up
// to which they were announced before.
func (t *told) raise(key string, seq int64) (before int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before = t.newest[key]; seq <= before {
		return before
	}
	if t.newest == nil || len(t.newest) >= mostTold { // sessions that other processes now work on stay otherwise
		t.newest = map[string]int64{}
	}
	t.newest[key] = seq
	return before
}

// forget forgets a session whose mail is handled.
func (t *told) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.newest, key)
}

// tellReceived announces to the server's watchers which messages have arrived for the session, each once. first
// says that they came with the lease: then the first one begins the turn, and the turn's beginning announces
// it.
func (r *sessionRun) tellReceived(items []*item, first bool) {
	if len(items) == 0 {
		return
	}
	before := r.shared.told.raise(r.Key(), items[len(items)-1].seq)
	for i, it := range items {
		begins := first && i == 0 && !it.isChange() && !it.isKind(bus.Notice)
		if begins || it.seq <= before || it.err != nil || it.isKind(bus.Command) || it.isKind(bus.Decided) {
			continue
		}
		r.Config.Events.Emit(bus.Event{Type: bus.Received, Session: r.Key(), News: &bus.News{ID: it.in.ID, Kind: it.in.Kind}})
	}
}
