// Package workspace gives each session a directory of its own that no path can leave, by
// means of os.Root.
//
// Every path that a model names goes through a Dir. The kernel refuses a path that leads out of the
// directory, through dots, links or a race; nothing depends on comparing texts. A file is replaced as a
// whole or not at all. Errors contain the path as it was given, and never the directory's place on the
// host.
//
// errors.Is distinguishes a Dir's errors: fs.ErrInvalid is for a path that cannot be used (it leads out,
// is not a regular file, or is too long), fs.ErrNotExist for one that leads to nothing, fs.ErrPermission
// for one that the system refuses, syscall.EFBIG for a file or a folder that is too large for the call,
// ErrQuota for a write that does not fit under the quota, and ErrLate for a write that came too late.
//
// The files, in reading order: workspace.go names and opens the directories; dir.go reads, write.go
// writes, remove.go deletes directories and old.go old files; refusal.go makes the errors; opendir.go
// shares and closes open directories; owner_unix.go decides who owns them; usage.go counts against the
// quota; discard.go removes given files; digest.go and fingerprint.go hash contents, to show whether
// they have changed.
package workspace

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode"
)

// Errors that tell callers what to do next.
var (
	// ErrQuota says that a write would make the directory larger than is allowed.
	ErrQuota = errors.New("the workspace is full")
	// ErrLate says that a write came too late to take effect, and changed nothing.
	ErrLate = errors.New("the write took too long and was not made")
)

// DefaultMaxBytes is the default limit on the content of a session's directory.
const DefaultMaxBytes = 200 << 20

// Config says where the directories are and how much each may hold.
type Config struct {
	// Root is the directory that contains them all. It is created if it is missing.
	Root string
	// Folders maps the name of an agent to the directory that contains those of its sessions in place of
	// Root.
	Folders map[string]string
	// MaxBytes limits the content of each of them; 0 means DefaultMaxBytes.
	MaxBytes int64
	// MaxOpen limits how many of them are kept open while unused; 0 means 256. Each costs one file
	// descriptor.
	MaxOpen int
	// User is the user and the group to whom a session's directory is given, if this process is root and
	// nobody else owns Root. It is the user as whom commands run there. 0 gives nothing.
	User int
	// Missing, if set, returns what a model should read about a file that does not exist, given its name
	// in the directory; "" means nothing.
	Missing func(name string) string
}

// Workspaces gives each session its directory.
type Workspaces struct {
	base        *os.Root
	resolved    string // base's path without symbolic links
	isFixed     bool   // whether every session works directly in base
	maxBytes    int64  // the quota of each directory; 0 if fixed, because the size of a person's own directory is not bounded
	maxOpen     int
	ignoresCase bool // whether the filesystem treats a and A as one name
	missing     func(name string) string
	user        int
	byAgent     map[string]*Workspaces // the Workspaces of agents whose sessions have their directories elsewhere

	mu     sync.Mutex
	dirs   map[string]*openDir // the open directories, by their paths below base
	idle   *list.List          // a list of *openDir that nobody uses, the longest unused first
	closed bool
}

// New opens, and creates if needed, the directories that contain the sessions' directories.
func New(cfg Config) (*Workspaces, error) {
	w, err := newForRoot(cfg)
	if err != nil {
		return nil, err
	}
	w.byAgent = map[string]*Workspaces{}
	for agent, dir := range cfg.Folders {
		own := cfg
		own.Root = dir
		if w.byAgent[agent], err = newForRoot(own); err != nil {
			delete(w.byAgent, agent)
			return nil, errors.Join(&FolderError{Agent: agent, Err: err}, w.Close())
		}
	}
	return w, nil
}

// A FolderError is an error of an agent's directory in Config.Folders.
type FolderError struct {
	Agent string
	Err   error
}

// Error says what is wrong.
func (e *FolderError) Error() string {
	return "open the folder of the agent " + e.Agent + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *FolderError) Unwrap() error { return e.Err }

