package code

import (
	"context"
	"sync"
	"time"

	"parley/tools/code/symbols"
)

// Limits for all indexes together, and how long an unused index is kept.
const (
	maxIndexes     = 16
	maxHeldSymbols = 500_000 // symbols
	maxIdle        = 10 * time.Minute
)

// Indexes keeps the indexes of sessions' directories in memory. Its zero value is ready for use. It has no
// goroutine: a timer drops indexes that are no longer used.
type Indexes struct {
	mu        sync.Mutex
	bySession map[string]*index // by session
	finder    *symbols.Finder
	timer     *time.Timer // set while there is an index
}

// An index contains the symbols of one directory.
type index struct {
	inUse   chan struct{}    // holds one value while a call works with files
	files   map[string]*file // by name
	symbols int              // how many symbols the files contain

	used        time.Time // guarded by Indexes.mu, like held
	heldSymbols int       // symbols, as of the last refresh
}

// A file holds what is known about one source file. It isn't changed once other goroutines can see it.
type file struct {
	size     int64
	modified time.Time
	inode    uint64
	changed  time.Time // as returned by identityOf
	read     time.Time // when it was read
	symbols  []symbols.Symbol
}

// lock returns the index of a session, which it creates if necessary, for the exclusive use of this call. The call
// returns it with unlock.
func (x *Indexes) lock(ctx context.Context, session string) (*index, error) {
	x.mu.Lock()
	if x.bySession == nil {
		x.bySession, x.finder = map[string]*index{}, symbols.NewFinder()
	}
	i := x.bySession[session]
	if i == nil {
		i = &index{inUse: make(chan struct{}, 1), files: map[string]*file{}}
		x.bySession[session] = i
	}
	i.used = time.Now()
	if x.timer == nil {
		x.timer = time.AfterFunc(maxIdle, x.forgetIdle)
	}
	x.mu.Unlock()
	select {
	case i.inUse <- struct{}{}:
		return i, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unlock ends a call's use of an index, and drops other indexes if there are too many.
func (x *Indexes) unlock(i *index) {
	x.mu.Lock()
	i.used, i.heldSymbols = time.Now(), i.symbols
	x.trim()
	x.mu.Unlock()
	<-i.inUse
}

// trim drops the least recently used indexes until the others are within the limits. The caller holds mu.
func (x *Indexes) trim() {
	for {
		held := 0
		var oldest string
		for session, i := range x.bySession {
			held += i.heldSymbols
			if oldest == "" || i.used.Before(x.bySession[oldest].used) {
				oldest = session
			}
		}
		if len(x.bySession) <= 1 || len(x.bySession) <= maxIndexes && held <= maxHeldSymbols {
			return
		}
		delete(x.bySession, oldest)
	}
}

// forgetIdle drops the indexes that haven't been used for maxIdle. The timer calls it.
func (x *Indexes) forgetIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	next := maxIdle
	for session, i := range x.bySession {
		left := maxIdle - time.Since(i.used)
		if left <= 0 {
			delete(x.bySession, session)
			continue
		}
		next = min(next, left)
	}
	if x.timer = nil; len(x.bySession) > 0 {
		x.timer = time.AfterFunc(next, x.forgetIdle)
	}
}
