package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"
)

// ListOld lists the files directly in a folder of a session's directory that were last written before a
// time, sorted by name. It skips links, temporary files, and a folder that is reached through a link. If the
// session has no directory, it does not create one.
func (w *Workspaces) ListOld(ctx context.Context, key, folder string, before time.Time) (old []string, err error) {
	err = w.ifExists(key, func(s *openDir) error {
		if !s.isFolder(folder) {
			return nil
		}
		dir, err := s.root.Open(folder)
		if err != nil {
			return ignoreGone(err)
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
		for {
			names, err := dir.Readdirnames(1024)
			for _, name := range names {
				if err := ctx.Err(); err != nil {
					return err
				}
				if IsTemporary(name) {
					continue
				}
				if name = path.Join(folder, name); s.isOld(name, before) {
					old = append(old, name)
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return ignoreGone(err)
			}
		}
	})
	slices.Sort(old)
	return old, err
}

// DiscardOld removes the files at these paths that are still older than before, and returns their number.
// A file that was written again meanwhile stays, and so does one that is reached through a link.
func (w *Workspaces) DiscardOld(ctx context.Context, key string, paths []string, before time.Time) (n int, err error) {
	err = w.ifExists(key, func(s *openDir) error {
		for _, name := range paths {
			if err := ctx.Err(); err != nil {
				return err
			}
			gone, err := s.discardOld(name, before)
			if err != nil {
				return err
			}
			if gone {
				n++
			}
		}
		return nil
	})
	return n, err
}

// discardOld removes one file if it is old, and reports whether it has done so. This process writes nothing between the check of the age and
// the removal; another process has only that moment to write.
func (s *openDir) discardOld(name string, before time.Time) (bool, error) {
	s.writes.Lock()
	defer s.writes.Unlock()
	if !s.isFolder(path.Dir(name)) || !s.isOld(name, before) {
		return false, nil
	}
	info, err := s.root.Lstat(name)
	if err == nil {
		err = s.root.Remove(name)
	}
	if err != nil {
		return false, ignoreGone(err)
	}
	was := usageOf(info)
	s.usage.add(usage{-was.bytes, -1})
	return true, nil
}

func (s *openDir) isOld(name string, before time.Time) bool {
	info, err := s.root.Lstat(name)
	return err == nil && info.Mode().IsRegular() && info.ModTime().Before(before)
}

// isFolder reports whether a name and all folders above it are folders: a command may have replaced one
// with a link.
func (s *openDir) isFolder(name string) bool {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if info, err := s.root.Lstat(name[:i]); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// ifExists calls operate with a session's directory, if it exists. It skips a person's own directory,
// which its owner cleans up.
func (w *Workspaces) ifExists(key string, operate func(*openDir) error) error {
	if w = w.workspacesOf(key); w.isFixed {
		return nil
	}
	name, err := w.directoryName(key)
	if err != nil {
		return err
	}
	if _, err := w.base.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := w.acquire(name)
	if err != nil {
		return err
	}
	defer w.release(s)
	return sanitized("", operate(s))
}
