package plainjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadFile reads a T from a file. It returns the zero T if there is no such file.
func ReadFile[T any](path string) (v T, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// ReplaceFile writes v as JSON to a file that only its owner may read, replacing the file's
// content. If it fails, the file stays as it was; once it has returned nil, a power failure doesn't
// undo the change.
func ReplaceFile(path string, v any) error {
	raw, err := MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return ReplaceFileBytes(path, append(raw, '\n'))
}

// ReplaceFileBytes is like ReplaceFile for content that is already encoded. A crash may leave a
// file path.new, which the next call overwrites.
func ReplaceFileBytes(path string, raw []byte) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir flushes a directory's list of names to the disk: a new file's name is durable once its directory is.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
