package snapshots

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// recordsPerTurn is how many records, including undos, there may be for each turn that is kept.
const recordsPerTurn = 4

// prune removes the records beyond the maximum number or age, and then the trees and copies that no
// record names. It keeps the record that a kept undo refers to.
func (d *history) prune(records []Record) error {
	var gone []Record
	newest := records[len(records)-1]
	turns := 0
	for i, r := range slices.Backward(records) {
		if r.UndoneRecord == 0 {
			turns++
		}
		old := turns > d.cfg.MaxTurns || len(records)-i > recordsPerTurn*d.cfg.MaxTurns || d.isOld(r)
		if old && r.N != newest.N && r.N != newest.UndoneRecord && r.OpenTree == "" {
			gone = append(gone, r)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	for _, r := range gone {
		if err := d.removeIfThere(r.name()); err != nil {
			return err
		}
	}
	return d.sweep()
}

// sweep removes the trees and copies that neither a record nor the newest tree names, and
// unfinished files.
func (d *history) sweep() error {
	records, err := d.records()
	if err != nil {
		return err
	}
	var l latestTree
	needed := map[string]bool{}
	if d.readJSON(latestName, &l) == nil {
		needed[l.Tree] = true
	}
	for _, r := range records {
		needed[r.OpenTree] = true
		for _, c := range r.Changes {
			if c.From != nil && c.From.HasCopy {
				needed[copyPrefix+c.From.Sum] = true
			}
		}
	}
	names, err := d.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if t := d.treeIf(name, needed); t != nil {
			for _, e := range t.Entries {
				if e.HasCopy {
					needed[copyPrefix+e.Sum] = true
				}
			}
		}
	}
	for _, name := range names {
		if !needed[name] && (strings.HasPrefix(name, treePrefix) || strings.HasPrefix(name, copyPrefix) || strings.HasPrefix(name, unfinishedPrefix)) {
			if err := d.removeIfThere(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// treeIf returns a tree if its name is needed; nil otherwise.
func (d *history) treeIf(name string, needed map[string]bool) *tree {
	if !needed[name] {
		return nil
	}
	return d.tree(name)
}

// Remove removes all histories of a session, and reports whether there were any.
func (s *Store) Remove(_ context.Context, session string) (bool, error) {
	folder := sessionFolder(session)
	if _, err := s.root.Lstat(folder); err != nil {
		if err = ignoreMissing(err); err != nil {
			return false, fmt.Errorf("remove what turns have changed: %w", err)
		}
		return false, nil
	}
	places, err := listNames(s.root, folder)
	for _, place := range places {
		unlock := s.lock(path.Join(folder, place)) // a turn may be working on it
		err = errors.Join(err, s.root.RemoveAll(path.Join(folder, place)))
		unlock()
	}
	if err = errors.Join(err, s.root.RemoveAll(folder)); err != nil {
		return false, fmt.Errorf("remove what turns have changed: %w", err)
	}
	return true, nil
}

// SweepOld removes the histories in which nothing was written for as long as turns are kept, and returns their
// number. In other histories the next turn removes what is too old. If turns are kept forever, it removes none.
func (s *Store) SweepOld(ctx context.Context) (int, error) {
	if s.cfg.MaxAge <= 0 {
		return 0, nil
	}
	return s.Sweep(ctx, time.Now().Add(-s.cfg.MaxAge))
}

// Sweep removes the histories in which nothing was written since a time, and returns their number.
func (s *Store) Sweep(ctx context.Context, before time.Time) (n int, err error) {
	sessions, err := listNames(s.root, Folder)
	for _, session := range sessions {
		var places []string
		if places, err = listNames(s.root, path.Join(Folder, session)); err != nil {
			break
		}
		for _, place := range places {
			gone, removeErr := s.removeOld(ctx, path.Join(Folder, session, place), before)
			if err = errors.Join(err, removeErr); gone {
				n++
			}
		}
		if err != nil {
			break
		}
		if len(places) == 0 {
			_ = s.root.Remove(path.Join(Folder, session)) // if something was added meanwhile, it stays
		}
	}
	if err != nil {
		return n, fmt.Errorf("sweep what turns have changed: %w", err)
	}
	return n, nil
}

// removeOld removes a history if nothing was written in it since a time, and reports whether it did.
func (s *Store) removeOld(ctx context.Context, folder string, before time.Time) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	unlock := s.lock(folder)
	defer unlock()
	names, err := listNames(s.root, folder)
	if err != nil {
		return false, err
	}
	fresh := slices.ContainsFunc(append(names, "."), func(name string) bool {
		info, err := s.root.Lstat(path.Join(folder, name))
		return err == nil && info.ModTime().After(before)
	})
	if fresh {
		return false, nil
	}
	return true, s.root.RemoveAll(folder)
}
