package server

import (
	"context"

	"parley/agent/undo"
	"parley/cmd/parley/data/attachments"
	"parley/sessions/workspace"
)

// An undoHistory keeps the earlier versions of files that turns have changed, so that people can undo a turn.
type undoHistory struct {
	foundation
	*undo.History
}

// newUndoing returns the part that keeps the earlier versions of files.
func newUndoHistory(on foundation) *undoHistory {
	return &undoHistory{on, undo.New(undo.Config{
		Store: on.home.Snapshots, Log: on.log, Off: func() bool { return on.settings.Load().Workspace.UndoTurns == 0 },
		Open: func(session string) (*workspace.Dir, bool, error) {
			dir, err := on.home.Workspace(session)
			return dir, on.home.IsOwn(session), err
		},
	})}
}

// Run removes versions that nobody can restore any longer.
func (u *undoHistory) Run(ctx context.Context) error { return u.History.Run(ctx, u.home.Bus) }

// discard returns a function that removes files that came with a message. It also removes all earlier versions of
// the session's files, which may include them.
func (u *undoHistory) discard(came *attachments.Keeper) func(ctx context.Context, session string, paths []string) error {
	return func(ctx context.Context, session string, paths []string) error {
		if _, err := u.home.Snapshots.Remove(ctx, session); err != nil {
			return err
		}
		return came.Discard(ctx, session, paths)
	}
}
