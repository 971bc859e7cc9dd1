package outgoing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Release removes a message's reference to a folder, after the message was sent or given up. With its
// last reference the folder is removed too. If there is no such reference, Release does nothing.
func (s *Store) Release(ref, message string) error {
	dir, err := folderOf(ref)
	if err != nil {
		return nil //nolint:nilerr // there can be nothing with such a name
	}
	if err := s.release(dir, referencePrefix+hashName(message)); err != nil {
		return fmt.Errorf("release files that were to be sent: %w", err)
	}
	return nil
}

func (s *Store) release(dir, reference string) error {
	if err := s.removeIfThere(path.Join(dir, reference)); err != nil {
		return err
	}
	names, err := s.names(dir)
	if err != nil || slices.ContainsFunc(names, isReference) {
		return err
	}
	return s.removeFolder(dir)
}

func isReference(name string) bool { return strings.HasPrefix(name, referencePrefix) }

// removeFolder removes a call's folder, and the session's folder if that is empty now.
func (s *Store) removeFolder(dir string) error {
	if err := s.root.RemoveAll(dir); err != nil {
		return err
	}
	if names, err := s.names(path.Dir(dir)); err != nil || len(names) > 0 {
		return err
	}
	// If a file has come meanwhile the folder is not empty, and stays.
	_ = s.root.Remove(path.Dir(dir))
	return nil
}

// names lists the files in a folder; none if there is no such folder.
func (s *Store) names(dir string) ([]string, error) {
	f, err := s.root.Open(dir)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, ignoreMissing(errors.Join(err, f.Close()))
}

// Remove removes all files of a session, and reports whether there were any.
func (s *Store) Remove(_ context.Context, session string) (bool, error) {
	dir := path.Join(Folder, hashName(session))
	if _, err := s.root.Lstat(dir); err != nil {
		if err = ignoreMissing(err); err != nil {
			return false, fmt.Errorf("remove the files that a session has sent: %w", err)
		}
		return false, nil
	}
	if err := s.root.RemoveAll(dir); err != nil {
		return false, fmt.Errorf("remove the files that a session has sent: %w", err)
	}
	return true, nil
}

// References lists the references of a session's messages to folders, or those of all sessions if session
// is "".
func (s *Store) References(ctx context.Context, session string) ([]Reference, error) {
	var all []Reference
	err := s.eachFolder(ctx, session, func(ref string, names []string) error {
		for _, name := range names {
			if !isReference(name) {
				continue
			}
			r, err := s.readReference(ref, name)
			if err != nil {
				return err
			}
			if r.Message != "" {
				all = append(all, r)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the files to be sent: %w", err)
	}
	return all, nil
}

// readReference reads one reference; it returns the zero Reference if that no longer exists.
func (s *Store) readReference(ref, name string) (r Reference, err error) {
	f, err := s.root.Open(path.Join(Folder, ref, name))
	if err != nil {
		return Reference{}, ignoreMissing(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return Reference{}, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return Reference{}, fmt.Errorf("%s: %w", name, err)
	}
	r.Ref = ref
	return r, nil
}

// eachFolder calls fn for each folder of a session, or of all sessions if session is "", with the names
// of the files in it.
func (s *Store) eachFolder(ctx context.Context, session string, fn func(ref string, names []string) error) error {
	sessions := []string{hashName(session)}
	if session == "" {
		var err error
		if sessions, err = s.names(Folder); err != nil {
			return err
		}
	}
	for _, of := range sessions {
		calls, err := s.names(path.Join(Folder, of))
		if err != nil {
			return err
		}
		for _, call := range calls {
			if err := ctx.Err(); err != nil {
				return err
			}
			ref := path.Join(of, call)
			names, err := s.names(path.Join(Folder, ref))
			if err == nil {
				err = fn(ref, names)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep removes what nobody will release: folders without a reference, and the references for messages
// for which needed returns false, because they were sent, given up or never published. It skips folders
// that were changed after the time before, because they may belong to a call that is still running. It
// returns how much it has removed.
func (s *Store) Sweep(ctx context.Context, before time.Time, needed func(Reference) (bool, error)) (removed int, err error) {
	err = s.eachFolder(ctx, "", func(ref string, names []string) error {
		dir := path.Join(Folder, ref)
		if info, err := s.root.Lstat(dir); err != nil || !info.ModTime().Before(before) {
			return ignoreMissing(err)
		}
		if !slices.ContainsFunc(names, isReference) {
			removed++
			return s.removeFolder(dir)
		}
		for _, name := range names {
			if !isReference(name) {
				continue
			}
			r, err := s.readReference(ref, name)
			if err != nil || r.Message == "" {
				return err
			}
			keep, err := needed(r)
			if err != nil {
				return err
			}
			if !keep {
				removed++
				if err := s.release(dir, name); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return removed, fmt.Errorf("sweep the files to be sent: %w", err)
	}
	return removed, nil
}
