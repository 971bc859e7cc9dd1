package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

const (
	maxDepth      = 128 // the deepest folders that are walked
	parallelReads = 4   // how many files are read at once
)

// A walk goes through a workspace once and makes its tree.
type walk struct {
	ctx         context.Context //nolint:containedctx // the context of one walk
	history     *history
	earlier     *tree // an earlier tree, whose checksums and copies are valid for files that nobody has touched
	tree        *tree
	stale       []Name // files that have to be read
	makesCopies bool   // whether copies are made of the files
	// root is the root of the workspace if the walk may temporarily change the modes of folders,
	// otherwise nil; unlocked are the folders whose modes it has changed.
	root     *os.Root
	unlocked []Name
}

// walk makes the tree of the workspace in its current state. If copies is true, it also copies the
// content of each file, as far as the limits allow. No command may run meanwhile: folders that a turn has
// locked (see unlockFolder) are open for a moment.
func (d *history) walk(ctx context.Context, base *tree, copies bool) (*tree, error) {
	return d.walkOnce(ctx, base, copies, true)
}

// walkReadable makes the tree of the workspace in its current state, as far as it can be read, while commands
// run.
func (d *history) walkReadable(ctx context.Context, base *tree) (*tree, error) {
	return d.walkOnce(ctx, base, false, false)
}

// walkOnce does what walk does; unlocks says whether it may unlock folders that a turn has locked.
func (d *history) walkOnce(ctx context.Context, base *tree, copies, unlocks bool) (next *tree, err error) {
	at, err := d.filesystemTime()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(d.place.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // closing a folder cannot lose anything
	if base == nil {
		base = &tree{}
	}
	w := &walk{ctx: ctx, history: d, earlier: base, makesCopies: copies, tree: &tree{At: at, Entries: make(map[Name]Entry, len(base.Entries))}}
	if unlocks {
		w.root = root
		defer func() { err = errors.Join(err, w.relockFolders()) }()
	}
	if err := w.addFolder(root, "", 1); err != nil {
		return nil, err
	}
	if copies {
		w.addMissingCopies()
	}
	if err := w.readStale(root, copies); err != nil {
		return nil, err
	}
	return w.tree, nil
}

// filesystemTime returns the current time by the filesystem's clock, in nanoseconds.
func (d *history) filesystemTime() (int64, error) {
	name := newName()
	f, err := d.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close(), d.dir.Remove(name)); err != nil {
		return 0, err
	}
	var e Entry
	e.identify(info)
	return e.Changed, nil
}

