package undo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/sessions/snapshots"
	"parley/sessions/workspace"
	"parley/tools/guard"
)

// Dirs removes sessions' directories, or files in them, for good: it also removes the kept history of changes,
// because that may contain copies of what is removed.
type Dirs struct {
	*workspace.Workspaces
	Store *snapshots.Store
}

// Remove removes a session's directory, and reports whether there was one.
func (d Dirs) Remove(ctx context.Context, key string) (bool, error) {
	if _, err := d.Store.Remove(ctx, key); err != nil {
		return false, err
	}
	return d.Workspaces.Remove(ctx, key)
}

// Discard removes files from a session's directory, and returns how many it removed.
func (d Dirs) Discard(ctx context.Context, key string, paths []string) (int, error) {
	if _, err := d.Store.Remove(ctx, key); err != nil {
		return 0, err
	}
	n, err := d.Workspaces.Discard(ctx, key, paths)
	return n, errors.Join(err, d.dropMarks(key, n, paths))
}

// dropMarks drops the marks of files that were removed. A mark says that strangers may have written a file; it
// contains the file's name, which has to be removed too.
func (d Dirs) dropMarks(key string, removed int, paths []string) error {
	if removed == 0 {
		return nil
	}
	dir, err := d.Workspaces.Open(key)
	if err == nil {
		err = guard.DropMarks(dir, paths)
	}
	if err != nil {
		return fmt.Errorf("drop the marks of removed files: %w", err)
	}
	return nil
}

// DiscardOld removes the files at these paths that were last written before a certain time, and returns how
// many it removed.
func (d Dirs) DiscardOld(ctx context.Context, key string, paths []string, before time.Time) (int, error) {
	if len(paths) > 0 {
		if _, err := d.Store.Remove(ctx, key); err != nil {
			return 0, err
		}
	}
	n, err := d.Workspaces.DiscardOld(ctx, key, paths, before)
	return n, errors.Join(err, d.dropMarks(key, n, paths))
}

const (
	sweepEvery = 12 * time.Hour
	holdName   = "undo"
)

// Run removes, from time to time, what is too old to be undone, until ctx is done. In a fleet only the process
// that holds the name "undo" does so.
func (d *History) Run(ctx context.Context, holder bus.Holder) error {
	err := bus.WhileHeld(ctx, holder, holdName, func(held context.Context) error {
		for held.Err() == nil {
			if _, err := d.cfg.Store.SweepOld(held); err != nil && held.Err() == nil {
				d.cfg.Log.Error("what is too old to be undone could not be removed; trying again later", slog.Any("error", err))
			}
			select {
			case <-time.After(sweepEvery):
			case <-held.Done():
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("hold what can be undone: %w", err)
	}
	return nil
}

// Sent removes the files that are waiting to be sent.
type Sent interface {
	Remove(ctx context.Context, session string) (bool, error)
	Forget(ctx context.Context, session string, messages []string) error
	Release(message string, files []bus.FileRef) error
}

// Files removes the files that are waiting to be sent, and the history of changes of the same sessions.
type Files struct {
	Sent
	Store *snapshots.Store
}

// Remove removes the files of a session, and reports whether there were any.
func (f Files) Remove(ctx context.Context, session string) (bool, error) {
	if _, err := f.Store.Remove(ctx, session); err != nil {
		return false, err
	}
	return f.Sent.Remove(ctx, session)
}

// Forget removes the files that are waiting to be sent with certain messages of a session. It also removes the
// session's whole history of changes, because nobody can tell whose words a file in it contained.
func (f Files) Forget(ctx context.Context, session string, messages []string) error {
	if _, err := f.Store.Remove(ctx, session); err != nil {
		return err
	}
	return f.Sent.Forget(ctx, session, messages)
}
