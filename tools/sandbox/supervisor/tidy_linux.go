package supervisor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A tidier cleans up what commands, or other processes of this program, have left in a workspace: before each
// command, and after it.
type tidier struct {
	walk
	uid, gid       int // the user that root's files are given to; negative means nobody
	top            int // the workspace
	device         uint64
	mount          uint64 // the mount through which the workspace is seen; 0 if the kernel doesn't tell
	removedTooDeep bool   // whether an item was removed because it was too deep
}

// tidyItem cleans up one item: it removes a remnant, gives what belongs to root to the user that commands run as,
// and takes the set-ID bits from a file. gone reports that the item isn't there afterwards.
func (t *tidier) tidyItem(above int, name string, st *unix.Stat_t, depth int) (gone bool, err error) {
	kind := st.Mode & unix.S_IFMT
	if uint64(st.Dev) != t.device {
		return false, nil // a mounted folder
	}
	if depth == 0 && kind == unix.S_IFDIR && isRemnant(name) {
		return true, removeItem(above, name, t.top)
	}
	foreign := st.Uid == 0 && t.uid > 0 && (kind != unix.S_IFREG || st.Nlink == 1)
	raised := kind == unix.S_IFREG && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 && (st.Uid != 0 || st.Nlink == 1)
	if !foreign && !raised {
		return false, nil
	}
	fd, err := unix.Openat(above, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Is(err, unix.ENOENT), ignoreGone(err)
	}
	defer closeFD(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return false, err
	}
	// A folder of the same filesystem can be mounted, too.
	if mount, err := mountOf(fd); err != nil || mount != t.mount {
		return false, err
	}
	if now.Dev != st.Dev || now.Ino != st.Ino || kind == unix.S_IFREG && now.Nlink > st.Nlink {
		return false, nil // it is checked again before the next command
	}
	if foreign {
		if err := unix.Fchownat(fd, "", t.uid, t.gid, unix.AT_EMPTY_PATH); err != nil {
			return false, fmt.Errorf("give it to the user that commands run as: %w", err)
		}
	}
	if raised {
		err = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), now.Mode&0o777)
	}
	if errors.Is(err, unix.EPERM) {
		err = nil // it belongs to another user, whom the command cannot become
	}
	return false, err
}

// mountOf returns the number of the mount through which an open file is seen; 0 if the kernel doesn't tell.
func mountOf(fd int) (uint64, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st)
	if errors.Is(err, unix.ENOSYS) || err == nil && st.Mask&unix.STATX_MNT_ID == 0 {
		return 0, nil
	}
	return st.Mnt_id, err
}

