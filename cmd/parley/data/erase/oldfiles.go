package erase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/agent/ownfiles"
	"parley/sessions"
)

// removeOldFiles removes files that belong to erased turns from the folders of conversations that
// continue. It checks all conversations, because an earlier call may have been interrupted after
// the turns were erased. It first lists the files and then reads the log, and doesn't remove a file
// that was written in the meantime, so a running turn loses none.
func (e *Eraser) removeOldFiles(ctx context.Context, r *Receipt, before time.Time) error {
	for last, more := "", true; more; {
		page, err := e.cfg.Store.List(ctx, last, pageSize)
		if err != nil {
			return err
		}
		for _, s := range page {
			last = s.Key
			n, err := e.oldFilesOf(ctx, s.Key, before)
			r.OldFiles += n
			if err != nil {
				return fmt.Errorf("remove old files of session %s: %w", s.Key, err)
			}
		}
		more = len(page) == pageSize
	}
	return nil
}

func (e *Eraser) oldFilesOf(ctx context.Context, key string, before time.Time) (int, error) {
	var old []string
	for _, folder := range ownfiles.Folders() {
		files, err := e.cfg.Workspaces.ListOld(ctx, key, folder, before)
		if err != nil {
			return 0, err
		}
		old = append(old, files...)
	}
	if len(old) == 0 {
		return 0, nil
	}
	unnamed, err := ownfiles.Unreferenced(old, e.cfg.Store.Read(ctx, key, 1))
	if errors.Is(err, sessions.ErrNotFound) {
		return 0, nil // the conversation was erased completely in the meantime, with its directory
	}
	if err != nil || len(unnamed) == 0 {
		return 0, err
	}
	return e.cfg.Workspaces.DiscardOld(ctx, key, unnamed, before)
}

// removeBefore removes the copies, left by an older release, of what is about to be erased.
func (e *Eraser) removeBefore() error {
	if e.cfg.Before == nil {
		return nil
	}
	return e.cfg.Before()
}
