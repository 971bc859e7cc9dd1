package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A usage says how much a folder contains, with everything below it.
type usage struct {
	bytes int64
	items int
}

const (
	diskBlock = 4096
	// maxDepth and maxItems limit how much of a folder is counted, because the command may fill it.
	maxDepth = 256
	maxItems = 1_000_000
)

// Why a folder cannot be measured.
var (
	errTooDeep = fmt.Errorf("its folders are nested more than %d deep", maxDepth)
	errTooMany = errors.New("it contains more files than can be counted")
)

// A walk visits a folder and everything below it. It follows no link, even if the folder changes in
// the meantime. If it cannot read a folder, it returns an error, because that folder could contain
// anything.
type walk struct {
	usage
	// visit, if set, is called for each item, and returns whether it has removed the item.
	visit func(above int, name string, st *unix.Stat_t, depth int) (gone bool, err error)
	// onTooDeep, if set, is called for a folder that is too deep for the walk; otherwise such a folder ends the walk
	// with errTooDeep.
	onTooDeep func(above int, name string) error
}

// measure returns how much a folder contains, with everything below it.
func measure(folder string) (usage, error) {
	var w walk
	err := w.walk(folder)
	return w.usage, err
}

// walk visits the folder at a path.
func (w *walk) walk(folder string) error {
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: folder, Err: err}
	}
	return w.walkOpen(os.NewFile(uintptr(fd), folder), 0)
}

// walkOpen visits an open folder, and closes it.
func (w *walk) walkOpen(folder *os.File, depth int) (err error) {
	defer func() { err = errors.Join(err, folder.Close()) }()
	for {
		names, err := folder.Readdirnames(1024)
		for _, name := range names {
			if err := w.walkItem(int(folder.Fd()), name, depth); err != nil {
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

// walkItem counts an item in a folder and, if the item is a folder itself, everything in it. It skips an item that no
// longer exists. It returns errTooMany after maxItems, and errTooDeep for a folder below maxDepth, unless onTooDeep is
// set.
func (w *walk) walkItem(above int, name string, depth int) error {
	var st unix.Stat_t
	err := unix.Fstatat(above, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.visit != nil {
		if gone, err := w.visit(above, name, &st, depth); gone || err != nil {
			return err
		}
	}
	isFolder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if isFolder && depth >= maxDepth && w.onTooDeep != nil {
		return w.onTooDeep(above, name)
	}
	w.items++
	w.bytes += max(diskBlock, (st.Blocks*512+diskBlock-1)/diskBlock*diskBlock)
	switch {
	case w.items > maxItems:
		return errTooMany
	case !isFolder:
		return nil
	case depth >= maxDepth:
		return errTooDeep
	}
	fd, err := openFolder(above, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // the item is gone, or is no longer a folder
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	return w.walkOpen(os.NewFile(uintptr(fd), name), depth+1)
}

// closeFD closes a file that was only read; its error does not matter.
func closeFD(fd int) { _ = unix.Close(fd) }

// openFolder opens a folder in order to read what it contains. If its owner has no right to read
// it, openFolder grants that first: the folder is the command's own, and could otherwise hide
// anything.
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

// largestFile returns the maximum size of one file in a folder. It is less than the folder's quota,
// so that a program that fills its quota with one file gets an error, rather than being ended
// because the files beside that one take some space as well.
func (q Quota) largestFile() int64 {
	const room = 64 // the part of the quota that is left free is 1/room
	return max(q.Bytes-max(q.Bytes/room, 16*diskBlock), diskBlock)
}
