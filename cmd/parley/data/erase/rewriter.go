package erase

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/sessions/sqldb"
)

// A Rewriter pauses after each rewrite: for rewriteEvery or, if the rewrite took long, for pauseFactor times as long
// as it took, but not longer than maxPause. After the pause it waits until nobody has written for quietTime,
// but at most as long again as the pause.
const (
	rewriteEvery = 10 * time.Minute
	pauseFactor  = 20
	maxPause     = time.Hour
	quietTime    = 2 * time.Second
)

// A Rewriter removes from the home's database what is left of erased rows in unused parts of the file. To do that,
// it rewrites the file, and all writers have to wait meanwhile. So it does that once for everything erased since
// the last time, rather than for each erasure, and if possible when nobody writes. The work to be done is recorded
// in the store before anything is erased, and so survives the process.
//
// In databases on a PostgreSQL server it frees the space of erased rows, just as often. Nobody waits for that, but
// it reads the tables. If the process dies before that, the server eventually does it by itself.
type Rewriter struct {
	store Store
	file  bool // whether there is a file that contains traces until it is rewritten
	log   *slog.Logger
	due   sqldb.Purges
	wake  chan struct{}
	pause atomic.Int64 // a time.Duration: the shortest time between the end of a rewrite and the beginning of the next
}

// NewRewriter returns a Rewriter of the database that the store, the book and the bus share in a file or, if onServer
// is set, of those that they have on a server.
func NewRewriter(store Store, onServer bool, log *slog.Logger) *Rewriter {
	r := &Rewriter{store: store, file: !onServer, log: log, wake: make(chan struct{}, 1)}
	r.pause.Store(int64(rewriteEvery))
	return r
}

// Erase calls erase with a context in which databases are not purged. Run purges them later, if erase has failed or
// has returned that it has erased something. With a nil Rewriter they are purged at once.
func (r *Rewriter) Erase(ctx context.Context, erase func(context.Context) (erased bool, err error)) error {
	if r == nil {
		return sqldb.PurgeIf(ctx, erase)
	}
	err := r.due.Collect(ctx, func(ctx context.Context) (bool, error) {
		end, err := r.store.NotePurge(ctx)
		if err != nil {
			return false, err
		}
		erased, err := erase(ctx)
		erased = erased || err != nil
		return erased, errors.Join(err, end(ctx, erased))
	})
	r.awaken()
	return err
}

// awaken makes Run check what is to be done.
func (r *Rewriter) awaken() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Within returns the longest time until Run has removed what is left of something that is erased now, not counting
// the time for rewriting the file: the pause, and the same time again for a moment in which nobody writes.
func (r *Rewriter) Within() time.Duration { return 2 * time.Duration(r.pause.Load()) }

// awaitQuiet waits until nobody has written for a moment, but not forever. It returns false if ctx is done.
func (r *Rewriter) awaitQuiet(ctx context.Context) bool {
	for until := time.Now().Add(time.Duration(r.pause.Load())); ; {
		left := min(time.Until(r.store.LastWrite().Add(quietTime)), time.Until(until))
		if left <= 0 {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(left):
		}
	}
}

// Finish waits until ctx is done, and then rewrites the file if necessary. It replaces Run in a process that ends
// soon, and that has the home for itself.
func (r *Rewriter) Finish(ctx context.Context) error {
	<-ctx.Done()
	if err := r.due.Run(context.WithoutCancel(ctx)); err != nil {
		r.log.Error("what was erased is left in unused parts of the database's files until the next start", slog.Any("error", err))
	}
	return nil
}

// Run rewrites the database's file whenever it may still contain erased data, until ctx is done. It begins with what
// was erased before this process started.
func (r *Rewriter) Run(ctx context.Context) error {
	err := r.due.Collect(ctx, func(ctx context.Context) (bool, error) { return false, r.store.PurgeDue(ctx) })
	if err != nil && ctx.Err() == nil {
		r.log.Error("it is not known whether something erased is left in the database's files", slog.Any("error", err))
	}
	r.awaken()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		}
		if r.due.IsEmpty() || !r.awaitQuiet(ctx) {
			continue
		}
		began := time.Now()
		if err := r.due.Run(ctx); err != nil && ctx.Err() == nil {
			r.log.Error("what was erased is left in unused parts of the database's files; trying again later", slog.Any("error", err))
			r.awaken()
		}
		r.pause.Store(int64(min(max(rewriteEvery, pauseFactor*time.Since(began)), maxPause)))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(r.pause.Load())):
		}
	}
}
