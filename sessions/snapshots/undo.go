package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// An UndoRequest is somebody's request to undo a turn.
type UndoRequest struct {
	ID     string // the undo's id; an interrupted undo with the same id is continued
	Person string // who asks for the undo
	Note   json.RawMessage
	// N is the number of the record to undo; 0 means the newest turn that is not undone.
	N int
	// MayUndo reports whether the person may undo that record.
	MayUndo func(Record) bool
	// CheckLease returns an error if this process no longer holds the session's lease. It is called before each
	// change; its error ends the undo, which can be continued later.
	CheckLease func(ctx context.Context) error
}

// A Result lists the paths that an undo has restored, and those that it has left as they were.
type Result struct {
	Restored []RestoredPath `json:"restored,omitempty"` // sorted by path
	Left     []LeftPath     `json:"left,omitempty"`
}

// RestoredPath is a path that was restored.
type RestoredPath struct {
	Path  Name   `json:"path"`
	What  string `json:"what"` // the KindWord of the change that was undone
	IsDir bool   `json:"dir,omitempty"`
}

// LeftPath is a path that was left as it was.
type LeftPath struct {
	Path   Name   `json:"path"`
	Reason string `json:"why"`
}

// Undo restores the paths that a turn has changed, except those that somebody has changed since. It returns the
// record of the undo, with its result, and the record that it undoes. It returns ErrNone if there is nothing to
// undo, ErrNotTheirs if the person may not undo it, and ErrTooMany if the workspace contains too many files. If it
// is not known what the turn has changed, nothing is restored: then the Problem of undone says why, and own has no
// Result.
func (s *Store) Undo(ctx context.Context, p Place, u UndoRequest) (own, undone Record, err error) {
	d, leave, err := s.openHistory(p)
	if err == nil {
		defer leave()
		own, undone, err = d.undo(ctx, u)
	}
	if err != nil {
		return own, undone, fmt.Errorf("undo: %w", err)
	}
	return own, undone, nil
}

func (d *history) undo(ctx context.Context, u UndoRequest) (own, undone Record, err error) {
	records, err := d.records()
	if err != nil {
		return own, undone, err
	}
	resumed := false
	if i := slices.IndexFunc(records, func(r Record) bool { return r.Turn == u.ID && r.UndoneRecord != 0 }); i >= 0 {
		own, u.N, resumed = records[i], records[i].UndoneRecord, true
	}
	if !resumed {
		records = d.recent(records)
	}
	i := indexToUndo(records, u.N)
	if i < 0 {
		return own, undone, ErrNone
	}
	undone = records[i]
	if own.Result != nil {
		return own, undone, nil
	}
	if u.MayUndo != nil && !u.MayUndo(undone) {
		return own, undone, ErrNotTheirs
	}
	if undone.Problem != "" && len(undone.Changes) == 0 && undone.OpenTree == "" {
		return own, undone, nil // the record says why
	}
	if own, err = d.begin(ctx, TurnInfo{Turn: u.ID, Person: u.Person, Note: u.Note}, undone.N); err != nil {
		return own, undone, err
	}
	if own.OpenTree == "" {
		return own, undone, errors.Join(ErrTooMany, d.removeIfThere(own.name()))
	}
	if undone.OpenTree != "" { // the turn was interrupted, and begin has ended its record
		name := undone.name()
		undone.OpenTree = ""
		if err := ignoreMissing(d.readJSON(name, &undone)); err != nil { // a missing record means that it has changed nothing
			return own, undone, err
		}
	}
	d.cfg.Point("undo:begun")
	if err := d.restoreRecord(ctx, u, &own, undone, resumed); err != nil {
		return own, undone, err
	}
	d.cfg.Point("undo:done")
	return own, undone, nil
}

// indexToUndo returns the index of the record with number n, or if n is 0 of the newest turn that is not
// undone; -1 if there is none.
func indexToUndo(records []Record, n int) int {
	for i, r := range slices.Backward(records) {
		if r.N == n || n == 0 && r.UndoneRecord == 0 && !IsUndone(records, r.N) {
			return i
		}
	}
	return -1
}

// restoreRecord undoes the changes that the record undone lists, and writes the result into the
// record own. resumed says that the undo was begun before.
func (d *history) restoreRecord(ctx context.Context, u UndoRequest, own *Record, undone Record, resumed bool) error {
	root, err := os.OpenRoot(d.place.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // closing a folder cannot lose anything
	r := &restorer{history: d, root: root, checkLease: u.CheckLease, isResumed: resumed}
	if r.owner, err = ownerFor(root); err != nil {
		return err
	}
	if resumed {
		r.treeBefore = d.tree(own.OpenTree)
	}
	if err := r.restore(ctx, undone.Changes); err != nil {
		return err
	}
	d.cfg.Point("undo:restored")
	now, err := d.walk(ctx, d.tree(own.OpenTree), false)
	if err != nil && !errors.Is(err, ErrTooMany) {
		return err
	}
	own.Result = r.result()
	return d.end(own, now)
}
