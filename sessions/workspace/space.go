package workspace

import (
	"container/list"
	"errors"
	"fmt"
	"os"
	"sync"
)

// space is one session's directory while it is in use or lately was.
type space struct {
	name string
	refs int           // guarded by Workspaces.mu, as are the next two
	idle *list.Element // where it waits to be closed; nil while in use
	gone chan struct{} // if set, the directory was removed: closed when nobody uses it any more
	once sync.Once
	err  error
	root *os.Root

	writes   sync.Mutex // one write at a time: read, change, replace
	measured bool
	used     usage
	swept    map[string]bool // directories cleared of what a crash left
}

// acquire opens a directory for one operation; release gives it back.
func (w *Workspaces) acquire(name string) (*space, error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, os.ErrClosed
	}
	s, ok := w.spaces[name]
	if !ok {
		s = &space{name: name}
		w.spaces[name] = s
	}
	s.refs++
	if s.idle != nil {
		w.idle.Remove(s.idle)
		s.idle = nil
	}
	w.mu.Unlock()

	s.once.Do(func() { s.root, s.err = w.openSpace(name) })
	if s.err != nil {
		err := s.err
		w.release(s)
		return nil, err
	}
	return s, nil
}

func (w *Workspaces) openSpace(name string) (*os.Root, error) {
	if err := w.base.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("open workspace: %w", sanitised("", err))
	}
	root, err := w.base.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", sanitised("", err))
	}
	return root, nil
}

// release gives a space back. Those that have been unused for longest are
// closed while there are too many; one that could not be opened is forgotten.
func (w *Workspaces) release(s *space) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.refs--; s.refs > 0 {
		return
	}
	if s.gone != nil {
		s.drop()
		return
	}
	if s.err != nil {
		delete(w.spaces, s.name)
		return
	}
	s.idle = w.idle.PushBack(s)
	most := w.maxOpen
	if w.closed {
		most = 0
	}
	_ = w.trim(most) // a descriptor of a directory holds nothing that could be lost
}

// trim closes unused directories until at most that many are left. The caller holds mu.
func (w *Workspaces) trim(most int) error {
	var errs []error
	for w.idle.Len() > most {
		oldest := w.idle.Remove(w.idle.Front()).(*space)
		delete(w.spaces, oldest.name)
		errs = append(errs, oldest.root.Close())
	}
	return errors.Join(errs...)
}
