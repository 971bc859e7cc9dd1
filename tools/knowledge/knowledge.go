// Package knowledge lets agents read a folder that belongs to the operator: it appears in every session's
// directory, and nobody can change it there.
//
// The tools that read files see it as the folder "knowledge". It is read through an os.Root, so that no link in it
// leads out of it.
package knowledge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"parley/tools"
)

// Folder is the folder's name in a session's directory.
const Folder = "knowledge"

// A Base is the operator's folder, opened for reading.
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

// Close closes the folder.
func (b *Base) Close() error { return b.root.Close() }

// For returns the folder's files for an agent with these permissions; nil if there is no folder, or if the agent
// may not read files.
func (b *Base) For(may []tools.Permission) fs.FS {
	if b == nil || !slices.Contains(may, tools.FileRead) {
		return nil
	}
	return b.fsys
}

// Names returns the first most names in the folder, in sorted order; more says that there are others. It returns
// none if the folder cannot be read.
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

// A Dir is the part of a session's directory that the file tools need.
type Dir interface {
	fs.ReadDirFS
	fs.StatFS
	Name(path string) (string, error)
	Write(name string, content []byte) error
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
	Remove(name string) error
}

// Overlay returns a session's directory in which the operator's folder appears. It hides a folder of the same name
// in the session's own directory.
func (b *Base) Overlay(dir Dir) Dir { return overlay{dir, b} }

// An overlay is a session's directory in which the operator's folder appears.
type overlay struct {
	Dir
	base *Base
}

// nameInBase returns the name within the operator's folder for a path of the session's directory; ok is false if
// the path is elsewhere.
func (o overlay) nameInBase(path string) (name string, ok bool) {
	name, err := o.Name(path)
	if err != nil {
		return "", false // the directory reports what is wrong with the path
	}
	if name == Folder {
		return ".", true
	}
	return strings.CutPrefix(name, Folder+"/")
}

// readOnly returns the error for an attempt to change the operator's folder.
func readOnly(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: fmt.Errorf("%w: the folder %s is the operator's, and is only read: write elsewhere", fs.ErrPermission, Folder)}
}

// Open implements fs.FS. It refuses anything except a regular file, because opening something else might block
// forever.
func (o overlay) Open(path string) (fs.File, error) {
	name, ok := o.nameInBase(path)
	if !ok {
		return o.Dir.Open(path)
	}
	info, err := o.base.root.Stat(name)
	if err != nil {
		return nil, withoutHostPath("open", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: not a regular file", fs.ErrInvalid)}
	}
	file, err := o.base.fsys.Open(name)
	return file, withoutHostPath("open", path, err)
}

// Stat implements fs.StatFS for both folders.
func (o overlay) Stat(path string) (fs.FileInfo, error) {
	name, ok := o.nameInBase(path)
	if !ok {
		return o.Dir.Stat(path)
	}
	info, err := o.base.root.Stat(name)
	return info, withoutHostPath("stat", path, err)
}

// ReadDir implements fs.ReadDirFS; the session's directory lists the operator's folder, too.
func (o overlay) ReadDir(path string) ([]fs.DirEntry, error) {
	if name, ok := o.nameInBase(path); ok {
		list, err := fs.ReadDir(o.base.fsys, name)
		return list, withoutHostPath("readdir", path, err)
	}
	list, err := o.Dir.ReadDir(path)
	if name, wrong := o.Name(path); wrong != nil || err != nil || name != "." {
		return list, err
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return e.Name() == Folder })
	at, _ := slices.BinarySearchFunc(list, Folder, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	return slices.Insert(list, at, fs.DirEntry(folder{})), nil
}

// Write refuses to change the operator's folder.
func (o overlay) Write(path string, content []byte) error {
	if _, ok := o.nameInBase(path); ok {
		return readOnly("write", path)
	}
	return o.Dir.Write(path, content)
}

// Update refuses to change the operator's folder.
func (o overlay) Update(path string, limit int64, change func(old []byte) ([]byte, error)) error {
	if _, ok := o.nameInBase(path); ok {
		return readOnly("write", path)
	}
	return o.Dir.Update(path, limit, change)
}

// Remove refuses to change the operator's folder.
func (o overlay) Remove(path string) error {
	if _, ok := o.nameInBase(path); ok {
		return readOnly("remove", path)
	}
	return o.Dir.Remove(path)
}

// withoutHostPath returns an error that doesn't show the model where the operator's folder is on this machine.
func withoutHostPath(op, path string, err error) error {
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

// A folder is the directory entry of the operator's folder in a session's directory.
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