// newForRoot makes Workspaces with cfg.Root alone, without those in cfg.Folders.
func newForRoot(cfg Config) (*Workspaces, error) {
	if err := os.MkdirAll(cfg.Root, 0o700); err != nil {
		return nil, fmt.Errorf("make the workspaces' directory: %w", err)
	}
	w, err := open(cfg.Root)
	if err != nil {
		return nil, err
	}
	if w.maxBytes = cfg.MaxBytes; w.maxBytes <= 0 {
		w.maxBytes = DefaultMaxBytes
	}
	w.missing, w.user = cfg.Missing, cfg.User
	if cfg.MaxOpen > 0 {
		w.maxOpen = cfg.MaxOpen
	}
	if os.Geteuid() == 0 && w.user > 0 {
		if err := w.letPass(".", nil); err != nil {
			return nil, errors.Join(fmt.Errorf("let commands reach %s: %w", cfg.Root, err), w.Close())
		}
	}
	if w.ignoresCase, err = foldsCase(w.base); err != nil {
		return nil, errors.Join(fmt.Errorf("try out %s: %w", cfg.Root, err), w.Close())
	}
	if err := w.clearTrash(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// OpenFixed makes every session work in one given directory, which must exist and whose size is not
// limited.
func OpenFixed(dir string) (*Workspaces, error) {
	w, err := open(dir)
	if err != nil {
		return nil, err
	}
	w.isFixed = true
	return w, nil
}

func open(dir string) (*Workspaces, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	base, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	direct, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open workspace: %w", err), base.Close())
	}
	return &Workspaces{base: base, resolved: direct, maxOpen: 256, dirs: map[string]*openDir{}, idle: list.New()}, nil
}

// foldsCase finds out whether the filesystem treats names that differ only in case as the same name.
func foldsCase(base *os.Root) (bool, error) {
	name := temporaryName()
	f, err := base.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false, err
	}
	_, statErr := base.Lstat(strings.ToUpper(name))
	return statErr == nil, errors.Join(f.Close(), base.Remove(name))
}

// Open returns a session's directory. If it is missing, Open creates it, readable by its owner alone. A
// Dir need not be closed. The key must have the form of sessions.Key.
func (w *Workspaces) Open(key string) (*Dir, error) {
	d, err := w.dirOf(key)
	if err != nil {
		return nil, err
	}
	s, err := d.workspaces.acquire(d.name)
	if err != nil {
		return nil, err
	}
	d.workspaces.release(s)
	return d, nil
}

// OpenExisting returns a session's directory as Open does, but creates none: if it is missing, the error
// is fs.ErrNotExist.
func (w *Workspaces) OpenExisting(key string) (*Dir, error) {
	d, err := w.dirOf(key)
	if err != nil {
		return nil, err
	}
	if !d.workspaces.isOpen(d.name) {
		switch _, err := d.workspaces.base.Lstat(d.name); {
		case errors.Is(err, fs.ErrNotExist): // most sessions have none, and each turn asks
			return nil, fs.ErrNotExist
		case err != nil:
			return nil, fmt.Errorf("open workspace: %w", sanitized("", err))
		}
	}
	return w.Open(key)
}

// dirOf returns a session's directory, which may be missing.
func (w *Workspaces) dirOf(key string) (*Dir, error) {
	w = w.workspacesOf(key)
	name, err := w.directoryName(key)
	if err != nil {
		return nil, err
	}
	return &Dir{workspaces: w, name: name}, nil
}

// workspacesOf returns the Workspaces that contain the directory of a session, given its key or its
// directory's name, both of which begin with the agent.
func (w *Workspaces) workspacesOf(key string) *Workspaces {
	agent := key
	if end := strings.IndexAny(key, ":/"); end >= 0 {
		agent = key[:end]
	}
	if own, ok := w.byAgent[agent]; ok {
		return own
	}
	return w
}

// Close closes the directories. Running operations finish; later ones fail.
func (w *Workspaces) Close() error {
	var errs []error
	for _, own := range w.byAgent {
		errs = append(errs, own.Close())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return errors.Join(append(errs, w.closeIdle(0), w.base.Close())...)
}

// maxName is the maximum length of a directory's name, in bytes. It is well below what filesystems allow
// (255, and 143 on some that encrypt).
const maxName = 140

// directoryName returns a session's directory below base: <agent>/<rest of the key>.
func (w *Workspaces) directoryName(key string) (string, error) {
	if w.isFixed {
		return ".", nil
	}
	agent, rest, ok := strings.Cut(key, ":")
	if !ok || rest == "" || len(key) > 256 {
		return "", fmt.Errorf("open workspace: %q is not a session key", shortenPath(key))
	}
	parts := strings.Split(key, ":")
	for i, part := range parts {
		if part == "" && i == 3 && len(parts) == 5 {
			continue // empty if one person's conversation is in no thread
		}
		if part == "" || part == "." || part == ".." || strings.ContainsFunc(part, func(r rune) bool { return !isKeyRune(r) }) {
			return "", fmt.Errorf("open workspace: %q is not a session key", shortenPath(key))
		}
	}
	return filepath.Join(w.component(agent), w.component(rest)), nil
}

// isKeyRune reports whether a session's key may contain this character.
func isKeyRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._@-%", r)
}

// component converts a part of a session's key into the name of a directory. A part that is too long, or
// that contains capitals on a filesystem that ignores case, gets "~" and its hash at the end. No key
// contains a "~", so no two keys share a directory.
func (w *Workspaces) component(part string) string {
	folded := w.ignoresCase && strings.ContainsFunc(part, unicode.IsUpper)
	if len(part) <= maxName && !folded {
		return part
	}
	sum := sha256.Sum256([]byte(part))
	return part[:min(len(part), maxName-17)] + "~" + hex.EncodeToString(sum[:8])
}
