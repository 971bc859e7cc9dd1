// Package stepwise does long work on tables in short steps, beside the work for which people wait.
package stepwise

import (
	"context"
	"log/slog"
	"time"
)

const (
	// stepPause is the shortest pause between two steps; a longer step is followed by a pause of its own length.
	stepPause = 5 * time.Millisecond
	// retryDelay is how long it takes until the next step after an error.
	retryDelay = time.Minute
)

// A Work is long, and is done in short steps, so that nobody waits for it. If the process dies, another continues.
type Work struct {
	Name string // what the log calls it
	// Step does some of the work, and reports whether there may be more. Calls don't overlap.
	Step     func(ctx context.Context) (more bool, err error)
	Interval time.Duration // how long after the last step there may be more work; 0 means never
	Log      *slog.Logger
}

// Run does the work until ctx is done, and returns nil. It logs errors, and tries again.
func (w *Work) Run(ctx context.Context) error {
	for failed := false; ; {
		began := time.Now()
		more, err := w.Step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		pause := w.Interval
		switch {
		case err != nil:
			if pause = retryDelay; !failed {
				w.Log.Error("a part of the upkeep fails; trying again each minute", slog.String("part", w.Name), slog.Any("error", err))
			}
		case more:
			pause = max(stepPause, time.Since(began))
		case w.Interval == 0:
			<-ctx.Done()
			return nil
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}
