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

// The maximum length of a path and of a name within a path, in bytes, and the maximum number of entries
// in a listing.
const (
	maxPath     = 4096
	maxPathPart = 255
	maxEntries  = 100_000
)

// SandboxPath is the path at which commands in a sandbox see a session's directory.
const SandboxPath = "/workspace"

// A Dir is one session's directory. Many goroutines may use it at once. It is an fs.FS, fs.ReadDirFS and
// fs.StatFS, and every method accepts any path that Name accepts.
type Dir struct {
	workspaces     *Workspaces
	name           string       // the directory's path below Workspaces.base
	writableUntil  time.Time    // the last moment at which a write may take effect; zero means no limit
	checkWorkEnded func() error // if set, returns an error once the work has ended; that stops a measurement; see WithContext
}

// WritableUntil returns the same directory for a holder who may write only until t. A write that
// would take effect later is refused with ErrLate and changes nothing: a process that was
// paused must not undo what its successor has written.
func (d *Dir) WritableUntil(t time.Time) *Dir {
	return &Dir{workspaces: d.workspaces, name: d.name, writableUntil: t, checkWorkEnded: d.checkWorkEnded}
}

// isLate reports whether the time for writing (until) has passed. It reads both of Go's clocks: the
// monotonic one stops while the machine sleeps, and the other can be set.
func (d *Dir) isLate() bool {
	now := time.Now()
	return !d.writableUntil.IsZero() && (now.After(d.writableUntil) || now.Round(0).After(d.writableUntil.Round(0)))
}

// Path returns the directory's path on the host. It is for a sandbox, which gives a child process access
// to the directory, and never for a model.
func (d *Dir) Path() string { return filepath.Join(d.workspaces.base.Name(), d.name) }

// Name converts a path that a model gives into a name for fs.FS: relative, clean, and "." for the
// directory itself. It makes an absolute path into the directory relative to it.
func (d *Dir) Name(path string) (string, error) {
	switch {
	case path == "":
		return "", refusalf("the path is empty: give one relative to the workspace")
	case len(path) > maxPath:
		return "", refusalf("the path has %d bytes, at most %d are allowed", len(path), maxPath)
	case strings.ContainsRune(path, 0):
		return "", refusalf("the path holds a NUL byte")
	case path == "~" || strings.HasPrefix(path, "~/"):
		return "", refusalf("%q: ~ is not expanded, give a path relative to the workspace", shortenPath(path))
	}
	name := filepath.Clean(path)
	if filepath.IsAbs(name) {
		inside, ok := d.relativeName(name)
		if !ok {
			return "", refusalf("%q is outside the workspace: give a path relative to it", shortenPath(path))
		}
		name = inside
	}
	if !filepath.IsLocal(name) {
		return "", refusalf("%q leads out of the workspace: give a path inside it", shortenPath(path))
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxPathPart {
			return "", refusalf("a name in the path has %d bytes, at most %d are allowed", len(part), maxPathPart)
		}
		if IsTemporary(part) {
			return "", refusalf("%q is a name that only what is being written has: give another", part)
		}
	}
	return filepath.ToSlash(name), nil
}

// relativeName returns an absolute path relative to the directory; false if it lies
// outside.
func (d *Dir) relativeName(abs string) (string, bool) {
	whole := []string{
		filepath.Join(d.workspaces.base.Name(), d.name), filepath.Join(d.workspaces.resolved, d.name),
		SandboxPath, // the path under which commands, and so the model, know it
	}
	for _, base := range whole {
		rel, err := filepath.Rel(base, abs)
		if err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// withOpenDir opens the directory and calls operate with it, and with path converted to a name in it.
func (d *Dir) withOpenDir(path string, operate func(s *openDir, name string) error) error {
	name, err := d.Name(path)
	if err != nil {
		return err
	}
	s, err := d.workspaces.acquire(d.name)
	if err != nil {
		return err
	}
	defer d.workspaces.release(s)
	return d.workspaces.explainMissing(name, sanitized(name, operate(s, name)))
}

// Open opens a regular file for reading. It never blocks: it refuses FIFOs, sockets and devices. It also
// refuses a file with several hard links, because one of them may be outside the workspace.
func (d *Dir) Open(path string) (fs.File, error) {
	var file fs.File
	err := d.withOpenDir(path, func(s *openDir, name string) (err error) {
		file, _, err = s.open(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (s *openDir) open(name string) (*readFile, fs.FileInfo, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(name, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &readFile{f: f, name: name}, info, nil
}

// A readFile is an open file whose errors do not contain the path on the host.
type readFile struct {
	f    *os.File
	name string
}

func (r *readFile) Stat() (fs.FileInfo, error) { return r.f.Stat() }

func (r *readFile) Read(p []byte) (int, error) {
	n, err := r.f.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, sanitized(r.name, err)
}

func (r *readFile) Close() error { return sanitized(r.name, r.f.Close()) }

// checkRegular refuses everything except a regular file with a single name.
func checkRegular(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return refusalf("%q is a directory, not a file", shortenPath(name))
	case mode&fs.ModeSymlink != 0:
		return refusalf("%q is a symbolic link: give the path of the file that it points to", shortenPath(name))
	case !mode.IsRegular():
		return refusalf("%q is a %s, not a regular file", shortenPath(name), kindOfFile(mode))
	case hasOtherLinks(info):
		return refusalf("%q has further hard links, which may lie outside the workspace: make a copy of it under a new name", shortenPath(name))
	}
	return nil
}

// kindOfFile returns a word for a file that is neither regular nor a directory.
func kindOfFile(mode fs.FileMode) string {
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

// Stat describes the file or directory that a path leads to.
func (d *Dir) Stat(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := d.withOpenDir(path, func(s *openDir, name string) (err error) {
		info, err = s.root.Stat(name)
		return err
	})
	return info, err
}

// ReadDir lists a directory, sorted by name, without temporary files. It refuses one with more than maxEntries
// entries.
func (d *Dir) ReadDir(path string) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	err := d.withOpenDir(path, func(s *openDir, name string) (err error) {
		entries, err = s.readDir(name)
		return err
	})
	return entries, err
}

func (s *openDir) readDir(name string) (entries []fs.DirEntry, err error) {
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
			return nil, tooBigError("%q holds more than %d entries, too many to list", shortenPath(name), maxEntries)
		}
	}
}
