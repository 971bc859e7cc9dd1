package snapshots

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// The reasons why an undo leaves a path as it is.
const (
	reasonChanged           = "it has changed since then"
	reasonFolderChanged     = "its folder has changed since then"
	reasonNotEmpty          = "it contains something else now"
	reasonCopyDamaged       = "my copy of it is gone or damaged"
	reasonSpecialFile       = "it wasn't a file, folder or link"
	reasonRepositoryChanged = "its repository has changed since then"
	reasonNotAllowed        = "the system doesn't allow it"
)

// maxSynced is how many files an undo flushes to the disk. Each flush takes milliseconds; if more files
// are restored, a power failure may damage those written in the last seconds.
const maxSynced = 256

// A restorer restores the paths that a turn has changed. It is made for one undo.
type restorer struct {
	history    *history
	root       *os.Root // the root of the workspace
	owner      owner    // who owns new files, if this process is root
	checkLease func(ctx context.Context) error
	// treeBefore is the workspace when the undo was begun, if this undo was interrupted and is being
	// continued; otherwise nil.
	treeBefore *tree
	isResumed  bool // whether this undo was begun before, and interrupted

	syncedFiles int

	todo        []Change // the changes to undo, sorted by path
	restored    map[Name]bool
	leftReasons map[Name]string
	modes       map[string]fs.FileMode // the modes that folders will have at the end
}

// restore restores every path that nobody has changed since the turn. It returns an error only if the
// error stops the work, which can be started again.
func (r *restorer) restore(ctx context.Context, changes []Change) error {
	r.restored, r.leftReasons, r.modes = map[Name]bool{}, map[Name]string{}, map[string]fs.FileMode{}
	r.findUnlocked()
	if err := r.unlockFolders(ctx, changes); err != nil {
		return err
	}
	if err := r.plan(ctx, changes); err != nil {
		return err
	}
	r.leaveRepositories()
	for _, step := range []struct {
		backwards bool
		do        func(ctx context.Context, c Change) error
	}{{true, r.remove}, {false, r.makeFolder}, {false, r.putBack}} {
		ordered := slices.Clone(r.todo)
		if step.backwards { // a folder's content comes before the folder
			slices.Reverse(ordered)
		}
		for _, c := range ordered {
			if r.leftReasons[c.Path] != "" {
				continue
			}
			if err := r.step(ctx, c, step.do); err != nil {
				return err
			}
		}
	}
	return r.setFolderModes(ctx)
}

// step calls fn for one change, if the session's lease is still held.
func (r *restorer) step(ctx context.Context, c Change, fn func(ctx context.Context, c Change) error) error {
	if err := errors.Join(ctx.Err(), r.checkStillHeld(ctx)); err != nil {
		return err
	}
	r.history.cfg.Point("undo:step")
	err := fn(ctx, c)
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errDamaged):
		r.leftReasons[c.Path] = reasonCopyDamaged
	default:
		r.leftReasons[c.Path] = reasonNotAllowed
	}
	return nil
}

// checkStillHeld returns an error if the session's lease is no longer held.
func (r *restorer) checkStillHeld(ctx context.Context) error {
	if r.checkLease == nil {
		return nil
	}
	return r.checkLease(ctx)
}

// plan decides which changes to undo: those at paths that are still as the turn left them.
func (r *restorer) plan(ctx context.Context, changes []Change) error {
	folders := map[string]bool{".": true} // whether a path will be a folder
	for _, c := range changes {
		now, err := r.currentEntry(ctx, c)
		if err != nil {
			return err
		}
		was := c.From
		c.From = was.withoutRights()
		why := ""
		if c.ChangedByOthers || !sameEntry(now, was) {
			why = r.reasonToLeave(c, now, folders)
		}
		switch {
		case why != "":
			r.leftReasons[c.Path] = why
		case (sameEntry(now, c.From) || sameEntry(now, was)) && !r.isResumed:
			continue // somebody has already put it back
		default:
			r.todo = append(r.todo, c)
		}
		if why == "" {
			folders[string(c.Path)] = c.From != nil && c.From.Mode.IsDir()
		} else {
			folders[string(c.Path)] = now != nil && now.Mode.IsDir()
		}
	}
	return nil
}

