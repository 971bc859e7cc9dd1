package snapshots

import (
	"context"
	"errors"
	"io/fs"
	"slices"
)

// unlockFolders lets this process look into the folders that the turn has locked and nobody has touched since.
// At the end they get these modes again, or those from before the turn.
func (r *restorer) unlockFolders(ctx context.Context, changes []Change) error {
	for _, c := range changes { // a folder comes before its content
		if c.To == nil || !c.To.Mode.IsDir() || c.To.Mode.Perm()&0o500 == 0o500 {
			continue
		}
		name := string(c.Path)
		if now, err := r.stat(name); err != nil || now.Mode != c.To.Mode {
			continue
		}
		if err := r.checkStillHeld(ctx); err != nil {
			return err
		}
		if r.root.Chmod(name, c.To.Mode|0o700) == nil { // if that fails, its content is left as it is
			r.modes[name] = c.To.Mode
		}
	}
	return nil
}

// findUnlocked finds the folders that this undo had opened (see unlock, makeWritable) when it was
// interrupted, so that their modes are restored at the end.
func (r *restorer) findUnlocked() {
	if r.treeBefore == nil {
		return
	}
	for name, e := range r.treeBefore.Entries {
		if !e.Mode.IsDir() || e.Mode.Perm()&0o700 == 0o700 {
			continue
		}
		if now, err := r.stat(string(name)); err == nil && now.Mode == e.Mode|0o700 {
			r.modes[string(name)] = e.Mode
		}
	}
}

// makeWritable lets this process write into a folder. The folder's mode is restored at the end.
func (r *restorer) makeWritable(folder string) error {
	if _, known := r.modes[folder]; known {
		return nil
	}
	info, err := r.root.Lstat(folder)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o300 == 0o300 || !info.IsDir() {
		return nil
	}
	r.modes[folder] = info.Mode() & keptMode
	return r.root.Chmod(folder, info.Mode()|0o700)
}

// setFolderModes gives folders their final modes; the content of a folder comes before the folder.
func (r *restorer) setFolderModes(ctx context.Context) error {
	var names []string
	for name := range r.modes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if err := r.checkStillHeld(ctx); err != nil {
			return err
		}
		if err := r.root.Chmod(name, r.modes[name]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.leftReasons[Name(name)] = reasonNotAllowed
		}
	}
	return nil
}
