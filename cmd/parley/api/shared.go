package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/agent/blocks"
	"parley/sessions"
)

// A cachedSnapshot is a picture of a session's newest turns that everybody is shown who begins to
// watch before the session changes. It is never changed after it was made.
type cachedSnapshot struct {
	info         sessions.Info             // the session when it was read
	frame        []byte                    // the event as it is sent
	blocks       map[string]snapshotBlocks // by turn
	runningTurns []string                  // the ids of the turns that run
	said         []string                  // the ids of what operators have said
}

// A snapshotBlocks says which blocks of a turn a snapshot has.
type snapshotBlocks struct {
	next int          // the number of the first block of the turn's next answer
	has  map[int]bool // by number
}

const (
	maxCachedSnapshots = 32              // how many sessions' snapshots are kept for further watchers
	cachedSnapshotTTL  = 2 * time.Second // for how long a snapshot is kept: another process may have erased something since
	maxSnapshotReads   = 4               // how many sessions' logs are read at once
)

// A snapshotCache makes snapshots of sessions for those who begin to watch, and shares them: many
// watchers who come at once cost one reading of the log.
type snapshotCache struct {
	log       sessions.Reader
	redact    func() blocks.Redactor
	readSlots chan struct{}

	mu   sync.Mutex
	kept map[string]*cacheSlot
}

// A cacheSlot holds one session's snapshot for everybody who wants it.
type cacheSlot struct {
	lock     chan struct{} // its holder reads the log; the others wait for it
	snapshot *cachedSnapshot
	users    int // how many callers of get use it
}

func newSnapshotCache(log sessions.Reader, redact func() blocks.Redactor) *snapshotCache {
	return &snapshotCache{log: log, redact: redact, readSlots: make(chan struct{}, maxSnapshotReads), kept: map[string]*cacheSlot{}}
}

// get returns a snapshot of a session that is no older than the call. A session that does not
// exist yet has an empty one.
func (v *snapshotCache) get(ctx context.Context, key string) (*cachedSnapshot, error) {
	s := v.acquire(key)
	defer v.release(key, s)
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.lock }()
	info, err := v.log.Info(ctx, key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return nil, err
	}
	if s.snapshot != nil && s.snapshot.info == info {
		return s.snapshot, nil
	}
	select {
	case v.readSlots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.readSlots }()
	told, err := readSnapshot(ctx, v.log, v.redact(), key, info.Entries)
	if errors.Is(err, sessions.ErrNotFound) { // the session was erased just now
		told, err = &snapshotBuilder{}, nil
	}
	if err != nil {
		return nil, err
	}
	s.snapshot, err = told.render(info)
	return s.snapshot, err
}

// acquire returns a session's slot in the cache, and counts the caller as its user until release.
func (v *snapshotCache) acquire(key string) *cacheSlot {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.kept[key]
	if s == nil {
		s = &cacheSlot{lock: make(chan struct{}, 1)}
		v.kept[key] = s
	}
	s.users++
	return s
}

// release ends a caller's use of a slot. The last user's slot is removed: at once if many
// are kept, else after cachedSnapshotTTL.
func (v *snapshotCache) release(key string, s *cacheSlot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.users--
	if s.users > 0 || v.kept[key] != s {
		return
	}
	if len(v.kept) > maxCachedSnapshots {
		delete(v.kept, key)
		return
	}
	time.AfterFunc(cachedSnapshotTTL, func() { v.drop(key, s) })
}

// drop removes a slot from the cache, unless the session has another slot by now.
func (v *snapshotCache) drop(key string, s *cacheSlot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept[key] == s {
		delete(v.kept, key) // its users keep their pointer
	}
}

// clear removes all snapshots, because something was erased that they may show.
func (v *snapshotCache) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept = map[string]*cacheSlot{}
}

// render returns the snapshot in the form in which it is sent to watchers.
func (c *snapshotBuilder) render(info sessions.Info) (*cachedSnapshot, error) {
	frame, err := frameOf("", "snapshot", c.build())
	if err != nil {
		return nil, fmt.Errorf("make a snapshot of session %s: %w", info.Key, err)
	}
	made := &cachedSnapshot{info: info, frame: frame, blocks: map[string]snapshotBlocks{}}
	for _, m := range c.said {
		made.said = append(made.said, m.Call)
	}
	for _, t := range c.turns {
		has := make(map[int]bool, len(t.blocks))
		for _, b := range t.blocks {
			has[b.Block] = true
		}
		made.blocks[t.state.Turn] = snapshotBlocks{t.numbers.Next(), has}
		if t.state.State == running {
			made.runningTurns = append(made.runningTurns, t.state.Turn)
		}
	}
	return made, nil
}
