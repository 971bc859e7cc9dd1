package worker

import (
	"sync"

	"parley/bus"
)

// mostTold bounds the sessions of which a told knows something.
const mostTold = 10_000

// A told knows of which messages this process has told watchers, for the sessions whose mail it could not
// handle at once. Such a session is claimed again and again, and each time its mail is read anew.
type told struct {
	mu     sync.Mutex
	newest map[string]int64 // by session: the number of the newest message told
}

// raise notes that watchers are told of a session's messages up to one, and returns up to which they were
// told before.
func (t *told) raise(key string, seq int64) (before int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before = t.newest[key]; seq <= before {
		return before
	}
	if t.newest == nil || len(t.newest) >= mostTold { // those that others work on now are not forgotten otherwise
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

// tellReceived tells watchers of the server which messages have come for the session, of each once. first
// says that they came with the lease: then the first of them begins the turn, whose beginning tells of it.
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
