// Package folder keeps the files of the archive in a folder.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/tools/plainjson"
)

// partSuffix ends the name of a file that is not written completely.
const partSuffix = ".parley-part"

// A Folder is an archive.Place in a folder that exists.
type Folder struct {
	dir      string
	checking chan struct{} // contains one while Check looks
}

// New returns the Folder at a path.
func New(dir string) *Folder { return &Folder{dir, make(chan struct{}, 1)} }

// Put implements archive.Place. Only the owner can read the file.
func (f *Folder) Put(_ context.Context, name string, content io.ReadSeeker, _ int64) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s to the archive: %w", name, err)
		}
	}()
	f.removeParts()
	file, err := os.CreateTemp(f.dir, name+".*"+partSuffix) // another process may still be writing its own
	if err != nil {
		return err
	}
	part := file.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(part) // otherwise a later attempt does
		}
	}()
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, filepath.Join(f.dir, name)); err != nil {
		return err
	}
	return plainjson.SyncDir(f.dir)
}

// partLifetime is how long a process may take to write a file.
const partLifetime = 24 * time.Hour

// removeParts removes incomplete files of processes that died. Errors don't matter: nobody reads these files.
func (f *Folder) removeParts() {
	names, _ := f.Names(context.Background())
	for _, name := range names {
		if !strings.HasSuffix(name, partSuffix) {
			continue
		}
		part := filepath.Join(f.dir, name)
		if info, err := os.Stat(part); err == nil && time.Since(info.ModTime()) > partLifetime {
			_ = os.Remove(part)
		}
	}
}

// Open implements archive.Place.
func (f *Folder) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(f.dir, name))
}

// Names implements archive.Place.
func (f *Folder) Names(context.Context) (names []string, err error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Check implements archive.Place. It ends with ctx even if the folder is on a server that does not answer.
func (f *Folder) Check(ctx context.Context) error {
	select {
	case f.checking <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("the folder %s doesn't answer: %w", f.dir, ctx.Err())
	}
	ended := make(chan error, 1)
	go func() {
		ended <- f.check()
		<-f.checking
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the folder %s doesn't answer: %w", f.dir, ctx.Err())
	}
}

// check returns an error if no file can be stored at the moment.
func (f *Folder) check() error {
	info, err := os.Stat(f.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %s doesn't exist", f.dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s isn't a folder", f.dir)
	}
	probe, err := os.CreateTemp(f.dir, ".parley-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
