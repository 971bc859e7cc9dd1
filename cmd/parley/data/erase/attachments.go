package erase

import (
	"context"
	"errors"
	"fmt"

	"parley/sessions"
)

// A Discarder removes single files from a session's directory, and returns how many of them
// existed. Workspaces may implement it; otherwise such files are kept.
type Discarder interface {
	Discard(ctx context.Context, key string, paths []string) (int, error)
}

// erasePerson erases what a person has said from the logs. First it removes the files that the
// person has sent in conversations shared with others, because only the logs name these files.
func (e *Eraser) erasePerson(ctx context.Context, r *Receipt, t *target) (sessions.Erased, error) {
	for _, key := range t.shared {
		n, err := e.discardFilesOf(ctx, key, t.person)
		r.Attachments += n
		if err != nil {
			return sessions.Erased{}, fmt.Errorf("remove the files that were sent to session %s: %w", key, err)
		}
	}
	return e.cfg.Store.ErasePerson(ctx, t.person)
}

// discardFilesOf removes the files that a person has sent into a session.
func (e *Eraser) discardFilesOf(ctx context.Context, key, person string) (int, error) {
	dirs, ok := e.cfg.Workspaces.(Discarder)
	if !ok {
		return 0, nil
	}
	var paths []string
	for entry, err := range e.cfg.Store.Read(ctx, key, 1) {
		if errors.Is(err, sessions.ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if entry.Kind != sessions.KindFetched || entry.Person != person {
			continue
		}
		f, err := sessions.Decode[sessions.Fetched](entry)
		if err != nil {
			return 0, err
		}
		if f.Path != "" {
			paths = append(paths, f.Path)
		}
		if f.Picture != nil {
			paths = append(paths, f.Picture.View)
		}
	}
	if len(paths) == 0 {
		return 0, nil
	}
	return dirs.Discard(ctx, key, paths)
}
