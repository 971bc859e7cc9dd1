//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// An owner is the user and group to whom root gives what it creates in a session's directory.
type owner struct{ uid, gid int }

// ownerOf returns the owner of a file; nil if that is root.
func ownerOf(info fs.FileInfo) *owner {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 {
		return nil
	}
	return &owner{int(st.Uid), int(st.Gid)}
}

// settleOwner returns the owner of a session's directory if this process is root. It returns nil if it is
// not, or if nothing has to change owners. It gives a directory that root owns to whoever owns the folder
// that contains all directories or, if that is root, to the configured user; a person's own directory
// keeps its owner. The sandbox changes the owner of what is already in the directory, before a command
// works with it.
func (w *Workspaces) settleOwner(name string, root *os.Root) (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	own := ownerOf(info)
	if w.isFixed || w.user <= 0 {
		return own, nil
	}
	base, err := w.base.Stat(".")
	if err != nil {
		return nil, err
	}
	all := ownerOf(base)
	if own == nil {
		if own = all; own == nil {
			own = &owner{w.user, w.user}
		}
		if err := own.takeFolder(root, "."); err != nil {
			return nil, err
		}
	}
	return own, w.letPass(path.Dir(filepath.ToSlash(name)), all)
}

// letPass lets the owners of sessions' directories reach them through a folder that root owns: it gives
// the folder to the owner of all, if that is not root, and otherwise lets every user pass through it,
// without seeing its content.
func (w *Workspaces) letPass(folder string, all *owner) error {
	info, err := w.base.Stat(folder)
	if err != nil || ownerOf(info) != nil {
		return err
	}
	if all != nil {
		return all.takeFolder(w.base, folder)
	}
	if info.Mode()&0o001 != 0 {
		return nil
	}
	return w.base.Chmod(folder, info.Mode().Perm()|0o001)
}

// takeFolder changes the owner of a folder that root owns.
func (o *owner) takeFolder(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(o.chown(f), f.Close())
}

// chown gives an open file that root owns to the owner, if there is one. The file is always one that this
// process has just created, or a folder: any other file could have a second name outside.
func (o *owner) chown(f *os.File) error {
	if o == nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil || ownerOf(info) != nil {
		return err
	}
	if err := f.Chown(o.uid, o.gid); err != nil {
		return fmt.Errorf("give it to user %d, whom commands run as: %w", o.uid, err)
	}
	return nil
}
