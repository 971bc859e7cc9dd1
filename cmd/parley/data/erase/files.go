package erase

import (
	"context"

	"parley/bus"
)

// Files removes files that wait to be sent with messages.
type Files interface {
	// Remove removes the files of a session, and reports whether there were any.
	Remove(ctx context.Context, session string) (bool, error)
	// Forget removes the files of some messages of a session.
	Forget(ctx context.Context, session string, messages []string) error
	// Release says that a message no longer needs these files; a file that no message needs is
	// removed.
	Release(message string, files []bus.FileRef) error
}

// forgetFiles removes the files that wait to be sent: all files of the sessions that are erased
// completely, and those of messages that were removed from the bus.
func (e *Eraser) forgetFiles(ctx context.Context, t *target, messages []string) error {
	for _, key := range t.alone {
		if _, err := e.cfg.Files.Remove(ctx, key); err != nil {
			return err
		}
	}
	for _, key := range t.shared {
		if err := e.cfg.Files.Forget(ctx, key, messages); err != nil {
			return err
		}
	}
	return nil
}
