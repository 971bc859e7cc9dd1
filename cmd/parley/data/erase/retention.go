package erase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels/sqlbook"
	"parley/sessions"
)

const (
	retryRetention = time.Hour // the wait after a failure
	holdName       = "retention"
)

// EraseBefore erases turns that ended before a time, and everything that belongs to them. It keeps
// messages that still wait to be answered or sent, no matter how old they are. Before it returns,
// it removes what is left in unused parts of the databases' files, including what others have
// deleted.
func (e *Eraser) EraseBefore(ctx context.Context, before time.Time) (Receipt, error) {
	return e.eraseBefore(ctx, nil, before, true)
}

// eraseBefore does the work of EraseBefore, but leaves the unused parts of the files to rewriter,
// if it is not nil. If always is false, they are left alone unless something was erased.
func (e *Eraser) eraseBefore(ctx context.Context, rewriter *Rewriter, before time.Time, always bool) (Receipt, error) {
	r := e.receipt("everything that ended before " + before.UTC().Format(time.RFC3339))
	err := rewriter.Erase(ctx, func(ctx context.Context) (bool, error) {
		err := e.eraseOlder(ctx, &r, before)
		return always || !r.Empty(), err
	})
	if err != nil {
		return r, fmt.Errorf("erase old data: %w", err)
	}
	e.addKept(&r)
	return r, nil
}

func (e *Eraser) eraseOlder(ctx context.Context, r *Receipt, before time.Time) error {
	if err := e.removeBefore(); err != nil {
		return err
	}
	log, err := e.cfg.Store.EraseBefore(ctx, before)
	e.clearMemory()
	r.Log = addErased(r.Log, log)
	if err != nil {
		return err
	}
	end, err := e.cfg.Store.NotePurge(ctx)
	if err != nil {
		return err
	}
	if err := e.eraseBesideOlder(ctx, r, before, log); err != nil {
		return err
	}
	return end(ctx, !r.Empty())
}

// eraseBesideOlder erases what is older than a time from all places except the log. log says what
// was erased there.
func (e *Eraser) eraseBesideOlder(ctx context.Context, r *Receipt, before time.Time, log sessions.Erased) error {
	gone, err := e.orphans(ctx, before, log)
	if err != nil {
		return err
	}
	for _, key := range gone {
		// If somebody has just begun the session again, the files are the new session's.
		if there, err := e.exists(ctx, key); there || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		removed, err := e.cfg.Workspaces.Remove(ctx, key)
		if err != nil {
			return err
		}
		if removed {
			r.Workspaces = append(r.Workspaces, key)
		}
	}
	if err := e.removeOldFiles(ctx, r, before); err != nil {
		return err
	}
	r.Bus.DeadLetters, err = e.dropDeadLetters(ctx, func(d bus.DeadLetter) bool { return d.BuriedAt.Before(before) })
	if err != nil {
		return err
	}
	if f, ok := e.cfg.Bus.(bus.Forgetter); ok {
		// This matches no message. It makes the bus remove settled messages from its files.
		if _, err := f.Forget(ctx, func(bus.Topic, bus.Message) bool { return false }, gone...); err != nil {
			return err
		}
	}
	r.Book, err = e.cfg.Book.Erase(ctx, sqlbook.Erasure{Sessions: gone, Before: before})
	return err
}

// orphans returns the sessions whose logs are gone but whose other data must still be erased: those
// in log, which were erased now, and those whose logs were erased by an earlier call that was
// interrupted. The latter are found by their chats, which are still in the book.
func (e *Eraser) orphans(ctx context.Context, before time.Time, log sessions.Erased) ([]string, error) {
	var gone []string
	for last, more := "", true; more; {
		page, err := e.cfg.Book.SessionsBefore(ctx, before, last, pageSize)
		if err != nil {
			return nil, err
		}
		for _, key := range page {
			last = key
			there, err := e.exists(ctx, key)
			if err != nil {
				return nil, err
			}
			if !there {
				gone = append(gone, key)
			}
		}
		more = len(page) == pageSize
	}
	return addKeys(log.Sessions, gone), nil
}

func (e *Eraser) exists(ctx context.Context, key string) (bool, error) {
	_, err := e.cfg.Store.Info(ctx, key)
	if errors.Is(err, sessions.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Run erases what is older than this many days, at once and then each night, until ctx is done. In a fleet only the
// process that holds the name "retention" erases.
func (e *Eraser) Run(ctx context.Context, holder bus.Holder, days int) error {
	err := bus.WhileHeld(ctx, holder, holdName, func(held context.Context) error {
		e.retain(held, days)
		return nil
	})
	if err != nil {
		return fmt.Errorf("get the lease for erasing old data: %w", err)
	}
	return nil
}

// retain erases what is too old, at once and then each night. It counts whole days, from one night
// to the next, so a process that starts again on the same day finds nothing to erase. The databases'
// files are rewritten each night, but at startup only if something was erased, because all writes
// have to wait for that.
func (e *Eraser) retain(held context.Context, days int) {
	for night := false; held.Err() == nil; {
		now := time.Now()
		next := nightAfter(now)
		if _, err := e.eraseBefore(held, e.cfg.Rewriter, next.AddDate(0, 0, -1-days), night); err != nil {
			if held.Err() != nil || errors.Is(err, bus.ErrClosed) {
				return
			}
			next = now.Add(retryRetention)
			e.cfg.Log.Error("what is old could not be erased; trying again later", slog.Any("error", err))
		} else {
			night = true
		}
		select {
		case <-time.After(time.Until(next)):
		case <-held.Done():
		}
	}
}

// nightAfter returns the next time after now at which it is three o'clock local time.
func nightAfter(now time.Time) time.Time {
	at := time.Date(now.Year(), now.Month(), now.Day(), 3, 0, 0, 0, now.Location())
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}
