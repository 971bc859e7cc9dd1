package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// Limits for the path of a file that is written. Code that walks through a directory, or copies it to
// another place, relies on them. Earlier releases allowed deeper paths; such files can still be read.
const (
	maxDepth       = 32
	maxWrittenPath = 1024 // bytes
)

// Write replaces a file's content. It creates the file and its directories if they are missing. A reader
// finds the whole old content or the whole new one, even after a crash; only a power failure may bring
// the old one back.
func (d *Dir) Write(path string, content []byte) error {
	return d.withOpenDir(path, func(s *openDir, name string) error {
		s.writes.Lock()
		defer s.writes.Unlock()
		info, err := s.checkTarget(name)
		if err != nil {
			return err
		}
		return s.replace(d, name, info, content)
	})
}

// Update replaces a file's content with what change returns for it. No other write of this process comes
// in between. It calls change with nil if the file is missing, and refuses a file longer than limit
// bytes. It returns an error of change unchanged, and then writes nothing.
func (d *Dir) Update(path string, limit int64, change func(old []byte) ([]byte, error)) error {
	err := d.withOpenDir(path, func(s *openDir, name string) error {
		s.writes.Lock()
		defer s.writes.Unlock()
		info, err := s.checkTarget(name)
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
			return plainError{err}
		}
		return s.replace(d, name, info, content)
	})
	if own, ok := errors.AsType[plainError](err); ok {
		return own.error
	}
	return err
}

// Create creates a file that does not exist yet, with its directories, and opens it; if there is one, the error is
// fs.ErrExist. What is written to it does not count against the quota until the directory is measured again, so the
// caller must limit it. The open file stays the same, whatever happens to its name.
func (d *Dir) Create(path string) (f *os.File, err error) {
	err = d.withOpenDir(path, func(s *openDir, name string) (err error) {
		s.writes.Lock()
		defer s.writes.Unlock()
		info, err := s.checkTarget(name)
		if err != nil {
			return err
		}
		if info != nil {
			return plainError{fs.ErrExist}
		}
		if err := s.replace(d, name, nil, nil); err != nil {
			return err
		}
		f, err = s.root.OpenFile(name, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		return err
	})
	if own, ok := errors.AsType[plainError](err); ok {
		err = own.error
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove removes a regular file. It does nothing if there is none.
func (d *Dir) Remove(path string) error {
	return d.withOpenDir(path, func(s *openDir, name string) error {
		s.writes.Lock()
		defer s.writes.Unlock()
		info, err := s.checkTarget(name)
		if err != nil || info == nil {
			return err
		}
		if d.isLate() {
			return ErrLate
		}
		if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		was := usageOf(info)
		s.usage.add(usage{-was.bytes, -1})
		return nil
	})
}

// checkTarget returns the FileInfo of the file that a write is to replace, nil if there is none, and an
// error if the path must not be written.
func (s *openDir) checkTarget(name string) (fs.FileInfo, error) {
	if len(name) > maxWrittenPath {
		return nil, refusalf("the path has %d bytes, at most %d are allowed for a file that is written: give a shorter one", len(name), maxWrittenPath)
	}
	if depth := strings.Count(name, "/") + 1; depth > maxDepth {
		return nil, refusalf("the path has %d names, at most %d are allowed for a file that is written: give one in fewer folders", depth, maxDepth)
	}
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return info, checkRegular(name, info)
}

// readAll reads a file of at most limit bytes.
func (s *openDir) readAll(name string, limit int64) (content []byte, err error) {
	file, info, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info.Size() <= limit {
		content = make([]byte, 0, info.Size()+bytes.MinRead)
		buffer := bytes.NewBuffer(content)
		_, err = buffer.ReadFrom(io.LimitReader(file, limit+1)) // the file may grow meanwhile
		content = buffer.Bytes()
	}
	if size := max(info.Size(), int64(len(content))); err == nil && size > limit {
		err = tooBigError("%q has %d bytes, at most %d can be worked on", shortenPath(name), size, limit)
	}
	return content, err
}

// replace writes a temporary file and renames it, if the quota allows that. It makes the folders that are missing. old
// describes the file that it replaces; nil if there is none.
func (s *openDir) replace(d *Dir, name string, old fs.FileInfo, content []byte) (err error) {
	more := usage{roundUp(int64(len(content))), 1}
	if old != nil {
		was := usageOf(old)
		more = usage{more.bytes - was.bytes, 0}
	}
	dir := path.Dir(name)
	above := usageOfFolders(s.missingFolders(dir))
	all := more
	all.add(above)
	if err := s.reserve(d, all); err != nil {
		return err
	}
	if above.items > 0 {
		if err := s.makeFolders(dir); err != nil {
			return err
		}
		s.usage.add(above)
	}
	if err := s.sweep(dir); err != nil {
		return err
	}
	temporary := path.Join(dir, temporaryName())
	if err := s.create(temporary, old, content); err != nil {
		return errors.Join(err, s.removeIfThere(temporary))
	}
	// This is checked as late as possible: the next call gives the file its name.
	if d.isLate() {
		return errors.Join(ErrLate, s.removeIfThere(temporary))
	}
	if err := s.root.Rename(temporary, name); err != nil {
		return errors.Join(err, s.removeIfThere(temporary))
	}
	s.usage.add(more)
	return nil
}

// missingFolders counts the folders of a path that do not exist yet.
func (s *openDir) missingFolders(dir string) int {
	for n := 0; ; n++ {
		if dir == "." {
			return n
		}
		if _, err := s.root.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return n // if the path cannot be used for another reason, the write returns that error
		}
		dir = path.Dir(dir)
	}
}

// makeFolders makes the folders of a path that do not exist yet.
func (s *openDir) makeFolders(dir string) error {
	if s.owner == nil {
		return s.root.MkdirAll(dir, 0o755)
	}
	if _, err := s.root.Lstat(dir); dir == "." || !errors.Is(err, fs.ErrNotExist) {
		return nil // if it is not a folder, the write returns that error
	}
	if err := s.makeFolders(path.Dir(dir)); err != nil {
		return err
	}
	if err := s.root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.owner.takeFolder(s.root, dir)
}

// create writes a new file. If old is set, the file gets old's permissions.
func (s *openDir) create(name string, old fs.FileInfo, content []byte) error {
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm()) // the umask does not apply: the file keeps its mode
	}
	if err == nil {
		err = s.ownerInPlaceOf(old).chown(f)
	}
	if err == nil {
		err = f.Sync() // before it gets its name: otherwise a power failure could leave an empty file under that name
	}
	return errors.Join(err, f.Close())
}

