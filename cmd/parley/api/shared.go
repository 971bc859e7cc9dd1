package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/sessions"
)

// A view is a session's snapshot as everybody is shown it who comes while the
// session stands still. Nobody changes it.
type view struct {
	info  sessions.Info  // of the session as it was read
	frame []byte         // the event, ready to be sent
	known map[string]int // by turn: how many blocks it has
	runs  []string       // the turns that run
}

const (
	viewsKept  = 32              // sessions whose views are kept for those who come next
	viewsFor   = 2 * time.Second // and for how long: what was erased elsewhere is shown no longer
	viewsAtOne = 4               // logs that are read for views at once
)

// views makes snapshots and shares them: many who come at once cost one reading.
type views struct {
	log   sessions.Reader
	slots chan struct{}

	mu   sync.Mutex
	kept map[string]*shared
}

// A shared is the place where those who want one session's view meet.
type shared struct {
	turn chan struct{} // who has it looks; the others wait
	last *view
	used int // by whom it is waited for or looked at
}

func newViews(log sessions.Reader) *views {
	return &views{log: log, slots: make(chan struct{}, viewsAtOne), kept: map[string]*shared{}}
}

// of is a session's view as of now or later. A session that does not exist yet
// has an empty one.
func (v *views) of(ctx context.Context, key string) (*view, error) {
	s := v.join(key)
	defer v.leave(key, s)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.turn }()
	info, err := v.log.Info(ctx, key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return nil, err
	}
	if s.last != nil && s.last.info == info {
		return s.last, nil
	}
	select {
	case v.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.slots }()
	told, err := recountLog(ctx, v.log, key, info.Entries)
	if errors.Is(err, sessions.ErrNotFound) { // it was erased just now
		told, err = &recount{}, nil
	}
	if err != nil {
		return nil, err
	}
	s.last, err = told.view(info)
	return s.last, err
}

func (v *views) join(key string) *shared {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.kept[key]
	if s == nil {
		s = &shared{turn: make(chan struct{}, 1)}
		v.kept[key] = s
	}
	s.used++
	return s
}

// leave lets go of a view: at once where many are kept, else a while after the
// last who wanted it.
func (v *views) leave(key string, s *shared) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.used--
	if s.used > 0 || v.kept[key] != s {
		return
	}
	if len(v.kept) > viewsKept {
		delete(v.kept, key)
		return
	}
	time.AfterFunc(viewsFor, func() { v.drop(key, s) })
}

func (v *views) drop(key string, s *shared) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept[key] == s {
		delete(v.kept, key) // who uses it has it still
	}
}

// clear forgets all views, because something was erased.
func (v *views) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept = map[string]*shared{}
}

// view makes of a recount what watchers are shown.
func (c *recount) view(info sessions.Info) (*view, error) {
	frame, err := frameOf("", "snapshot", c.whole())
	if err != nil {
		return nil, fmt.Errorf("make a snapshot of session %s: %w", info.Key, err)
	}
	made := &view{info: info, frame: frame, known: map[string]int{}}
	for _, t := range c.turns {
		made.known[t.state.Turn] = len(t.blocks)
		if t.state.State == running {
			made.runs = append(made.runs, t.state.Turn)
		}
	}
	return made, nil
}
