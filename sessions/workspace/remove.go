package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"
)

// Deleting is tried several times, because a child process that is being killed may
// still write for a moment.
const (
	maxRemoveAttempts   = 50
	removeRetryInterval = 50 * time.Millisecond
)

// Remove deletes a session's directory with everything in it, and reports whether there was one. Opening
// it again creates a new one. Running operations finish in the old one, and what they write is deleted
// too. Remove never deletes the directory of OpenFixed, which is a person's own.
func (w *Workspaces) Remove(ctx context.Context, key string) (bool, error) {
	if w = w.workspacesOf(key); w.isFixed {
		return false, nil
	}
	name, err := w.directoryName(key)
	if err != nil {
		return false, err
	}
	trash, unused, err := w.moveToTrash(name)
	if err != nil {
		return false, fmt.Errorf("remove workspace: %w", err)
	}
	if trash == "" {
		return false, nil
	}
	select {
	case <-unused:
	case <-ctx.Done():
		return false, fmt.Errorf("remove workspace: %w", ctx.Err())
	}
	if err := w.deleteTrash(ctx, trash); err != nil {
		return false, fmt.Errorf("remove workspace: %w", err)
	}
	return true, nil
}

// moveToTrash gives a directory a temporary name, so that nobody finds it even if this process dies now,
// and returns that name. The channel unused is closed once no operation uses the directory anymore. Both
// results are zero if there is no such directory.
func (w *Workspaces) moveToTrash(name string) (trash string, unused <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	trash = temporaryName()
	switch err := w.base.Rename(name, trash); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, nil
	case err != nil:
		return "", nil, sanitized("", err)
	}
	gone := make(chan struct{})
	s, ok := w.dirs[name]
	if !ok {
		close(gone)
		return trash, gone, nil
	}
	delete(w.dirs, name)
	s.unused = gone
	if s.running == 0 {
		if s.idle != nil {
			w.idle.Remove(s.idle)
		}
		s.closeRemoved()
	}
	return trash, gone, nil
}

// closeRemoved closes a directory that was removed. The caller holds mu.
func (s *openDir) closeRemoved() {
	if s.root != nil {
		_ = s.root.Close() // closing a directory cannot lose anything
	}
	close(s.unused)
}

// deleteTrash deletes a directory that was moved to the trash.
func (w *Workspaces) deleteTrash(ctx context.Context, trash string) error {
	for try := 1; ; try++ {
		err := w.base.RemoveAll(trash)
		if err == nil || try == maxRemoveAttempts || !isNotEmpty(err) {
			return sanitized("", err)
		}
		select {
		case <-time.After(removeRetryInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isNotEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// clearTrash deletes directories that a process had started to remove when it died.
func (w *Workspaces) clearTrash() (err error) {
	f, err := w.base.Open(".")
	if err != nil {
		return fmt.Errorf("list workspaces: %w", sanitized("", err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if e.IsDir() && IsTemporary(e.Name()) {
				// If something is still being written to it, the process that removes it is alive.
				if err := w.base.RemoveAll(e.Name()); err != nil && !isNotEmpty(err) {
					return fmt.Errorf("remove workspace: %w", sanitized("", err))
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list workspaces: %w", sanitized("", err))
		}
	}
}