// reasonToLeave returns why a change is not undone; "" if it is.
func (r *restorer) reasonToLeave(c Change, now *Entry, folders map[string]bool) string {
	switch {
	case c.ChangedByOthers:
		return reasonChanged
	case sameEntry(now, c.From):
		return ""
	case !sameEntry(now, c.To) && !(r.isResumed && r.mayBeHalfDone(c, now)):
		return reasonChanged
	case c.From == nil:
		return ""
	case !r.isFolder(path.Dir(string(c.Path)), folders):
		return reasonFolderChanged
	case now != nil && now.sameContent(*c.From):
		return ""
	}
	switch mode := c.From.Mode; {
	case mode.IsDir() || mode&fs.ModeSymlink != 0:
		return ""
	case !mode.IsRegular():
		return reasonSpecialFile
	case c.From.NoCopyReason != "":
		return c.From.NoCopyReason
	case !c.From.HasCopy:
		return reasonCopyDamaged
	}
	return ""
}

// mayBeHalfDone reports whether a path may be in a state that an interrupted restorer has left.
func (r *restorer) mayBeHalfDone(c Change, now *Entry) bool {
	return now == nil || now.Mode.IsDir() && (c.From != nil && c.From.Mode.IsDir() || c.To != nil && c.To.Mode.IsDir())
}

// isFolder reports whether a path is a folder, or will be.
func (r *restorer) isFolder(name string, folders map[string]bool) bool {
	if is, known := folders[name]; known {
		return is
	}
	info, err := r.root.Lstat(name)
	folders[name] = err == nil && info.IsDir() && r.isFolder(path.Dir(name), folders)
	return folders[name]
}

// currentEntry returns the current entry of a path; nil if there is nothing. If the file there may be the
// one that the record describes, the entry contains its checksum.
func (r *restorer) currentEntry(ctx context.Context, c Change) (*Entry, error) {
	e, err := r.stat(string(c.Path))
	if err != nil {
		return nil, ctx.Err() //nolint:nilerr // a path that does not exist, or cannot be reached, is not as the turn left it
	}
	if mode, opened := r.modes[string(c.Path)]; opened && e.Mode.IsDir() {
		e.Mode = mode
	}
	if !e.Mode.IsRegular() {
		return &e, nil
	}
	for _, known := range []*Entry{c.To, c.From} {
		if known != nil && known.Sum != "" && known.Size == e.Size {
			read, err := r.history.readFile(ctx, r.root, string(c.Path), nil)
			return &read, err
		}
	}
	return &e, nil
}

// stat returns a path's data from the filesystem. It also returns fs.ErrNotExist if the path would lead
// through a link, or through something that is not a folder.
func (r *restorer) stat(name string) (Entry, error) {
	if !r.isFolder(path.Dir(name), map[string]bool{".": true}) {
		return Entry{}, fs.ErrNotExist
	}
	return statAt(r.root, name)
}

// repository returns the .git folder that contains a path; "" if there is none.
func repository(name Name) string {
	parts := strings.Split(string(name), "/")
	if i := slices.Index(parts, ".git"); i >= 0 {
		return path.Join(parts[:i+1]...)
	}
	return ""
}

// leaveRepositories leaves each repository as a whole if any part of it must be left.
func (r *restorer) leaveRepositories() {
	broken := map[string]bool{}
	for name := range r.leftReasons {
		broken[repository(name)] = true
	}
	r.todo = slices.DeleteFunc(r.todo, func(c Change) bool {
		in := repository(c.Path)
		if in == "" || !broken[in] {
			return false
		}
		r.leftReasons[c.Path] = reasonRepositoryChanged
		return true
	})
}

