package erase

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/sessions/sqldb"
)

// How often the home's database is rewritten at most for what people erase: once in rewriteEvery; if
// that takes long, it takes no more than one part in rewriteShare of the time, as long as this makes
// no pause beyond longestPause. It comes when nobody has written for quiet, or else after as long as
// the pause.
const (
	rewriteEvery = 10 * time.Minute
	rewriteShare = 20
	longestPause = time.Hour
	quiet        = 2 * time.Second
)

// A Rewriter removes from the home's database what is left of erased rows in unused parts of the file.
// For that the file is rewritten, and all who write wait meanwhile: so it is done once for all that was
// erased since the last time, and not each time that somebody erases something, and if possible when
// nobody writes. What is to be done is
// recorded in the store before anything is erased, and so survives the process.
//
// Of databases on a PostgreSQL server it frees the space of erased rows, as often. Nobody waits for
// that, but it reads the tables. If the process dies before, the server does it some time by itself.
type Rewriter struct {
	store Store
	file  bool // whether there is a file in which traces are left until it is rewritten
	log   *slog.Logger
	due   sqldb.Purges
	wake  chan struct{}
	pause atomic.Int64 // a time.Duration: how long after a rewriting the next one is begun at the earliest
}

// NewRewriter makes a Rewriter of the database that the store, the book and the bus share in a file,
// or, if onServer, of those that they have on a server.
func NewRewriter(store Store, onServer bool, log *slog.Logger) *Rewriter {
	r := &Rewriter{store: store, file: !onServer, log: log, wake: make(chan struct{}, 1)}
	r.pause.Store(int64(rewriteEvery))
	return r
}

// Erase calls erase with a context in which databases are not purged. Run purges them later, if
// erase has failed or has returned that it has erased something. With a nil Rewriter they are
// purged at once.
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

// awaken has Run look what is to be done.
func (r *Rewriter) awaken() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Within returns how long it takes at most until Run has removed what is left of something that is
// erased now, beside the time of rewriting the file: the pause, and as long again for a moment in which
// nobody writes.
func (r *Rewriter) Within() time.Duration { return 2 * time.Duration(r.pause.Load()) }

// awaitQuiet waits until nobody has written for a moment, but not for ever. It returns false if ctx is
// done.
func (r *Rewriter) awaitQuiet(ctx context.Context) bool {
	for until := time.Now().Add(time.Duration(r.pause.Load())); ; {
		left := min(time.Until(r.store.LastWrite().Add(quiet)), time.Until(until))
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

// Finish waits until ctx is done, and then rewrites the file if it has to be. It is for a process in
// place of Run that ends soon, and has the home for itself.
func (r *Rewriter) Finish(ctx context.Context) error {
	<-ctx.Done()
	if err := r.due.Run(context.WithoutCancel(ctx)); err != nil {
		r.log.Error("what was erased is left in unused parts of the database's files until the next start", slog.Any("error", err))
	}
	return nil
}

// Run rewrites the file as often as it has to be, until ctx is done; at first for what was erased
// before this process began.
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
		r.pause.Store(int64(min(max(rewriteEvery, rewriteShare*time.Since(began)), longestPause)))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(r.pause.Load())):
		}
	}
}
