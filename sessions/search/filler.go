package search

import (
	"context"
	"log/slog"
	"time"
)

const (
	// fillEvery is how long the newest entries wait for the index, so that they share a transaction, each
	// of which costs a disk flush. Searches read them meanwhile.
	fillEvery = 15 * time.Second
	// fillAgain is how long it takes until the index is filled again after an error.
	fillAgain = time.Minute
	// fillPause is the shortest pause between two calls of Fill; a longer call is followed by a pause of
	// its own length.
	fillPause = 5 * time.Millisecond
	// checkEvery is how often a filled index is compared with the entries.
	checkEvery = 24 * time.Hour
)

// A Filler fills an index as long as a process serves.
type Filler struct {
	Index Rebuilder
	Log   *slog.Logger
}

// Run fills the index until ctx is done, and has the whole index filled again if it lacks something
// nevertheless. It logs errors: searches then find what is in the index, and the newest entries.
func (f *Filler) Run(ctx context.Context) error {
	var checked time.Time
	for failed := false; ; {
		began := time.Now()
		more, err := f.Index.Fill(ctx)
		if err == nil && !more && began.Sub(checked) >= checkEvery {
			more, err = f.check(ctx)
			checked = began
		}
		pause := fillEvery
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if pause = fillAgain; !failed {
				f.Log.Error("what was said is not added to the index of recall; trying again each minute", slog.Any("error", err))
			}
		case more:
			pause = max(fillPause, time.Since(began))
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// check compares the filled index with the entries, and begins to fill it again if they differ. It
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
