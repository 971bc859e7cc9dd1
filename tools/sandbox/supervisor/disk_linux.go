package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A usage says how much a folder holds, with all that is below it.
type usage struct {
	bytes int64
	items int
}

const (
	diskBlock = 4096
	// maxDepth and maxItems bound how much of a folder is counted, which the command may fill.
	maxDepth = 256
	maxItems = 1_000_000
)

// Why a folder cannot be measured.
var (
	errTooDeep = errors.New("it holds folders within folders without end")
	errTooMany = errors.New("it holds more files than can be counted")
)

// measure returns how much a folder holds, with everything below it. It follows no link, even if
// the folder changes meanwhile. If it cannot read a folder in it, it returns an error, because
// that folder could hold anything.
func measure(folder string) (usage, error) {
	var u usage
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return u, err
	}
	return u, u.addFolder(os.NewFile(uintptr(fd), folder), 0)
}

// addFolder counts what is in a folder, and closes the folder.
func (u *usage) addFolder(folder *os.File, depth int) (err error) {
	defer func() { err = errors.Join(err, folder.Close()) }()
	for {
		names, err := folder.Readdirnames(1024)
		for _, name := range names {
			if err := u.addItem(int(folder.Fd()), name, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// addItem counts an item of a folder, and all that is in it if it is a folder.
func (u *usage) addItem(above int, name string, depth int) error {
	var st unix.Stat_t
	err := unix.Fstatat(above, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	u.items++
	u.bytes += max(diskBlock, (st.Blocks*512+diskBlock-1)/diskBlock*diskBlock)
	switch {
	case u.items > maxItems:
		return errTooMany
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return nil
	case depth >= maxDepth:
		return errTooDeep
	}
	fd, err := openFolder(above, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // the item is gone, or no folder any more
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	return u.addFolder(os.NewFile(uintptr(fd), name), depth+1)
}

// closeFD closes a file that was only read; its error does not matter.
func closeFD(fd int) { _ = unix.Close(fd) }

// openFolder opens a folder to be counted. If its owner has no right to read it, openFolder
// grants that first: the folder is the command's own, and could otherwise hide anything.
func openFolder(above int, name string) (int, error) {
	const how = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(above, name, unix.O_RDONLY|how, 0)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	pinned, err := unix.Openat(above, name, unix.O_PATH|how, 0)
	if err != nil {
		return -1, err
	}
	defer closeFD(pinned)
	itself := fmt.Sprintf("/proc/self/fd/%d", pinned)
	if err := unix.Chmod(itself, 0o700); err != nil {
		return -1, err
	}
	return unix.Open(itself, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// removeTree removes a folder with all that is in it, even if a command has taken its
// owner's rights to some of it.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if _, err := measure(dir); err != nil { // measure makes the folders readable
		return err
	}
	return os.RemoveAll(dir)
}

// largestFile returns how large one file of a folder may become. That is less than all that the
// folder may hold, so that a program that fills its quota with one file gets an error, and is not
// ended because the files beside it take some room as well.
func (q Quota) largestFile() int64 {
	const room = 64 // the part of the quota that is left free is 1/room
	return max(q.Bytes-max(q.Bytes/room, 16*diskBlock), diskBlock)
}
