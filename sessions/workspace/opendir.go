package workspace

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// An openDir is one session's directory while it is open. All operations on it share its descriptor,
// which stays open for a while after the last operation.
type openDir struct {
	name    string
	running int           // how many operations are running; guarded by Workspaces.mu, as are idle and unused
	idle    *list.Element // its place in Workspaces.idle; nil while in use
	unused  chan struct{} // set if the directory was removed: closed when nobody uses it anymore
	once    sync.Once     // opens the directory, at its first use
	err     error         // why the directory could not be opened
	root    *os.Root
	isFixed bool   // whether it is a person's own
	owner   *owner // the new owner of what is created in it, if this process is root; otherwise nil

	writes       sync.Mutex // held during a write, which reads, changes and replaces; guards all fields below
	measured     bool       // whether usage is known
	usage        usage
	sweptFolders map[string]bool // the folders from which sweep has removed the leftovers of a crash
}

// acquire returns the open directory for one operation; release gives it back.
func (w *Workspaces) acquire(name string) (*openDir, error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, os.ErrClosed
	}
	s, ok := w.dirs[name]
	if !ok {
		s = &openDir{name: name, isFixed: w.isFixed}
		w.dirs[name] = s
	}
	s.running++
	if s.idle != nil {
		w.idle.Remove(s.idle)
		s.idle = nil
	}
	w.mu.Unlock()

	s.once.Do(func() { s.root, s.owner, s.err = w.openRoot(name) })
	if s.err != nil {
		err := s.err
		w.release(s)
		return nil, err
	}
	return s, nil
}

// isOpen reports whether a directory is open.
func (w *Workspaces) isOpen(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dirs[name] != nil
}

// openRoot creates and opens a session's directory, and returns the owner for what is created in it.
func (w *Workspaces) openRoot(name string) (*os.Root, *owner, error) {
	root, err := w.base.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := w.base.MkdirAll(name, 0o700); err != nil {
			return nil, nil, fmt.Errorf("open workspace: %w", sanitized("", err))
		}
		root, err = w.base.OpenRoot(name)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open workspace: %w", sanitized("", err))
	}
	own, err := w.settleOwner(name, root)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open workspace: %w", sanitized("", err)), root.Close())
	}
	return root, own, nil
}

// release gives an open directory back. If too many are idle, it closes those that have been idle for
// longest. A directory that could not be opened is opened again next time.
func (w *Workspaces) release(s *openDir) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.running--; s.running > 0 {
		return
	}
	if s.unused != nil {
		s.closeRemoved()
		return
	}
	if s.err != nil {
		delete(w.dirs, s.name)
		return
	}
	s.idle = w.idle.PushBack(s)
	most := w.maxOpen
	if w.closed {
		most = 0
	}
	_ = w.closeIdle(most) // closing a directory cannot lose anything
}

// closeIdle closes idle directories until at most that many are left. The caller holds mu.
func (w *Workspaces) closeIdle(most int) error {
	var errs []error
	for w.idle.Len() > most {
		oldest := w.idle.Remove(w.idle.Front()).(*openDir)
		delete(w.dirs, oldest.name)
		errs = append(errs, oldest.root.Close())
	}
	return errors.Join(errs...)
}
