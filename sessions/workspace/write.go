package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// maxFiles bounds how many files a directory may hold for a write to be allowed.
const maxFiles = 200_000

// Write replaces a file's content, making the file and its directories where
// they are missing. Whoever reads, and whoever starts after a crash, finds the
// old content or the new, whole; only a power cut may bring the old one back.
func (d *Dir) Write(path string, content []byte) error {
	return d.do(path, func(s *space, name string) error {
		s.writes.Lock()
		defer s.writes.Unlock()
		info, err := s.target(name)
		if err != nil {
			return err
		}
		return s.replace(d, name, info, content)
	})
}

// Update replaces a file's content by what change makes of it; no other write
// comes between. A file that is missing gives nil, one longer than limit bytes
// is refused. An error of change is returned as it is, and nothing is written.
func (d *Dir) Update(path string, limit int64, change func(old []byte) ([]byte, error)) error {
	err := d.do(path, func(s *space, name string) error {
		s.writes.Lock()
		defer s.writes.Unlock()
		info, err := s.target(name)
		if err != nil {
			return err
		}
		var old []byte
		if info != nil {
			if old, err = s.readAll(name, limit); err != nil {
				return err
			}
		}
		content, err := change(old)
		if err != nil {
			return foreign{err}
		}
		return s.replace(d, name, info, content)
	})
	if own, ok := errors.AsType[foreign](err); ok {
		return own.error
	}
	return err
}

// target looks at what is to be replaced: nil if there is nothing yet.
func (s *space) target(name string) (fs.FileInfo, error) {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return info, regular(name, info)
}

func (s *space) readAll(name string, limit int64) (content []byte, err error) {
	file, info, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info.Size() <= limit {
		content = make([]byte, 0, info.Size()+bytes.MinRead)
		buffer := bytes.NewBuffer(content)
		_, err = buffer.ReadFrom(io.LimitReader(file, limit+1)) // it may grow meanwhile
		content = buffer.Bytes()
	}
	if size := max(info.Size(), int64(len(content))); err == nil && size > limit {
		err = tooBig("%q has %d bytes, at most %d can be worked on", shown(name), size, limit)
	}
	return content, err
}

// replace writes a file beside the old one and gives it its name.
func (s *space) replace(d *Dir, name string, old fs.FileInfo, content []byte) (err error) {
	more := int64(len(content))
	if old != nil {
		more -= occupied(old)
	}
	if err := s.reserve(d.all.maxBytes, more); err != nil {
		return err
	}
	dir := path.Dir(name)
	if dir != "." {
		if err := s.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := s.sweep(dir); err != nil {
		return err
	}
	temporary := path.Join(dir, temporaryName())
	if err := s.create(temporary, old, content); err != nil {
		return errors.Join(err, s.discard(temporary))
	}
	// Asked as late as can be: between this and the new name there is nothing.
	if d.late() {
		return errors.Join(ErrLate, s.discard(temporary))
	}
	if err := s.root.Rename(temporary, name); err != nil {
		return errors.Join(err, s.discard(temporary))
	}
	s.used += more
	return nil
}

func (s *space) create(name string, old fs.FileInfo, content []byte) error {
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm()) // past the umask: a file keeps the mode that it had
	}
	if err == nil {
		err = f.Sync() // before its name: after a power cut it would be empty under it
	}
	return errors.Join(err, f.Close())
}

func (s *space) discard(temporary string) error {
	if err := s.root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// reserve refuses a write that does not fit. The directory is measured before
// the first write; what is written is added up from then on, and before a
// refusal it is measured again: a child may have removed something.
func (s *space) reserve(most, more int64) error {
	if most <= 0 || more <= 0 && s.measured {
		return nil
	}
	fresh := !s.measured
	if fresh {
		if err := s.measure(); err != nil {
			return err
		}
	}
	if s.used+more > most && !fresh {
		if err := s.measure(); err != nil {
			return err
		}
	}
	if more > 0 && s.used+more > most {
		return fmt.Errorf("%w: it holds %d of at most %d bytes, and %d more do not fit: make other files shorter first", ErrQuota, s.used, most, more)
	}
	return nil
}

func (s *space) measure() error {
	var used int64
	files := 0
	err := fs.WalkDir(s.root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		}
		if files++; files > maxFiles {
			return fmt.Errorf("%w: it holds more than %d files", ErrQuota, maxFiles)
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			used += occupied(info)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.used, s.measured = used, true
	return nil
}

// A file that is being written has a name of its own, which listings leave out.
// A crash leaves it behind; what is older than any write takes is swept away.
const (
	temporaryPrefix = ".parley-"
	temporarySuffix = ".tmp"
	staleAfter      = 10 * time.Minute
)

func temporaryName() string {
	return temporaryPrefix + strings.ToLower(rand.Text()) + temporarySuffix
}

func isTemporary(name string) bool {
	return strings.HasPrefix(name, temporaryPrefix) && strings.HasSuffix(name, temporarySuffix)
}

// sweep clears a directory of what a crash left, the first time that something
// is written there.
func (s *space) sweep(dir string) (err error) {
	if s.swept[dir] {
		return nil
	}
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	names, err := f.Readdirnames(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, name := range names {
		if !isTemporary(name) {
			continue
		}
		name = path.Join(dir, name)
		if info, err := s.root.Lstat(name); err == nil && time.Since(info.ModTime()) > staleAfter {
			if err := s.discard(name); err != nil {
				return err
			}
		}
	}
	if s.swept == nil || len(s.swept) > 1024 { // bounded: sweeping twice does no harm
		s.swept = map[string]bool{}
	}
	s.swept[dir] = true
	return nil
}
