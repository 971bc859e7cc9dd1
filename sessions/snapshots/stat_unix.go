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

// An owner is the user and group that own the workspace. If this process is root, it makes them the owner
// of what it creates there, because the workspace's commands run as that user. The zero value changes
// nothing.
type owner struct{ uid, gid int }

// ownerFor returns the owner of a workspace, or the zero value if this process is not root.
func ownerFor(root *os.Root) (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return owner{}, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return owner{int(st.Uid), int(st.Gid)}, nil
	}
	return owner{}, nil
}

// chown changes the owner of an open file, which was just made, or of an open folder.
func (o owner) chown(f *os.File) error {
	if o.uid == 0 {
		return nil
	}
	return f.Chown(o.uid, o.gid)
}

// chownFolder changes the owner of a folder.
func (o owner) chownFolder(root *os.Root, name string) error {
	if o.uid == 0 {
		return nil
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(o.chown(f), f.Close())
}
