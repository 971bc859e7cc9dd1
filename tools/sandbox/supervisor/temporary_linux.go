package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The names of temporary folders. The suffix says that a process holds the folder's lock as long as
// the folder is in use. Earlier releases made folders without a lock or suffix.
const (
	temporaryPrefix = "parley-command-"
	lockedSuffix    = "-locked"
)

// staleAfter is the age from which a folder without a lock counts as left over: longer than any
// command runs.
const staleAfter = 24 * time.Hour

// supervisorsTemp is where supervisors make temporary folders: they don't get TMPDIR.
const supervisorsTemp = "/tmp"

// A TemporaryFolder is a folder for temporary files. It is locked until it is removed, or until its
// process dies, so that Sweep can tell whether it is in use.
type TemporaryFolder struct {
	Path string
	lock *os.File
}

// NewTemporary makes a folder for temporary files that belongs to a user and a group, or to this
// process's own if uid is negative.
func NewTemporary(uid, gid int) (TemporaryFolder, error) {
	for {
		dir, err := os.MkdirTemp("", temporaryPrefix+"*"+lockedSuffix)
		if err != nil {
			return TemporaryFolder{}, err
		}
		t := TemporaryFolder{Path: dir}
		if t.lock, err = lockFolder(dir); err == nil {
			if _, err = os.Stat(dir); err == nil && uid >= 0 {
				err = os.Chown(dir, uid, gid)
			}
			if err == nil {
				return t, nil
			}
			err = errors.Join(err, t.Remove())
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		// Before it was locked, another process may have considered it left over.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return TemporaryFolder{}, err
		}
	}
}

// Remove removes the folder with everything in it.
func (t TemporaryFolder) Remove() error { return errors.Join(removeTree(t.Path), t.lock.Close()) }

// lockFolder locks a folder; closing the returned file unlocks it. The error is unix.EWOULDBLOCK if somebody else has
// locked it.
func lockFolder(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Sweep removes the temporary files of commands whose supervisor was killed.
func Sweep() {
	for _, temp := range slices.Compact([]string{filepath.Clean(os.TempDir()), supervisorsTemp}) {
		entries, err := os.ReadDir(temp)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), temporaryPrefix) {
				sweepFolder(filepath.Join(temp, e.Name()))
			}
		}
	}
}

// sweepFolder removes a temporary folder that is no longer in use. It leaves a folder that it can't remove, such as
// another user's.
func sweepFolder(dir string) {
	if strings.HasSuffix(dir, lockedSuffix) {
		lock, err := lockFolder(dir)
		if err == nil {
			_ = errors.Join(removeTree(dir), lock.Close())
		}
		return
	}
	if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > staleAfter {
		_ = removeTree(dir)
	}
}
