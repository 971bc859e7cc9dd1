package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Check returns nil if a backup is complete and unaltered, the names of its files and folders don't
// conflict and aren't nested too deep, and try accepts its databases. For that, it unpacks them into
// a temporary directory in the home, and calls try, unless that is nil, with the directory. It
// creates no files of workspaces, so it doesn't notice that a restore would lack room. The error
// says what prevents a restore. The home's data is not changed.
func Check(ctx context.Context, r io.Reader, home string, try func(ctx context.Context, dir string) error) (err error) {
	dir, release, err := makeScratch(home, backupScratch)
	if err != nil {
		return fmt.Errorf("check the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), release()) }()
	if _, err := unpack(ctx, r, dir, true); err != nil {
		return fmt.Errorf("check the backup: it can't be restored: %w", err)
	}
	if try != nil {
		if err := try(ctx, dir); err != nil {
			return fmt.Errorf("check the backup: it can't be restored: %w", err)
		}
	}
	return nil
}

// CheckTarget returns nil if a backup may be written to the file with that name: the file doesn't
// exist, is empty, or begins like an earlier backup, which the new one replaces.
func CheckTarget(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name a file in it", name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s isn't a regular file: name one, or write - for standard output", name)
	case info.Size() == 0:
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	if !beginsAsBackup(f) {
		return fmt.Errorf("%s already exists and isn't a backup: name another file, or remove it", name)
	}
	return nil
}

// beginsAsBackup reports whether the data read from r begins like a backup.
func beginsAsBackup(r io.Reader) bool {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return false
	}
	h, err := tar.NewReader(zipped).Next()
	return err == nil && (h.Name == manifestName || isPart(strings.TrimSuffix(h.Name, "/")))
}

// A plan lists the files and folders that a restore would create in the workspaces. Check adds to
// it instead of creating them, to find names that cannot be created.
type plan struct {
	files, folders map[string]bool
}

// addFolder adds a folder and its parents, or says why they cannot be created.
func (p *plan) addFolder(name string) error {
	if depth := strings.Count(name, "/"); depth > maxDepth {
		return fmt.Errorf("%q is nested %d folders deep, and a restore allows at most %d", shortened(name), depth, maxDepth)
	}
	for at, more := 0, true; more; {
		end := len(name)
		var next int
		if next = strings.IndexByte(name[at:], '/'); next >= 0 {
			end = at + next
		}
		at, more = end+1, next >= 0
		if part := name[:end]; p.files[part] {
			return fmt.Errorf("%w: %q is a file and a folder", ErrDamaged, shortened(part))
		} else if !p.folders[part] {
			p.folders[part] = true
		}
	}
	return nil
}

// addFile adds a file, or says why it cannot be created.
func (p *plan) addFile(name string) error {
	if p.files[name] {
		return fmt.Errorf("%w: it contains %q twice", ErrDamaged, shortened(name))
	}
	if p.folders[name] {
		return fmt.Errorf("%w: %q is a file and a folder", ErrDamaged, shortened(name))
	}
	p.files[name] = true
	return nil
}

// shortened returns a name, shortened to fit on a line.
func shortened(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	return name[:most/2] + "…" + name[len(name)-most/2:]
}
