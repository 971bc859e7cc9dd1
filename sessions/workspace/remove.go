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

// A child that is being killed may go on writing for a moment.
const (
	removeTries = 50
	removeEvery = 50 * time.Millisecond
)

// Remove deletes a session's directory and all that is in it, and tells whether
// there was one. Whoever opens it again gets a new one; what is under way in the
// old one ends there and leaves nothing. A directory that every session works in
// is somebody's own and stays.
func (w *Workspaces) Remove(ctx context.Context, key string) (bool, error) {
	if w.fixed {
		return false, nil
	}
	name, err := w.name(key)
	if err != nil {
		return false, err
	}
	trash, used, err := w.discard(name)
	if err != nil {
		return false, fmt.Errorf("remove workspace: %w", err)
	}
	if trash == "" {
		return false, nil
	}
	select {
	case <-used:
	case <-ctx.Done():
		return false, fmt.Errorf("remove workspace: %w", ctx.Err())
	}
	if err := w.delete(ctx, trash); err != nil {
		return false, fmt.Errorf("remove workspace: %w", err)
	}
	return true, nil
}

// discard gives a directory a name under which nobody looks for it, whatever
// becomes of this process, and says when nobody uses it any more.
func (w *Workspaces) discard(name string) (trash string, used <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	trash = temporaryName()
	switch err := w.base.Rename(name, trash); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, nil
	case err != nil:
		return "", nil, sanitised("", err)
	}
	gone := make(chan struct{})
	s, ok := w.spaces[name]
	if !ok {
		close(gone)
		return trash, gone, nil
	}
	delete(w.spaces, name)
	s.gone = gone
	if s.refs == 0 {
		if s.idle != nil {
			w.idle.Remove(s.idle)
		}
		s.drop()
	}
	return trash, gone, nil
}

// drop lets go of a directory that was removed. The caller holds mu.
func (s *space) drop() {
	if s.root != nil {
		_ = s.root.Close() // a descriptor of a directory holds nothing that could be lost
	}
	close(s.gone)
}

func (w *Workspaces) delete(ctx context.Context, trash string) error {
	for try := 1; ; try++ {
		err := w.base.RemoveAll(trash)
		if err == nil || try == removeTries || !isRefilled(err) {
			return sanitised("", err)
		}
		select {
		case <-time.After(removeEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isRefilled(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// clear deletes what a process that died had begun to remove.
func (w *Workspaces) clear() (err error) {
	f, err := w.base.Open(".")
	if err != nil {
		return fmt.Errorf("list workspaces: %w", sanitised("", err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if e.IsDir() && IsTemporary(e.Name()) {
				// One that is being filled is somebody else's to remove.
				if err := w.base.RemoveAll(e.Name()); err != nil && !isRefilled(err) {
					return fmt.Errorf("remove workspace: %w", sanitised("", err))
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list workspaces: %w", sanitised("", err))
		}
	}
}
