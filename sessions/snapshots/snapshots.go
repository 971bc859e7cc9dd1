// Package snapshots stores what turns change in a workspace, so that it can be listed and undone.
//
// Before the first call of a turn that may change files, Begin walks the workspace and stores its tree:
// each path with its mode, size, checksum, link, and its data from the filesystem. It copies each file
// that has no copy of its content yet. When the turn ends, or waits for people, End walks again and
// records the differences. So changes that others make before or after the turn do not count as the
// turn's; changes that others make while it runs do. Undo restores what a turn found, but leaves, and
// names, each path that somebody has changed since. An undo is recorded like a turn, so it can be undone.
//
// Walking is cheap: a file is read again only if its size, inode, time of modification or time of change
// differs from the last tree, or if it had been changed so shortly before that tree that another change
// might not show in its times. Files are copied only before a change: a file that a turn has created is
// read at the turn's end, and copied when another turn may change it.
//
// A git repository consists of files like any others, and what a turn has done to it is undone with the
// rest. But undoing half of such a change would break it: if anything in a .git folder cannot be put
// back, the whole folder is left as it is.
//
// All histories are in one folder of the workspaces' root, whose name no session's
// directory can have and which no tool reaches, below ~undo/SESSION/DIRECTORY, both
// hashed:
//
//	tree-SUM     the tree of a workspace; never changed
//	latest       the name of the newest tree
//	turn-N-HASH  what one turn has changed, or the tree that it has found while it runs
//	kept-SUM     the copy of a file, by the SHA-256 of its content
//
// Each file is written under a temporary name and then renamed. Copies and trees come
// before the turn that names them, so a process may die anywhere: a turn that was cut off
// has its tree, and Undo works from it. An Undo that was cut off continues when it is
// called again with the same id. Copies are not waited for on the disk, so a power cut
// can spoil one: each is checked by its sum before it is used. Only the holder of the
// session's lease calls Begin, End and Undo.
//
// The files, in reading order: snapshots.go defines the store, entry.go the entry of a
// file, walk.go walks through a workspace, copies.go copies files, record.go keeps the
// records of turns, undo.go decides what is undone, restore.go restores files, and
// prune.go removes what is old.
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

// Errors that tell callers what to do next.
var (
	// ErrNone says that there is nothing to undo, or no record with that number.
	ErrNone = errors.New("there's nothing to undo")
	// ErrNotTheirs says that the person may not undo the turn, because somebody else asked for it.
	ErrNotTheirs = errors.New("somebody else has asked for that")
	// ErrTooMany says that a workspace has more files than a history allows.
	ErrTooMany = errors.New("the workspace has too many files")
)

// Folder is the name of the folder in the workspaces' root that contains all histories.
const Folder = "~undo"

// MaxItems is the most files and folders that a workspace may have for its history to be kept.
const MaxItems = 50_000

// Config says which histories are kept, and where.
type Config struct {
	// Root is the directory of the workspaces, which must exist.
	Root string
	// MaxBytes limits the copies of one workspace; a file of more than a quarter of that is not kept.
	MaxBytes int64
	// MaxTurns is how many turns of a session are kept; 0 keeps none.
	MaxTurns int
	// MaxAge is how long turns are kept; 0 means forever.
	MaxAge time.Duration
	// IsExcluded reports whether a path is left out of the history. If it is a folder, so is everything in it.
	IsExcluded func(path string) bool
	// TemporaryName returns a new name for a file that is being written in a workspace.
	TemporaryName func() string
	// Point, if set, is called at each point of an undo where a test may kill the process.
	Point func(name string)
}

// A Store stores the histories of workspaces. Several processes may use the same one.
type Store struct {
	cfg  Config
	root *os.Root

	cache cache
	mu    sync.Mutex
	locks map[string]*lock // by the path of a history's folder
}

type lock struct {
	sync.Mutex
	users int
}

// Open opens the store. It creates no files: the first turn that changes something does.
func Open(cfg Config) (*Store, error) {
	root, err := os.OpenRoot(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("open what turns have changed: %w", err)
	}
	if cfg.IsExcluded == nil {
		cfg.IsExcluded = func(string) bool { return false }
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
	// IsOwnDir says that Dir is a person's own directory, which has a separate history in the session.
	IsOwnDir bool
}

// folder returns the path of the place's history in the workspaces' root.
func (p Place) folder() string {
	own := ""
	if p.IsOwnDir {
		own = p.Dir
	}
	return path.Join(sessionFolder(p.Session), hashName(own))
}

func sessionFolder(session string) string { return path.Join(Folder, hashName(session)) }

func hashName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// A history is the history of one place, in use by one caller.
type history struct {
	*Store
	place Place
	dir   *os.Root // the history's folder; nil while there is none
}

// openHistory opens the history of a place for one caller at a time, who has to call leave at the end.
func (s *Store) openHistory(p Place) (d *history, leave func(), err error) {
	folder := p.folder()
	unlock := s.lock(folder)
	d = &history{Store: s, place: p}
	if d.dir, err = s.root.OpenRoot(folder); err != nil {
		d.dir, err = nil, ignoreMissing(err)
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return d, func() {
		if d.dir != nil {
			_ = d.dir.Close() // closing a folder cannot lose anything
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

// makeFolder makes the history's folder.
func (d *history) makeFolder() (err error) {
	if d.dir != nil {
		return nil
	}
	if err := d.root.MkdirAll(d.place.folder(), 0o700); err != nil {
		return err
	}
	d.dir, err = d.root.OpenRoot(d.place.folder())
	return err
}

// write writes a file under a temporary name, renames it, and waits for the disk.
func (d *history) write(name string, content []byte) error {
	return d.putFile(name, content, true, d.dir.Rename)
}

// create writes a new file; it returns fs.ErrExist if there is one with that name.
func (d *history) create(name string, content []byte) error {
	return d.putFile(name, content, true, func(from, to string) error {
		err := d.dir.Link(from, to)
		if _, taken := d.dir.Lstat(to); err != nil && errors.Is(taken, fs.ErrNotExist) {
			return d.dir.Rename(from, to) // for a filesystem without hard links
		}
		return errors.Join(err, d.dir.Remove(from))
	})
}

// putFile writes a file under a temporary name, and calls place to give it its final one. If wait is
// true, it waits for the disk.
func (d *history) putFile(name string, content []byte, wait bool, place func(from, to string) error) error {
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

func (d *history) readJSON(name string, v any) error {
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

func (d *history) removeIfThere(name string) error { return ignoreMissing(d.dir.Remove(name)) }

// names lists the files in a history's folder, sorted; none if there is no folder.
func (d *history) names() ([]string, error) {
	if d.dir == nil {
		return nil, nil
	}
	return listNames(d.dir, ".")
}

func listNames(root *os.Root, folder string) ([]string, error) {
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

// newName returns a temporary name for a file that is being written.
func newName() string { return unfinishedPrefix + strings.ToLower(rand.Text()) }

const unfinishedPrefix = "new-"
