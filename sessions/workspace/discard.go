package workspace

import (
	"context"
	"errors"
	"io/fs"
)

// Discard removes files from a session's directory, and returns how many of these paths led to something. It
// removes nothing but files. It creates the directory if it is missing.
func (w *Workspaces) Discard(ctx context.Context, key string, paths []string) (n int, err error) {
	dir, err := w.Open(key)
	if err != nil {
		return 0, err
	}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if _, err := dir.Stat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
			continue
		}
		if err := dir.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			return n, err
		}
		n++
	}
	return n, nil
}