// ownerInPlaceOf returns the owner for a file that replaces another, if old is set. In a person's own
// directory, root's files stay root's.
func (s *openDir) ownerInPlaceOf(old fs.FileInfo) *owner {
	if s.owner == nil || old == nil {
		return s.owner
	}
	if of := ownerOf(old); of != nil || s.isFixed {
		return of
	}
	return s.owner
}

func (s *openDir) removeIfThere(temporary string) error {
	if err := s.root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// A file that is being written, and a directory that is being removed, has a temporary name with 26
// random characters. Listings omit such names, and Name refuses them. If a crash leaves such a file
// behind, sweep removes it once it is older than any write can be.
const (
	temporaryPrefix = ".parley-"
	temporarySuffix = ".tmp"
	staleAfter      = 10 * time.Minute
)

func temporaryName() string {
	return temporaryPrefix + strings.ToLower(rand.Text()) + temporarySuffix
}

// Notes is the folder of a session's directory in which the agent keeps its own notes.
const Notes = ".agent"

// IsNotes reports whether a path is the folder of the agent's notes, or a file that is being written.
// Neither is part of the session's own work.
func IsNotes(name string) bool { return name == Notes || IsTemporary(path.Base(name)) }

// TemporaryName returns a new name of the form that temporary files have, for code that writes into a
// session's directory without a Dir. If a crash leaves such a file behind, it is recognized by that form
// and removed.
func TemporaryName() string { return temporaryName() }

// IsTemporary reports whether a name is a temporary one, of a file that is being written
// or a directory that is being removed.
func IsTemporary(name string) bool {
	text, begins := strings.CutPrefix(name, temporaryPrefix)
	text, ends := strings.CutSuffix(text, temporarySuffix)
	const characters = "abcdefghijklmnopqrstuvwxyz234567" // of rand.Text, in lower case
	return begins && ends && len(text) == 26 && strings.Trim(text, characters) == ""
}

// sweep removes the temporary files that a crash left in a directory, the first time something is written
// there. It keeps those younger than staleAfter, and looks at no more than maxEntries names.
func (s *openDir) sweep(dir string) (err error) {
	if s.sweptFolders[dir] {
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
		if !IsTemporary(name) {
			continue
		}
		name = path.Join(dir, name)
		// A command may have created something else with that name, which cannot be removed this way.
		if info, err := s.root.Lstat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAfter {
			if err := s.removeIfThere(name); err != nil {
				return err
			}
		}
	}
	if s.sweptFolders == nil || len(s.sweptFolders) > 1024 { // sweeping twice does no harm
		s.sweptFolders = map[string]bool{}
	}
	s.sweptFolders[dir] = true
	return nil
}
