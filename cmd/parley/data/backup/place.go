package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/bus/sqlitebus"
	"parley/tools/plainjson"
)

// A restore unpacks the new data into a directory of its own; once that directory is renamed to
// agreed, the restore counts as done. Everything after that can be repeated, by any process that
// opens the home next: first the old data is moved aside, then the directory is renamed to placing,
// and each part is moved from it to its place.
const (
	agreed      = ".restore"
	placing     = ".restore.placing"
	asideFile   = "aside" // a file in agreed that contains the name of the directory that the old data is moved to
	asidePrefix = "before-restore-"
)

// restoredNames returns the names in a home that a restore replaces.
func restoredNames() []string {
	var names []string
	for _, db := range databases() {
		names = append(names, db, db+"-wal", db+"-shm")
	}
	return append(names, workspaces)
}

// Workspaces returns the directory in a home into which a restore puts the sessions' directories.
func Workspaces(home string) string { return filepath.Join(home, workspaces) }

// OldDataDirs lists the directories in a home into which restores have moved the old data. They
// contain what people said until somebody deletes them.
func OldDataDirs(home string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(escape(home), asidePrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("list the folders that restores have set aside: %w", err)
	}
	return found, nil
}

// escape returns a pattern for filepath.Glob that matches only dir itself, whatever characters its
// name contains.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// oldDataDirName returns an unused name in the home for the directory of the old data.
func oldDataDirName(home string) string {
	name := asidePrefix + time.Now().UTC().Format("20060102T150405Z")
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(home, name)); errors.Is(err, fs.ErrNotExist) {
			return name
		}
		name = fmt.Sprintf("%s%s-%d", asidePrefix, time.Now().UTC().Format("20060102T150405Z"), n)
	}
}

// commit makes a restore final; dir contains the new data. It syncs everything to disk before the
// rename, so that a power failure leaves either the old home or the complete new one. aside is the
// directory for the old data; "" if there is no old data. point is called between the steps, where
// a test may kill the process.
func commit(home, dir, aside string, point func(string)) error {
	if err := checkMovable(home); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(restoredNames(), e.Name()) { // such as a lock left from opening the databases
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if aside != "" {
		aside = filepath.Base(aside)
	}
	if err := writeSynced(filepath.Join(dir, asideFile), []byte(aside)); err != nil {
		return err
	}
	if err := errors.Join(syncTree(dir), plainjson.SyncDir(home)); err != nil {
		return err
	}
	point("commit:before")
	if err := os.Rename(dir, filepath.Join(home, agreed)); err != nil {
		return err
	}
	point("committed")
	return plainjson.SyncDir(home)
}

// checkMovable refuses a home if one of its parts is on another filesystem, because such a part
// cannot be renamed: neither aside nor to its place.
func checkMovable(home string) error {
	ours, err := device(home)
	if err != nil {
		return err
	}
	theirs, err := device(filepath.Join(home, workspaces))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && ours != theirs {
		err = fmt.Errorf("%s is a separate filesystem, which can't be moved aside: unmount it first", filepath.Join(home, workspaces))
	}
	return err
}

// Finish completes a restore that was interrupted after it became final. It must be called before a
// home is opened, and does nothing if there is no such restore. It fails while a server uses the home.
func Finish(home string) (err error) {
	pending := false
	for _, name := range []string{agreed, placing} {
		if _, err := os.Lstat(filepath.Join(home, name)); err == nil {
			pending = true
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("finish a restore: %w", err)
		}
	}
	if !pending {
		return nil
	}
	lock, err := sqlitebus.Lock(filepath.Join(home, databases()[0]))
	if err != nil {
		return fmt.Errorf("finish a restore: %w", err)
	}
	if err := errors.Join(finish(home, func(string) {}), lock.Close()); err != nil {
		return fmt.Errorf("finish a restore: %w", err)
	}
	return nil
}

// finish completes a restore that has become final. Each of its steps can be repeated after a
// crash: the directory agreed exists until all old data is aside, the directory placing until all
// new data is in its place.
func finish(home string, point func(string)) error {
	from, to := filepath.Join(home, agreed), filepath.Join(home, placing)
	switch _, err := os.Lstat(from); {
	case err == nil:
		if err := setAside(home, from, point); err != nil {
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
		if err := plainjson.SyncDir(home); err != nil {
			return err
		}
		point("placing")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := os.Lstat(to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no restore has become final
		}
		return err
	}
	return placeParts(home, to, point)
}

// setAside moves the home's old data into the directory named by the file asideFile in from. Until
// agreed is renamed, everything in the home under restoredNames is old, so a repetition moves
// only what is left.
func setAside(home, from string, point func(string)) error {
	name, err := os.ReadFile(filepath.Join(from, asideFile))
	if err != nil {
		return err
	}
	aside := filepath.Join(home, filepath.Base(string(name)))
	if len(name) > 0 {
		if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, part := range restoredNames() {
		err := os.Rename(filepath.Join(home, part), filepath.Join(aside, part))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		point("aside " + part)
	}
	if len(name) == 0 {
		return nil
	}
	return errors.Join(plainjson.SyncDir(aside), plainjson.SyncDir(home))
}

// placeParts moves each part of the new data from the directory from to its place in the home, and
// removes from. A part that is missing in from is already in its place.
func placeParts(home, from string, point func(string)) error {
	for _, part := range restoredNames() {
		err := os.Rename(filepath.Join(from, part), filepath.Join(home, part))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		point("placed " + part)
	}
	if err := plainjson.SyncDir(home); err != nil {
		return err
	}
	return os.RemoveAll(from)
}

// writeSynced writes a new file, and returns once it is on disk.
func writeSynced(name string, content []byte) (err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Sync()
}
