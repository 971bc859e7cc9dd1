package erase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/agent/ownfiles"
	"parley/sessions"
)

// A Discarder removes single files from a session's directory, and returns how many of them
// existed. Workspaces may implement it; otherwise such files are kept.
type Discarder interface {
	Discard(ctx context.Context, key string, paths []string) (int, error)
}

// erasePerson erases what a person has said from the logs. First it removes the files that belong to
// the person's turns in conversations shared with others, because only the logs say which these are.
func (e *Eraser) erasePerson(ctx context.Context, r *Receipt, t *target) (sessions.Erased, error) {
	for _, key := range t.shared {
		if err := e.discardFilesOf(ctx, r, key, t.person); err != nil {
			return sessions.Erased{}, fmt.Errorf("remove the files of %s in session %s: %w", t.person, key, err)
		}
	}
	return e.cfg.Store.ErasePerson(ctx, t.person)
}

// discardFilesOf removes the files that a person has sent into a session, and those that Parley itself has kept there
// for the calls of the person's turns.
func (e *Eraser) discardFilesOf(ctx context.Context, r *Receipt, key, person string) error {
	dirs, ok := e.cfg.Workspaces.(Discarder)
	if !ok {
		return nil
	}
	sent, calls, err := e.namesOf(ctx, key, person)
	if err != nil {
		return err
	}
	n, err := discard(ctx, dirs, key, sent)
	r.Attachments += n
	if err != nil || len(calls) == 0 {
		return err
	}
	var kept []string
	for _, folder := range ownfiles.CallFolders() {
		files, err := e.cfg.Workspaces.ListOld(ctx, key, folder, time.Now())
		if err != nil {
			return err
		}
		kept = append(kept, ownfiles.OfCalls(files, calls)...)
	}
	n, err = discard(ctx, dirs, key, kept)
	r.OldFiles += n
	return err
}

// discard removes files of a session, and returns how many there were.
func discard(ctx context.Context, dirs Discarder, key string, paths []string) (int, error) {
	if len(paths) == 0 {
		return 0, nil
	}
	return dirs.Discard(ctx, key, paths)
}

// namesOf reads in a session's log which files a person has sent, and the ids of the calls of the person's turns: those of
// which an entry has the person, other than for what they approved.
func (e *Eraser) namesOf(ctx context.Context, key, person string) (sent []string, calls map[string]bool, err error) {
	turns, callsOf := map[string]bool{}, map[string][]string{}
	for entry, err := range e.cfg.Store.Read(ctx, key, 1) {
		if errors.Is(err, sessions.ErrNotFound) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if entry.Call != "" {
			callsOf[entry.Turn] = append(callsOf[entry.Turn], entry.Call)
		}
		if entry.Person != person {
			continue
		}
		if entry.Turn != "" && entry.Kind != sessions.KindAskEnded {
			turns[entry.Turn] = true
		}
		if entry.Kind != sessions.KindFetched {
			continue
		}
		f, err := sessions.Decode[sessions.Fetched](entry)
		if err != nil {
			return nil, nil, err
		}
		if f.Path != "" {
			sent = append(sent, f.Path)
		}
		if f.Picture != nil {
			sent = append(sent, f.Picture.View)
		}
	}
	calls = map[string]bool{}
	for turn := range turns {
		for _, call := range callsOf[turn] {
			calls[call] = true
		}
	}
	return sent, calls, nil
}
