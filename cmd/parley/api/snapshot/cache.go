package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/agent/blocks"
	"parley/sessions"
)

// A Rendered is a snapshot as it is sent to everybody who begins to watch before the session changes. It is
// immutable.
type Rendered struct {
	Frame        []byte                // the event in the form in which it is sent
	Blocks       map[string]TurnBlocks // by turn
	RunningTurns []string              // the ids of the turns that run
	Said         []string              // the ids of its Messages

	info sessions.Info // the state of the session when its log was read
}

// A TurnBlocks says which blocks of a turn are in a snapshot.
type TurnBlocks struct {
	Next int          // the number of the first block of the turn's next answer
	Has  map[int]bool // by number
}

const (
	maxKept  = 32              // how many sessions' snapshots are kept for further watchers
	keptFor  = 2 * time.Second // how long a snapshot is kept once nobody uses it: another process may have erased something since
	maxReads = 4               // how many sessions' logs are read at once
)

// A Cache makes snapshots of sessions for those who begin to watch, and shares them: many
// watchers who come at once cost only one reading of the log.
type Cache struct {
	log       sessions.Reader
	redact    func() blocks.Redactor
	encode    func(Snapshot) ([]byte, error)
	readSlots chan struct{}

	mu   sync.Mutex
	kept map[string]*cacheSlot
}

// A cacheSlot holds one session's snapshot for everybody who wants it.
type cacheSlot struct {
	lock     chan struct{} // its holder reads the log, and the others wait for it
	rendered *Rendered
	users    int // how many callers of Get use it
}

// NewCache returns an empty cache. redact returns the Redactor that removes secrets from what is shown, and encode
// returns the event that is sent to watchers.
func NewCache(log sessions.Reader, redact func() blocks.Redactor, encode func(Snapshot) ([]byte, error)) *Cache {
	return &Cache{log: log, redact: redact, encode: encode, readSlots: make(chan struct{}, maxReads), kept: map[string]*cacheSlot{}}
}

// Get returns a snapshot that shows the session as it is at the time of the call. A session that does not exist yet
// has an empty snapshot.
func (c *Cache) Get(ctx context.Context, key string) (*Rendered, error) {
	s := c.acquire(key)
	defer c.release(key, s)
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.lock }()
	info, err := c.log.Info(ctx, key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return nil, err
	}
	if s.rendered != nil && s.rendered.info == info {
		return s.rendered, nil
	}
	select {
	case c.readSlots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.readSlots }()
	told, err := read(ctx, c.log, c.redact(), key, info.LastEntry)
	if errors.Is(err, sessions.ErrNotFound) { // the session was just erased
		told, err = &builder{}, nil
	}
	if err != nil {
		return nil, err
	}
	s.rendered, err = c.render(told, info)
	return s.rendered, err
}

// acquire returns a session's slot in the cache, and counts the caller as its user until release.
func (c *Cache) acquire(key string) *cacheSlot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.kept[key]
	if s == nil {
		s = &cacheSlot{lock: make(chan struct{}, 1)}
		c.kept[key] = s
	}
	s.users++
	return s
}

// release ends a caller's use of a slot. When its last user is gone, it is removed: at once if many
// are kept, else after keptFor.
func (c *Cache) release(key string, s *cacheSlot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	if s.users > 0 || c.kept[key] != s {
		return
	}
	if len(c.kept) > maxKept {
		delete(c.kept, key)
		return
	}
	time.AfterFunc(keptFor, func() { c.drop(key, s) })
}

// drop removes a slot from the cache, unless the session has another slot by now.
func (c *Cache) drop(key string, s *cacheSlot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[key] == s {
		delete(c.kept, key) // its users still have their pointer
	}
}

// Clear removes all snapshots, because they may show something that was erased.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = map[string]*cacheSlot{}
}

// render returns the snapshot in the form in which it is sent to watchers.
func (c *Cache) render(told *builder, info sessions.Info) (*Rendered, error) {
	frame, err := c.encode(told.build())
	if err != nil {
		return nil, fmt.Errorf("make a snapshot of session %s: %w", info.Key, err)
	}
	made := &Rendered{info: info, Frame: frame, Blocks: map[string]TurnBlocks{}}
	for _, m := range told.said {
		made.Said = append(made.Said, m.Call)
	}
	for _, t := range told.turns {
		has := make(map[int]bool, len(t.blocks))
		for _, b := range t.blocks {
			has[b.Block] = true
		}
		made.Blocks[t.state.Turn] = TurnBlocks{t.numbers.Next(), has}
		if t.state.State == running {
			made.RunningTurns = append(made.RunningTurns, t.state.Turn)
		}
	}
	return made, nil
}
