package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Bounds of one path and one listing.
const (
	maxPath    = 4096
	maxPart    = 255
	maxEntries = 100_000
)

// A Dir is one session's directory. It may be used from many goroutines. It is
// an fs.FS, fs.ReadDirFS and fs.StatFS, and every method takes a path as Name does.
type Dir struct {
	all   *Workspaces
	name  string       // below all.base
	until time.Time    // the last moment at which a write may take effect; zero is any
	ended func() error // if set, says when the work is to end
}

// Until is the same directory for one who has it for a limited time only. A
// write that would take effect after t is refused with ErrLate and changes
// nothing: a process that was paused must not undo what its successor has
// written.
func (d *Dir) Until(t time.Time) *Dir {
	return &Dir{all: d.all, name: d.name, until: t, ended: d.ended}
}

// late tells whether the time is over, also where the clock that only grows
// has stood still with the machine.
func (d *Dir) late() bool {
	now := time.Now()
	return !d.until.IsZero() && (now.After(d.until) || now.Round(0).After(d.until.Round(0)))
}

// Path is where the directory lies on the host: for a sandbox that is to show
// it to a child, never for a model.
func (d *Dir) Path() string { return filepath.Join(d.all.base.Name(), d.name) }

// Name makes of a path, as a model gives it, a name as fs.FS takes them:
// relative, clean, "." for the directory itself. An absolute path that points
// into the directory is taken as relative to it.
func (d *Dir) Name(path string) (string, error) {
	switch {
	case path == "":
		return "", refuse("the path is empty: give one relative to the workspace")
	case len(path) > maxPath:
		return "", refuse("the path has %d bytes, at most %d are allowed", len(path), maxPath)
	case strings.ContainsRune(path, 0):
		return "", refuse("the path holds a NUL byte")
	case path == "~" || strings.HasPrefix(path, "~/"):
		return "", refuse("%q: ~ is not expanded, give a path relative to the workspace", shown(path))
	}
	name := filepath.Clean(path)
	if filepath.IsAbs(name) {
		inside, ok := d.below(name)
		if !ok {
			return "", refuse("%q is outside the workspace: give a path relative to it", shown(path))
		}
		name = inside
	}
	if !filepath.IsLocal(name) {
		return "", refuse("%q leads out of the workspace: give a path inside it", shown(path))
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxPart {
			return "", refuse("a name in the path has %d bytes, at most %d are allowed", len(part), maxPart)
		}
		if IsTemporary(part) {
			return "", refuse("%q is a name that only what is being written has: give another", part)
		}
	}
	return filepath.ToSlash(name), nil
}

func (d *Dir) below(abs string) (string, bool) {
	for _, base := range []string{d.all.base.Name(), d.all.real} {
		rel, err := filepath.Rel(filepath.Join(base, d.name), abs)
		if err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// do runs an operation on the open directory.
func (d *Dir) do(path string, operate func(s *space, name string) error) error {
	name, err := d.Name(path)
	if err != nil {
		return err
	}
	s, err := d.all.acquire(d.name)
	if err != nil {
		return err
	}
	defer d.all.release(s)
	return sanitised(name, operate(s, name))
}

// Open opens a regular file for reading. It never waits: a FIFO, a socket, a
// device and a file with further hard links (which may belong to somebody
// else) are refused.
func (d *Dir) Open(path string) (fs.File, error) {
	var file fs.File
	err := d.do(path, func(s *space, name string) (err error) {
		file, _, err = s.open(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (s *space) open(name string) (*reading, fs.FileInfo, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &reading{f: f, name: name}, info, nil
}

// reading is an open file whose errors do not name the host's path.
type reading struct {
	f    *os.File
	name string
}

func (r *reading) Stat() (fs.FileInfo, error) { return r.f.Stat() }

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.f.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, sanitised(r.name, err)
}

func (r *reading) Close() error { return sanitised(r.name, r.f.Close()) }

// regular refuses all but a regular file with a single name.
func regular(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return refuse("%q is a directory, not a file", shown(name))
	case mode&fs.ModeSymlink != 0:
		return refuse("%q is a symbolic link: give the path of the file that it points to", shown(name))
	case !mode.IsRegular():
		return refuse("%q is a %s, not a regular file", shown(name), kind(mode))
	case shared(info):
		return refuse("%q has further hard links, which may lie outside the workspace: make a copy of it under a new name", shown(name))
	}
	return nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// Stat describes what a path leads to.
func (d *Dir) Stat(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := d.do(path, func(s *space, name string) (err error) {
		info, err = s.root.Stat(name)
		return err
	})
	return info, err
}

// ReadDir lists a directory by name, without the traces of writes under way.
func (d *Dir) ReadDir(path string) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	err := d.do(path, func(s *space, name string) (err error) {
		entries, err = s.readDir(name)
		return err
	})
	return entries, err
}

func (s *space) readDir(name string) (entries []fs.DirEntry, err error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		batch, err := f.ReadDir(1024)
		entries = append(entries, slices.DeleteFunc(batch, func(e fs.DirEntry) bool { return IsTemporary(e.Name()) })...)
		switch {
		case errors.Is(err, io.EOF):
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return entries, nil
		case err != nil:
			return nil, err
		case len(entries) > maxEntries:
			return nil, tooBig("%q holds more than %d entries, too many to list", shown(name), maxEntries)
		}
	}
}
