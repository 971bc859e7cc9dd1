package home

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/data/migrate"
)

// An Owner is the user and group that own a home. Root may work in the home of a service that runs as another user;
// files that root creates there are given to that user, who could not use them otherwise.
type Owner struct{ uid, gid int }

// noOwner returns the Owner for a home in which nothing must be given away, because its own user
// runs the program.
func noOwner() Owner { return Owner{uid: -1, gid: -1} }

// OwnerOf returns the owner of a directory if root runs the program and the directory is not root's; otherwise noOwner.
// If the directory doesn't exist yet, it returns the owner of the folder that will contain it.
func OwnerOf(dir string) Owner {
	if os.Geteuid() != 0 {
		return noOwner()
	}
	for {
		info, err := os.Stat(dir)
		if err == nil {
			stat, ok := info.Sys().(*syscall.Stat_t)
			if !ok || stat.Uid == 0 {
				return noOwner()
			}
			return Owner{uid: int(stat.Uid), gid: int(stat.Gid)}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return noOwner()
		}
		dir = up
	}
}

// homeParts returns the prefixes of the names of the files that Parley creates in a home. Other
// files, such as a configuration, are the operator's.
func homeParts() []string {
	return []string{BusFile, StoreFile, homedb.BookFile, TokenFile, SocketFile, TerminalsDir, fleetFile, "before-restore-"}
}

// GiveHome makes o the owner of Parley's own files that root has created in a home, except the workspaces.
func (o Owner) GiveHome(home string) error {
	return o.openWithin(home, func(root *os.Root) error {
		entries, err := fs.ReadDir(root.FS(), ".")
		if err != nil {
			return err
		}
		errs := []error{o.give(root, ".")}
		for _, e := range entries {
			made := func(part string) bool { return strings.HasPrefix(e.Name(), part) }
			if slices.ContainsFunc(homeParts(), made) || e.Name() == filepath.Base(migrate.Path(home)) {
				errs = append(errs, o.walk(root, e.Name()))
			}
		}
		return errors.Join(errs...)
	})
}

// GiveTree makes o the owner of everything that root has created below a directory.
func (o Owner) GiveTree(dir string) error {
	return o.openWithin(dir, func(root *os.Root) error { return o.walk(root, ".") })
}

// giveFolder makes o the owner of what root has created in an agent's folder, which may also
// contain other things of the operator's: the folder itself, its marker, and the sessions'
// directories.
func (o Owner) giveFolder(dir, agent string) error {
	return o.openWithin(dir, func(root *os.Root) error {
		return errors.Join(o.give(root, "."), o.give(root, MarkerFile), o.walk(root, agent))
	})
}

// givePath makes o the owner of the directories between dir and path, which is below it.
func (o Owner) givePath(dir, path string) error {
	return o.openWithin(dir, func(root *os.Root) error {
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		var errs []error
		for ; below != "."; below = filepath.Dir(below) {
			errs = append(errs, o.give(root, below))
		}
		return errors.Join(errs...)
	})
}

// openWithin calls fn with a directory, opened so that nothing outside it can be given away. It
// does nothing if there is no such directory.
func (o Owner) openWithin(dir string, fn func(*os.Root) error) error {
	if o == noOwner() {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(fn(root), root.Close())
	}
	if err != nil {
		return fmt.Errorf("give %s to its owner: %w", dir, err)
	}
	return nil
}

// walk makes o the owner of a file, and of everything in it if it is a folder.
func (o Owner) walk(root *os.Root, name string) error {
	return fs.WalkDir(root.FS(), name, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // another process has removed it
			return nil
		}
		return errors.Join(err, o.give(root, path))
	})
}

// give makes o the owner of one of root's files. It skips a file with a second hard link, which may
// be outside the directory.
func (o Owner) give(root *os.Root, path string) error {
	info, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 || info.Mode().IsRegular() && stat.Nlink > 1 {
		return nil
	}
	if err := root.Lchown(path, o.uid, o.gid); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkWorkable refuses workspaces in which an agent's directory belongs to another user, because
// no turn of that agent could begin.
func checkWorkable(c *config.Config) error {
	for _, f := range c.Folders() {
		path, err := ForeignDir(f.Dir, cmp.Or(f.Agent, "*"))
		if err != nil {
			return fmt.Errorf("check the workspaces: %w", err)
		}
		if path != "" {
			return &config.SettingError{Where: c.Origin(f.Key), Key: f.Key, Remedy: fmt.Sprintf(
				"this user (uid %d) can't use %s, perhaps because root has created files here: run chown -R %d %s", os.Geteuid(), path, os.Geteuid(), f.Dir)}
		}
	}
	return nil
}

// Unusable adds to a permission error about a part of the home who may not use it, and what to do;
// it returns other errors unchanged.
func Unusable(dir string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("this user (uid %d) can't use %s, because something in it belongs to somebody else: run chown -R %d %s: %w",
		os.Geteuid(), dir, os.Geteuid(), dir, err)
}

// ForeignDir returns a directory in which this user cannot work, among those directories in the
// workspaces that match the patterns; "" if there is none.
func ForeignDir(root string, patterns ...string) (string, error) {
	for _, pattern := range patterns {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			return "", err
		}
		for _, name := range found {
			info, err := os.Lstat(filepath.Join(root, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", err
			}
			const all = 4 | 2 | 1 // read, write and pass through
			if info.IsDir() && syscall.Access(filepath.Join(root, name), all) != nil {
				return filepath.Join(root, name), nil
			}
		}
	}
	return "", nil
}
