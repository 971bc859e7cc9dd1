package folder

import (
	"fmt"
	"io/fs"
	"os"
)

// A diskFolder is the path of a folder on this machine, whose files can be opened. It doesn't
// follow links that lead out of the folder, and it opens only files and folders: opening anything
// else, such as a pipe, might block forever.
type diskFolder string

// Open implements fs.FS within the folder.
func (d diskFolder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // what was opened in the folder stays open
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w: it isn't a regular file", fs.ErrInvalid)}
	}
	return root.Open(name)
}
