package backup

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// maxDepth is how deep folders may be nested in a backup. Today's limit for workspaces is lower,
// but folders written by an older release may be deeper.
const maxDepth = 128

// namesIn lists the names in a folder, sorted.
func namesIn(dir *os.Root) (names []string, err error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	names, err = f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// syncTree flushes the lists of names in a directory, and in all folders below it, to disk. It
// opens each folder from the one above, because a path may be longer than the system allows.
func syncTree(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncFolder(root), root.Close())
}

func syncFolder(dir *os.Root) error {
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := dir.Lstat(name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			continue
		}
		below, err := dir.OpenRoot(name)
		if err != nil {
			return err
		}
		if err := errors.Join(syncFolder(below), below.Close()); err != nil {
			return err
		}
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// An openFolders keeps open the folders on the path to the most recently unpacked file. The next
// file is usually near, so few folders must be opened for it.
type openFolders struct {
	top   *os.Root
	names []string
	dirs  []*os.Root
}

// openDir opens a folder below the top. It creates the folder and its parents if they are missing.
func (t *openFolders) openDir(dir string) (*os.Root, error) {
	var want []string
	if dir != "." {
		want = strings.Split(dir, "/")
	}
	same := 0
	for same < len(want) && same < len(t.names) && want[same] == t.names[same] {
		same++
	}
	if err := t.closeAllBut(same); err != nil {
		return nil, err
	}
	for _, name := range want[same:] {
		at := t.newest()
		if err := at.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		below, err := at.OpenRoot(name)
		if err != nil {
			return nil, err
		}
		t.names, t.dirs = append(t.names, name), append(t.dirs, below)
	}
	return t.newest(), nil
}

// newest returns the most recently opened folder.
func (t *openFolders) newest() *os.Root {
	if len(t.dirs) == 0 {
		return t.top
	}
	return t.dirs[len(t.dirs)-1]
}

// closeAllBut closes all folders except the first n.
func (t *openFolders) closeAllBut(n int) error {
	var errs []error
	for len(t.dirs) > n {
		last := len(t.dirs) - 1
		errs = append(errs, t.dirs[last].Close())
		t.names, t.dirs = t.names[:last], t.dirs[:last]
	}
	return errors.Join(errs...)
}
