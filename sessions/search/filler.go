package search

import (
	"context"
	"log/slog"
	"time"
)

const (
	// FillInterval is how long the newest entries wait for the index, so that they share a transaction, each
	// of which costs a disk flush. Searches read them meanwhile.
	FillInterval = 15 * time.Second
	// checkInterval is how often a filled index is compared with the entries.
	checkInterval = 24 * time.Hour
)

// A Filler fills an index as long as a process serves. While Step returns errors, searches find what is in the index, and
// the newest entries.
type Filler struct {
	Index   Rebuilder
	Log     *slog.Logger
	checked time.Time
}

// Step fills a part of the index. Once a day, it checks a filled index, and has all of it filled again if it lacks
// something nevertheless. It reports whether there is more to do. Calls don't overlap.
func (f *Filler) Step(ctx context.Context) (more bool, err error) {
	began := time.Now()
	more, err = f.Index.Fill(ctx)
	if err == nil && !more && began.Sub(f.checked) >= checkInterval {
		more, err = f.check(ctx)
		f.checked = began
	}
	return more, err
}

// check compares the filled index with the entries, and begins to fill it again (anew) if they differ. It
// compares twice, because something that is erased or edited during the comparison looks like a
// difference, too.
func (f *Filler) check(ctx context.Context) (anew bool, err error) {
	var missing, stray int64
	for range 2 {
		if missing, stray, err = f.Index.Compare(ctx); err != nil || missing == 0 && stray == 0 {
			return false, err
		}
	}
	f.Log.Warn("the index of recall lacks entries or has ones that are not there; it is filled anew", slog.Int64("missing", missing), slog.Int64("stray", stray))
	return true, f.Index.Rebuild(ctx)
}
