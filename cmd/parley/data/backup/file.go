package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// unfinishedFile is the prefix of the names of backups that are being written.
const unfinishedFile = ".parley-backup-"

// WriteFile writes a backup to a file with that name, and checks it as [Check] does. The file gets its name only once
// it is complete, and an error leaves no file. WriteFile also removes unfinished backups in the same folder whose
// process was killed.
func WriteFile(ctx context.Context, s Source, name string, try func(ctx context.Context, dir string) error) (m Manifest, err error) {
	f, err := newFile(filepath.Dir(name))
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	m, err = Write(ctx, s, f)
	if err = errors.Join(err, f.Sync()); err == nil {
		err = s.checkFile(ctx, f, try)
	}
	if err == nil {
		err = os.Rename(f.Name(), name) // rename it before it is unlocked, so that nobody takes it for an unfinished backup
	}
	return m, errors.Join(err, f.Close())
}

// checkFile reads a file back.
func (s Source) checkFile(ctx context.Context, f *os.File, try func(ctx context.Context, dir string) error) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return Check(ctx, s.newMeter(Reading, info.Size()).read(f), s.Home, try)
}

// newFile creates a file for a backup, and locks it while it is open. It removes unfinished backups that no process
// has locked.
func newFile(dir string) (*os.File, error) {
	if err := removeUnfinished(dir); err != nil {
		return nil, err
	}
	for {
		f, err := os.CreateTemp(dir, unfinishedFile+"*")
		if err != nil {
			return nil, err
		}
		// Where nothing can be locked, nothing is removed either.
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if isNamed(f) {
			return f, nil
		}
		if err := f.Close(); err != nil { // another process has removed it before it was locked
			return nil, err
		}
	}
}

// isNamed reports whether a file still has its name.
func isNamed(f *os.File) bool {
	named, err := os.Lstat(f.Name())
	if err != nil {
		return false
	}
	opened, err := f.Stat()
	return err == nil && os.SameFile(named, opened)
}

// removeUnfinished removes the backups that processes have left unfinished in a folder.
func removeUnfinished(dir string) error {
	names, err := filepath.Glob(filepath.Join(escape(dir), unfinishedFile+"*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		_, number, _ := strings.Cut(filepath.Base(name), unfinishedFile)
		if strings.Trim(number, "0123456789") != "" { // a person has given it this name
			continue
		}
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue // it is gone, or belongs to another process
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.Remove(name) // the next backup tries again to remove it
		}
		_ = f.Close() // it was only locked
	}
	return nil
}
