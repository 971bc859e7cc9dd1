package worker

import (
	"sync"

	"parley/bus"
)

// maxAnnouncedSessions limits the number of sessions that an announcedMail tracks.
const maxAnnouncedSessions = 10_000

// An announcedMail tracks, per session, the newest message that this process has announced to watchers, so that
// a session that is claimed repeatedly doesn't announce the same mail twice.
type announcedMail struct {
	mu     sync.Mutex
	newest map[string]int64 // by session: the number of the newest announced message
}

// advance records that a session's messages up to number seq are announced to watchers, and returns the number up
// to which they were announced before.
func (t *announcedMail) advance(key string, seq int64) (before int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before = t.newest[key]; seq <= before {
		return before
	}
	if t.newest == nil || len(t.newest) >= maxAnnouncedSessions { // the map has a limit, because sessions that other processes now serve would stay in it forever
		t.newest = map[string]int64{}
	}
	t.newest[key] = seq
	return before
}

// forgetSession forgets a session whose mail is handled.
func (t *announcedMail) forgetSession(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.newest, key)
}

// announceReceived announces to the server's watchers which messages have arrived for the session, each once.
// first says that they came with the lease: then the first one begins the turn, and the turn's beginning
// announces it. Commands, decisions, and what can't be read are left out.
func (r *sessionRun) announceReceived(items []*item, first bool) {
	if len(items) == 0 {
		return
	}
	before := r.shared.announced.advance(r.Key(), items[len(items)-1].seq)
	for i, it := range items {
		begins := first && i == 0 && !it.isChange() && !it.isKind(bus.Notice)
		if begins || it.seq <= before || it.err != nil || it.isKind(bus.Command) || it.isKind(bus.Decided) {
			continue
		}
		r.Config.Events.Emit(bus.Event{Type: bus.Received, Session: r.Key(), News: &bus.News{ID: it.in.ID, Kind: it.in.Kind}})
	}
}
