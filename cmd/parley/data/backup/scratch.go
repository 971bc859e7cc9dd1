package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// These are the prefixes of the names of temporary directories in the home. Such a directory is useless once its
// process has ended.
const (
	backupScratch  = ".backup-"
	restoreScratch = ".restoring-"
)

// makeScratch makes a temporary directory and locks it. Until release is called or this
// process ends, no other process's Sweep removes it.
func makeScratch(home, prefix string) (dir string, release func() error, err error) {
	if dir, err = os.MkdirTemp(home, prefix); err != nil {
		return "", nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return "", nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close(), os.Remove(dir))
	}
	return dir, f.Close, nil
}

// Sweep removes the temporary directories of backups and restores whose process has died.
func Sweep(home string) error {
	entries, err := os.ReadDir(home)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("remove old temporary folders from the home: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() && (strings.HasPrefix(e.Name(), backupScratch) || strings.HasPrefix(e.Name(), restoreScratch)) {
			errs = append(errs, sweep(filepath.Join(home, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove old temporary folders from the home: %w", err)
	}
	return nil
}

// sweep removes one such directory, unless a process that works there has locked it.
func sweep(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil
		}
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	return os.RemoveAll(dir)
}