// addFolder adds the entries of a folder. The folder was opened from the one above it, so that the kernel
// need not walk the whole path of every item.
func (w *walk) addFolder(dir *os.Root, above string, depth int) (err error) {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if err := w.addItem(dir, name, path.Join(above, name), depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// addItem adds one path and, if it is a folder, everything in it. It returns ErrTooMany after MaxItems, and for folders
// that are nested too deep.
func (w *walk) addItem(dir *os.Root, name, full string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.history.cfg.IsExcluded(full) {
		return nil
	}
	e, err := statAt(dir, name)
	if err != nil {
		return ignoreMissing(err)
	}
	if len(w.tree.Entries) >= MaxItems {
		return ErrTooMany
	}
	if before, ok := w.earlier.Entries[Name(full)]; ok && e.Mode.IsRegular() && before.isUntouched(e) && w.earlier.isSettled(before) {
		e.Sum, e.HasCopy, e.NoCopyReason = before.Sum, before.HasCopy, before.NoCopyReason
	} else if e.Mode.IsRegular() {
		w.stale = append(w.stale, Name(full))
	}
	w.tree.Entries[Name(full)] = e
	if !e.Mode.IsDir() {
		return nil
	}
	if depth >= maxDepth {
		return fmt.Errorf("%w: its folders are nested more than %d deep", ErrTooMany, maxDepth)
	}
	w.unlockFolder(Name(full), e)
	below, err := dir.OpenRoot(name)
	if errors.Is(err, fs.ErrPermission) {
		w.copyOldEntries(full)
		return nil
	}
	if err != nil {
		return ignoreMissing(err)
	}
	err = w.addFolder(below, full, depth+1)
	if errors.Is(err, fs.ErrPermission) {
		w.copyOldEntries(full)
		err = nil
	}
	return errors.Join(err, below.Close())
}

// unlockFolder makes an unreadable folder readable during the walk if it is new or had another mode
// before: a turn may have changed its content and then locked it. It also unlocks a folder if copies are
// made and some files that were found in it are not copied yet. Other folders that cannot be read stay as
// they are. If unlocking is not permitted, the folder counts as it is.
func (w *walk) unlockFolder(folder Name, e Entry) {
	if w.root == nil || len(w.earlier.Entries) == 0 || e.Mode.Perm()&0o500 == 0o500 {
		return
	}
	if before, known := w.earlier.Entries[folder]; known && before.Mode == e.Mode && !(w.makesCopies && w.earlier.lacksCopies(folder)) {
		return
	}
	if w.root.Chmod(string(folder), e.Mode|0o700) == nil {
		w.unlocked = append(w.unlocked, folder)
	}
}

// relockFolders restores the modes of the unlocked folders, inner folders first.
func (w *walk) relockFolders() (err error) {
	for _, folder := range slices.Backward(w.unlocked) {
		err = errors.Join(err, ignoreMissing(w.root.Chmod(string(folder), w.tree.Entries[folder].Mode)))
	}
	return err
}

// copyOldEntries copies the entries of a folder that cannot be read now from the earlier tree.
func (w *walk) copyOldEntries(folder string) {
	for name, e := range w.earlier.Entries {
		if strings.HasPrefix(string(name), folder+"/") {
			w.tree.Entries[name] = e
		}
	}
}

// statAt returns the entry of a path with its data from the filesystem, without reading the content.
func statAt(dir *os.Root, name string) (Entry, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Mode: info.Mode() & keptMode, Modified: info.ModTime().UnixNano()}
	e.identify(info)
	switch {
	case e.Mode.IsRegular():
		e.Size = info.Size()
	case e.Mode&fs.ModeSymlink != 0:
		to, err := dir.Readlink(name)
		if err != nil {
			return Entry{}, err
		}
		e.Link = Name(to)
	}
	return e, nil
}

// addMissingCopies marks files as stale that nobody has touched but that have no copy yet, so that they
// are read.
func (w *walk) addMissingCopies() {
	stale := make(map[Name]bool, len(w.stale))
	for _, name := range w.stale {
		stale[name] = true
	}
	for name, e := range w.tree.Entries {
		if e.Mode.IsRegular() && !e.HasCopy && e.NoCopyReason == "" && !stale[name] {
			w.stale = append(w.stale, name)
		}
	}
}

// readStale reads the stale files, several at once.
func (w *walk) readStale(root *os.Root, copies bool) error {
	if len(w.stale) == 0 {
		return nil
	}
	var keep *copier
	if copies {
		var err error
		if keep, err = w.history.newCopier(); err != nil {
			return err
		}
	}
	found := make([]Entry, len(w.stale))
	reading, ctx := errgroup.WithContext(w.ctx)
	reading.SetLimit(parallelReads)
	for i, name := range w.stale {
		reading.Go(func() (err error) {
			found[i], err = w.history.readFile(ctx, root, string(name), keep)
			if errors.Is(err, fs.ErrPermission) { // the file is in a folder that cannot be read, and known from an earlier tree
				if found[i] = w.tree.Entries[name]; !found[i].HasCopy && found[i].NoCopyReason == "" {
					found[i].NoCopyReason = textUnreadable
				}
				return nil
			}
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return err
	}
	for i, name := range w.stale {
		if found[i].Mode == 0 && found[i].NoCopyReason == "" { // the file no longer exists
			delete(w.tree.Entries, name)
			continue
		}
		w.tree.Entries[name] = found[i]
	}
	return nil
}
