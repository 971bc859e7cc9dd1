package code

import (
	"context"
	"sync"
	"time"

	"parley/tools/code/symbols"
)

// Bounds of all indexes together, and how long one is kept that nobody uses.
const (
	maxIndexes = 16
	maxHeld    = 500_000 // symbols
	keptIdle   = 10 * time.Minute
)

// Indexes keeps the indexes of sessions' directories in memory. Its zero value is ready for use. It has no
// goroutine: a timer forgets what is not used any more.
type Indexes struct {
	mu     sync.Mutex
	of     map[string]*index // by session
	finder *symbols.Finder
	timer  *time.Timer // set while there is an index
}

// An index has the symbols of one directory.
type index struct {
	turn    chan struct{}    // holds one value while a call works with files
	files   map[string]*file // by name
	symbols int              // how many the files have

	used time.Time // guarded by Indexes.mu, as is held
	held int       // symbols, as of the last refresh
}

// A file is what is known of one file of source code. It is not changed once others may see it.
type file struct {
	size     int64
	modified time.Time
	inode    uint64
	changed  time.Time // as identityOf returns it
	read     time.Time // when it was read
	symbols  []symbols.Symbol
}

// lock returns the index of a session, which it makes if there is none, for this call alone; unlock gives it back.
func (x *Indexes) lock(ctx context.Context, session string) (*index, error) {
	x.mu.Lock()
	if x.of == nil {
		x.of, x.finder = map[string]*index{}, symbols.NewFinder()
	}
	i := x.of[session]
	if i == nil {
		i = &index{turn: make(chan struct{}, 1), files: map[string]*file{}}
		x.of[session] = i
	}
	i.used = time.Now()
	if x.timer == nil {
		x.timer = time.AfterFunc(keptIdle, x.forgetIdle)
	}
	x.mu.Unlock()
	select {
	case i.turn <- struct{}{}:
		return i, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unlock gives an index back, and forgets others if there are too many.
func (x *Indexes) unlock(i *index) {
	x.mu.Lock()
	i.used, i.held = time.Now(), i.symbols
	x.trim()
	x.mu.Unlock()
	<-i.turn
}

// trim forgets the indexes that were not used for longest until the rest is within its bounds. The caller holds mu.
func (x *Indexes) trim() {
	for {
		held := 0
		var oldest string
		for session, i := range x.of {
			held += i.held
			if oldest == "" || i.used.Before(x.of[oldest].used) {
				oldest = session
			}
		}
		if len(x.of) <= 1 || len(x.of) <= maxIndexes && held <= maxHeld {
			return
		}
		delete(x.of, oldest)
	}
}

// forgetIdle forgets the indexes that nobody has used for long. The timer calls it.
func (x *Indexes) forgetIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	next := keptIdle
	for session, i := range x.of {
		left := keptIdle - time.Since(i.used)
		if left <= 0 {
			delete(x.of, session)
			continue
		}
		next = min(next, left)
	}
	if x.timer = nil; len(x.of) > 0 {
		x.timer = time.AfterFunc(next, x.forgetIdle)
	}
}
