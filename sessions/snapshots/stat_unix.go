//go:build unix

package snapshots

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// identify fills in the fields of an entry by which a file is distinguished from all others, and
// from itself before a change.
func (e *Entry) identify(info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.Inode, e.Changed = uint64(st.Ino), changedAt(st)
	}
}

// hasOtherLinks reports whether a file has more than one hard link.
func hasOtherLinks(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// A giver makes whoever owns the workspace the owner of what root creates in it, because the workspace's
// commands run as that user. The zero value does nothing.
type giver struct{ uid, gid int }

func giverFor(root *os.Root) (giver, error) {
	if os.Geteuid() != 0 {
		return giver{}, nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return giver{}, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return giver{int(st.Uid), int(st.Gid)}, nil
	}
	return giver{}, nil
}

// file changes the owner of an open file, which was just made, or of an open folder.
func (g giver) file(f *os.File) error {
	if g.uid == 0 {
		return nil
	}
	return f.Chown(g.uid, g.gid)
}

// folder changes the owner of a folder.
func (g giver) folder(root *os.Root, name string) error {
	if g.uid == 0 {
		return nil
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(g.file(f), f.Close())
}
