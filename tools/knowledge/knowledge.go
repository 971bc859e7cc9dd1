// Package knowledge lays a folder of the operator's, which nobody changes, into every session's directory.
//
// The tools that read files find it as the folder "knowledge". It is read through an
// os.Root, so that no link in it leads out of it.
package knowledge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Folder is its name in a session's directory.
const Folder = "knowledge"

// A Base is the operator's folder, opened.
type Base struct {
	root *os.Root
	fsys fs.FS
}

// Open opens the operator's folder.
func Open(dir string) (*Base, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the knowledge: %w", err)
	}
	return &Base{root, root.FS()}, nil
}

// Close closes it.
func (b *Base) Close() error { return b.root.Close() }

// Names lists the first names in it, sorted, and whether there are more.
func (b *Base) Names(most int) (names []string, more bool) {
	list, err := fs.ReadDir(b.fsys, ".")
	if err != nil {
		return nil, false
	}
	for _, e := range list {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	if len(names) > most {
		return names[:most], true
	}
	return names, false
}

// A Dir is a session's directory, as tools for files have it.
type Dir interface {
	fs.ReadDirFS
	fs.StatFS
	Name(path string) (string, error)
	Write(name string, content []byte) error
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
	Remove(name string) error
}

// Over lays the operator's folder over a session's directory. What the session has itself
// under that name is hidden.
func (b *Base) Over(dir Dir) Dir { return over{dir, b} }

// An over is a session's directory with the operator's folder in it.
type over struct {
	Dir
	base *Base
}

// within is a path's name in the operator's folder; false if it is none.
func (o over) within(path string) (name string, ok bool) {
	name, err := o.Name(path)
	if err != nil {
		return "", false // the directory says what is wrong with it
	}
	if name == Folder {
		return ".", true
	}
	return strings.CutPrefix(name, Folder+"/")
}

// readOnly says that the operator's folder is not changed.
func readOnly(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: fmt.Errorf("%w: the folder %s is the operator's, and is only read: write elsewhere", fs.ErrPermission, Folder)}
}

// Open implements fs.FS. What is no regular file is refused: opening it might not end.
func (o over) Open(path string) (fs.File, error) {
	name, ok := o.within(path)
	if !ok {
		return o.Dir.Open(path)
	}
	info, err := o.base.root.Stat(name)
	if err != nil {
		return nil, cleaned("open", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: not a regular file", fs.ErrInvalid)}
	}
	file, err := o.base.fsys.Open(name)
	return file, cleaned("open", path, err)
}

// Stat implements fs.StatFS.
func (o over) Stat(path string) (fs.FileInfo, error) {
	name, ok := o.within(path)
	if !ok {
		return o.Dir.Stat(path)
	}
	info, err := o.base.root.Stat(name)
	return info, cleaned("stat", path, err)
}

// ReadDir implements fs.ReadDirFS.
func (o over) ReadDir(path string) ([]fs.DirEntry, error) {
	if name, ok := o.within(path); ok {
		list, err := fs.ReadDir(o.base.fsys, name)
		return list, cleaned("readdir", path, err)
	}
	list, err := o.Dir.ReadDir(path)
	if name, wrong := o.Name(path); wrong != nil || err != nil || name != "." {
		return list, err
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return e.Name() == Folder })
	at, _ := slices.BinarySearchFunc(list, Folder, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	return slices.Insert(list, at, fs.DirEntry(folder{})), nil
}

// Write refuses what would change the operator's folder.
func (o over) Write(path string, content []byte) error {
	if _, ok := o.within(path); ok {
		return readOnly("write", path)
	}
	return o.Dir.Write(path, content)
}

// Update likewise.
func (o over) Update(path string, limit int64, change func(old []byte) ([]byte, error)) error {
	if _, ok := o.within(path); ok {
		return readOnly("write", path)
	}
	return o.Dir.Update(path, limit, change)
}

// Remove likewise.
func (o over) Remove(path string) error {
	if _, ok := o.within(path); ok {
		return readOnly("remove", path)
	}
	return o.Dir.Remove(path)
}

// cleaned is an error without the place where the folder is.
func cleaned(op, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		err = fs.ErrNotExist
	case errors.Is(err, fs.ErrPermission):
		err = fs.ErrPermission
	default:
		err = fmt.Errorf("%w: it cannot be read", fs.ErrInvalid)
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// A folder is the entry of the operator's folder in a session's directory.
type folder struct{}

func (folder) Name() string               { return Folder }
func (folder) IsDir() bool                { return true }
func (folder) Type() fs.FileMode          { return fs.ModeDir }
func (folder) Info() (fs.FileInfo, error) { return folderInfo{}, nil }

type folderInfo struct{ folder }

func (folderInfo) Size() int64        { return 0 }
func (folderInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o500 }
func (folderInfo) ModTime() time.Time { return time.Time{} }
func (folderInfo) Sys() any           { return nil }