// remove deletes what the turn has created, or has put in the place of something else.
func (r *restorer) remove(_ context.Context, c Change) error {
	now, err := r.stat(string(c.Path))
	if errors.Is(err, fs.ErrNotExist) {
		r.restored[c.Path] = true
		return nil
	}
	if err != nil {
		return err
	}
	if c.From != nil && c.From.Mode.Type() == now.Mode.Type() && c.From.Mode&fs.ModeSymlink == 0 {
		return nil // it is changed in place
	}
	if c.From != nil && now.sameContent(*c.From) {
		return nil
	}
	if err := r.makeWritable(path.Dir(string(c.Path))); err != nil {
		return err
	}
	if now.Mode.IsDir() {
		if names, err := listNames(r.root, string(c.Path)); err == nil && len(names) > 0 {
			r.leftReasons[c.Path] = reasonNotEmpty
			return nil
		}
	}
	if err := r.root.Remove(string(c.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(r.modes, string(c.Path)) // what replaces it has its own mode
	r.restored[c.Path] = true
	return nil
}

// makeFolder makes a folder that the turn has removed. Its mode is set at the end.
func (r *restorer) makeFolder(_ context.Context, c Change) error {
	if c.From == nil || !c.From.Mode.IsDir() {
		return nil
	}
	name := string(c.Path)
	if err := r.makeWritable(path.Dir(name)); err != nil {
		return err
	}
	if err := r.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := r.owner.chownFolder(r.root, name); err != nil {
		return err
	}
	r.modes[name] = c.From.Mode
	r.restored[c.Path] = true
	return nil
}

// putBack restores a file, or a link, to its earlier state.
func (r *restorer) putBack(_ context.Context, c Change) (err error) {
	if c.From == nil || c.From.Mode.IsDir() {
		return nil
	}
	name := string(c.Path)
	if !r.isFolder(path.Dir(name), map[string]bool{".": true}) {
		r.leftReasons[c.Path] = reasonFolderChanged
		return nil
	}
	if err := r.makeWritable(path.Dir(name)); err != nil {
		return err
	}
	now, lookErr := r.stat(name)
	switch {
	case c.From.Mode&fs.ModeSymlink != 0:
		err = r.root.Symlink(string(c.From.Link), name)
		if errors.Is(err, fs.ErrExist) && lookErr == nil && now.sameContent(*c.From) {
			err = nil
		}
	case lookErr == nil && now.Mode.IsRegular() && r.hasContent(name, now, *c.From) && !(c.From.HasCopy && r.isShared(name)):
		err = r.root.Chmod(name, c.From.Mode)
	default:
		err = r.replace(name, *c.From)
	}
	if err == nil {
		r.restored[c.Path] = true
	}
	return err
}

// hasContent reports whether the file name, whose entry is now, already has the content that the entry
// want describes.
func (r *restorer) hasContent(name string, now, want Entry) bool {
	if want.Sum != "" && now.Size == want.Size {
		read, err := r.history.readFile(context.Background(), r.root, name, nil)
		return err == nil && read.Sum == want.Sum
	}
	return want.Sum == "" && now.sameContent(want)
}

// isShared reports whether a file has more hard links, whose mode would change with its own.
func (r *restorer) isShared(name string) bool {
	info, err := r.root.Lstat(name)
	return err == nil && hasOtherLinks(info)
}

// replace writes a file from its copy under a temporary name, and renames it.
func (r *restorer) replace(name string, want Entry) (err error) {
	temporary := path.Join(path.Dir(name), r.history.cfg.TemporaryName())
	f, err := r.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = r.history.writeFromCopy(f, want)
	if err == nil {
		err = errors.Join(r.owner.chown(f), f.Chmod(want.Mode))
	}
	if r.syncedFiles++; err == nil && r.syncedFiles <= maxSynced {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if at := time.Unix(0, want.Modified); err == nil {
		err = r.root.Chtimes(temporary, at, at)
	}
	if err == nil {
		err = r.root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(r.root.Remove(temporary)))
	}
	return nil
}

// result returns the lists of the restored paths and of those that were left.
func (r *restorer) result() *Result {
	var res Result
	for _, c := range r.todo {
		if r.restored[c.Path] && r.leftReasons[c.Path] == "" {
			res.Restored = append(res.Restored, RestoredPath{c.Path, c.KindWord(), c.IsDir()})
		}
	}
	for name, why := range r.leftReasons {
		res.Left = append(res.Left, LeftPath{name, why})
	}
	slices.SortFunc(res.Left, func(a, b LeftPath) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return &res
}