// remove removes a folder that is too deep.
func (t *tidier) remove(above int, name string) error {
	t.removedTooDeep = true
	return removeItem(above, name, t.top)
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// A folder that is being removed is first moved to the top of the workspace, under a name in the form that files
// have there while they are being written, so listings leave it out. A remnant is a folder whose removal was cut
// off.
const (
	remnantPrefix = ".parley-"
	remnantSuffix = ".tmp"
)

func remnantName() string { return remnantPrefix + strings.ToLower(rand.Text()) + remnantSuffix }

func isRemnant(name string) bool {
	return strings.HasPrefix(name, remnantPrefix) && strings.HasSuffix(name, remnantSuffix) && len(name) == len(remnantPrefix)+26+len(remnantSuffix)
}

// removeItem removes an item in a folder with everything in it, no matter how deep. It first moves the item to top,
// a folder on the same filesystem, and later whatever in the item is too deep.
func removeItem(above int, name string, top int) error {
	at, err := moveToTop(above, name, top)
	if err != nil {
		return ignoreGone(err)
	}
	r, err := newRemover(top, at)
	if err != nil {
		return err
	}
	return r.removeMoved()
}

// moveToTop moves an item from a folder into the top folder, under a new name that it returns. If the move is
// refused, it makes both folders and the item writable for their owner and tries again.
func moveToTop(above int, name string, top int) (at string, err error) {
	at = remnantName()
	err = unix.Renameat(above, name, top, at)
	if !errors.Is(err, unix.EACCES) {
		return at, err
	}
	moving, err := openFolder(above, name)
	if err != nil {
		return at, err
	}
	defer closeFD(moving)
	for _, fd := range []int{above, top, moving} {
		if err := unix.Fchmod(fd, 0o700); err != nil {
			return at, err
		}
	}
	return at, unix.Renameat(above, name, top, at)
}

// withRights calls do, which changes the content of an open folder. If that is refused, it makes the folder
// writable for its owner and tries again.
func withRights(folder int, do func() error) error {
	err := do()
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	if err := unix.Fchmod(folder, 0o700); err != nil {
		return err
	}
	return do()
}

// A remover removes a folder with everything in it.
type remover struct {
	top   int
	mount uint64   // through which the top is seen: whatever is mounted below is not removed
	moved []string // folders that were too deep and were moved to the top, to be removed from there
}

// errMounted means that a folder cannot be removed because something is mounted in it.
var errMounted = errors.New("something is mounted in a folder that is to be removed")

func newRemover(top int, moved ...string) (*remover, error) {
	mount, err := mountOf(top)
	return &remover{top: top, mount: mount, moved: moved}, err
}

// removeMoved removes what was moved to the top.
func (r *remover) removeMoved() error {
	for len(r.moved) > 0 {
		next := r.moved[0]
		r.moved = r.moved[1:]
		if err := r.remove(r.top, next, 0); err != nil {
			return err
		}
	}
	return nil
}

// remove removes an item in a folder. It moves a folder that is too deep to the top, where the caller removes it.
func (r *remover) remove(above int, name string, depth int) error {
	err := withRights(above, func() error { return unix.Unlinkat(above, name, 0) })
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return ignoreGone(err)
	}
	if depth > maxDepth {
		at, err := moveToTop(above, name, r.top)
		if err == nil {
			r.moved = append(r.moved, at)
		}
		return ignoreGone(err)
	}
	fd, err := openFolder(above, name)
	if err != nil {
		return ignoreGone(err)
	}
	folder := os.NewFile(uintptr(fd), name)
	mount, err := mountOf(fd)
	if err == nil && mount != r.mount {
		err = errMounted
	}
	if err == nil {
		err = r.empty(folder, depth)
	}
	if err = errors.Join(err, folder.Close()); err != nil {
		return err
	}
	return ignoreGone(withRights(above, func() error { return unix.Unlinkat(above, name, unix.AT_REMOVEDIR) }))
}

// empty removes everything in a folder. It reads the folder again from its beginning until it is empty, because
// some filesystems skip items after others were removed.
func (r *remover) empty(folder *os.File, depth int) error {
	const tries = 100_000 // of a thousand items each; somebody else may keep adding some
	for range tries {
		names, err := folder.Readdirnames(1024)
		if err != nil && !errors.Is(err, io.EOF) {
			return ignoreGone(err)
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := r.remove(int(folder.Fd()), name, depth+1); err != nil {
				return err
			}
		}
		if _, err := folder.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return errTooMany
}

// removeTree removes a folder with everything in it, no matter how deep, and even if a command has taken away the
// owner's rights to some of it.
func removeTree(dir string) error {
	fd, err := openFolder(unix.AT_FDCWD, dir)
	if err != nil {
		return ignoreGone(err)
	}
	folder := os.NewFile(uintptr(fd), dir)
	r, err := newRemover(fd)
	if err == nil {
		err = r.empty(folder, 0)
	}
	if err == nil {
		err = r.removeMoved()
	}
	if err = errors.Join(err, folder.Close()); err != nil {
		return &os.PathError{Op: "remove", Path: dir, Err: err}
	}
	return ignoreGone(unix.Rmdir(dir))
}
