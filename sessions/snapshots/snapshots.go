// Package snapshots keeps what turns change in a workspace, so that it can be listed and undone.
//
// Before the first call of a turn that may change files, Begin walks the workspace and
// writes down its tree: each path with its mode, size, sum, link and what the system says
// of it. Of each file whose content is not kept yet it makes a copy. When the turn ends, or
// waits for people, End walks once more and notes what differs. So what somebody else has
// changed before or after is none of the turn's; what is changed by others while it runs
// is. Undo puts back what a turn found, but not where somebody has changed the same path
// since: that is left, and named. An undo is recorded as a turn is, so it can be undone.
//
// Walking is cheap: a file is read again only if its size, inode, time of modification or
// time of change differs from the last tree, or if it had been changed so shortly before
// that tree that a further change need not show in its times. A copy is made before a
// change alone: what a turn has made new is read at its end, and copied once another turn
// may change it.
//
// A repository of git is files like others, and what a turn has done to it is undone with
// the rest. But half of such a change would break it: if anything in a folder .git cannot
// be put back, all of that folder is left as it is.
//
// All of it lies in one folder of the workspaces' root, which no session's directory can
// be and no tool reaches, below ~undo/SESSION/DIRECTORY, both hashed:
//
//	tree-SUM     the tree of a workspace; never changed
//	latest       the name of the newest tree, and how many bytes the copies have
//	turn-N-HASH  what one turn has changed, or the tree that it has found while it runs
//	kept-SUM     the copy of a file, by the SHA-256 of its content
//
// Each is written beside its place and then given its name. Copies and trees come before
// the turn that names them, so a process may die anywhere: a turn that was cut off has its
// tree, and Undo works from it. Undo itself, cut off, goes on when it is asked again by the
// same id. Copies are not waited for on the disk, so a power cut can spoil one: each is
// checked by its sum before it is used. Only the holder of the session's lease calls Begin,
// End and Undo.
//
// The files, in reading order: snapshots.go has the store and its words, entry.go what is
// written down of a file, walk.go the walk, copies.go the copies, record.go what is kept
// of turns, undo.go what is put back and restore.go how, prune.go what goes when.
package snapshots

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Errors that callers decide on.
var (
	// ErrNone says that there is nothing to undo, or not under that number.
	ErrNone = errors.New("there is nothing to undo")
	// ErrNotTheirs says that somebody else has asked for what is to be undone.
	ErrNotTheirs = errors.New("somebody else has asked for that")
	// ErrTooMany says that a workspace has more files than are kept.
	ErrTooMany = errors.New("the workspace has too many files")
)

// Folder is the name in the workspaces' root under which all of it lies.
const Folder = "~undo"

// MostItems is how many files and folders a workspace may have for its history to be kept.
const MostItems = 50_000

// Config says what is kept.
type Config struct {
	// Root is the directory of the workspaces, which must exist.
	Root string
	// MaxBytes bounds the copies of one workspace; a file of more than a quarter of it is
	// not kept.
	MaxBytes int64
	// Turns is how many turns of a session are kept; 0 keeps none.
	Turns int
	// MaxAge is how long they are.
	MaxAge time.Duration
	// Leave picks paths that are none of the history. A folder is left with all in it.
	Leave func(path string) bool
	// Temporary makes the name of a file that is being written in a workspace.
	Temporary func() string
	// Point, if set, is called at each line of an undo at which a test may kill the process.
	Point func(name string)
}

// A Store keeps the histories of workspaces. Several processes may use the same one.
type Store struct {
	cfg  Config
	root *os.Root

	cache cache
	mu    sync.Mutex
	locks map[string]*lock // by folder
}

type lock struct {
	sync.Mutex
	users int
}

// Open opens the store. Nothing is made before the first turn changes something.
func Open(cfg Config) (*Store, error) {
	root, err := os.OpenRoot(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("open what turns have changed: %w", err)
	}
	if cfg.Leave == nil {
		cfg.Leave = func(string) bool { return false }
	}
	if cfg.Point == nil {
		cfg.Point = func(string) {}
	}
	return &Store{cfg: cfg, root: root, locks: map[string]*lock{}}, nil
}

// Close closes the store.
func (s *Store) Close() error { return s.root.Close() }

// A Place is a session's workspace.
type Place struct {
	Session string
	Dir     string // on this machine
	// Own says that Dir is a person's own, which has a history of its own in the session.
	Own bool
}

func (p Place) folder() string {
	own := ""
	if p.Own {
		own = p.Dir
	}
	return path.Join(sessionFolder(p.Session), hashed(own))
}

func sessionFolder(session string) string { return path.Join(Folder, hashed(session)) }

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// A desk is the work on one place's history.
type desk struct {
	*Store
	place Place
	dir   *os.Root // the history's folder; nil while there is none
}

// at gives the history of a place to one caller at a time.
func (s *Store) at(p Place) (d *desk, leave func(), err error) {
	folder := p.folder()
	unlock := s.lock(folder)
	d = &desk{Store: s, place: p}
	if d.dir, err = s.root.OpenRoot(folder); err != nil {
		d.dir, err = nil, ignoreMissing(err)
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return d, func() {
		if d.dir != nil {
			_ = d.dir.Close() // a descriptor of a folder holds nothing that could be lost
		}
		unlock()
	}, nil
}

func (s *Store) lock(folder string) (unlock func()) {
	s.mu.Lock()
	l, ok := s.locks[folder]
	if !ok {
		l = &lock{}
		s.locks[folder] = l
	}
	l.users++
	s.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.locks, folder)
		}
	}
}

// make makes the history's folder.
func (d *desk) make() (err error) {
	if d.dir != nil {
		return nil
	}
	if err := d.root.MkdirAll(d.place.folder(), 0o700); err != nil {
		return err
	}
	d.dir, err = d.root.OpenRoot(d.place.folder())
	return err
}

// write writes a file whole, beside its place, and waits for the disk.
func (d *desk) write(name string, content []byte) error {
	return d.put(name, content, true, d.dir.Rename)
}

// create writes a file that must not be there yet: fs.ErrExist if it is.
func (d *desk) create(name string, content []byte) error {
	return d.put(name, content, true, func(from, to string) error {
		err := d.dir.Link(from, to)
		if _, taken := d.dir.Lstat(to); err != nil && errors.Is(taken, fs.ErrNotExist) {
			return d.dir.Rename(from, to) // a filesystem without links
		}
		return errors.Join(err, d.dir.Remove(from))
	})
}

func (d *desk) put(name string, content []byte, wait bool, place func(from, to string) error) error {
	temporary := newName()
	f, err := d.dir.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && wait {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = place(temporary, name)
	}
	if err != nil {
		return errors.Join(err, d.removeIfThere(temporary))
	}
	return nil
}

func (d *desk) readJSON(name string, v any) error {
	if d.dir == nil {
		return fs.ErrNotExist
	}
	raw, err := d.dir.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (d *desk) removeIfThere(name string) error { return ignoreMissing(d.dir.Remove(name)) }

// names lists what a history's folder has, sorted; nothing where there is none.
func (d *desk) names() ([]string, error) {
	if d.dir == nil {
		return nil, nil
	}
	return list(d.dir, ".")
}

func list(root *os.Root, folder string) ([]string, error) {
	f, err := root.Open(folder)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, ignoreMissing(errors.Join(err, f.Close()))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// newName is the name of a file that is being written.
func newName() string { return unfinished + strings.ToLower(rand.Text()) }

const unfinished = "new-"
