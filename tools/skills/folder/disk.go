package folder

import (
	"fmt"
	"io/fs"
	"os"
)

// onDisk is a folder of this machine. No link in it leads out of it, and what is neither
// a file nor a folder is not opened: that might not end.
type onDisk string

// Open implements fs.FS.
func (d onDisk) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // what was opened below stays open
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w: it is no regular file", fs.ErrInvalid)}
	}
	return root.Open(name)
}
