package snapshots

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"parley/tools/plainjson"
)

// A Name is a path in a workspace. Names on a disk need not be UTF-8, but JSON texts must be: so a name
// that is not UTF-8 is encoded and stored after a NUL, which no name contains.
type Name string

// MarshalText implements encoding.TextMarshaler, even for names that are not UTF-8.
func (n Name) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return []byte(n), nil
	}
	return []byte("\x00" + base64.StdEncoding.EncodeToString([]byte(n))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler: it reads what MarshalText has
// written.
func (n *Name) UnmarshalText(text []byte) error {
	coded, ok := strings.CutPrefix(string(text), "\x00")
	if !ok {
		*n = Name(text)
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return fmt.Errorf("decode a name: %w", err)
	}
	*n = Name(raw)
	return nil
}

// An Entry describes the file, folder or link that was at one path of a workspace.
type Entry struct {
	Mode    fs.FileMode `json:"m"`
	Size    int64       `json:"s,omitempty"`
	Sum     string      `json:"h,omitempty"` // SHA-256 of a file's content; "" if it was not read
	Link    Name        `json:"l,omitempty"` // the path to which a symbolic link leads
	HasCopy bool        `json:"k,omitempty"` // whether there is a copy of the content
	// NoCopyReason says why there is no copy of a file that should have one; "" otherwise.
	NoCopyReason string `json:"w,omitempty"`

	Modified int64  `json:"t,omitempty"` // when the content was last modified, in nanoseconds since 1970
	Changed  int64  `json:"c,omitempty"` // when the inode was last changed, in nanoseconds since 1970; no program can set it
	Inode    uint64 `json:"i,omitempty"`
}

// keptMode contains the bits of a file's mode that an entry stores.
const keptMode = fs.ModeType | fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// withoutRights returns the entry in the form in which an undo restores the file: without the mode bits
// that let others run it with its owner's rights.
func (e *Entry) withoutRights() *Entry {
	if e == nil || !e.Mode.IsRegular() || e.Mode == e.Mode.Perm() {
		return e
	}
	plain := *e
	plain.Mode = e.Mode.Perm()
	return &plain
}

// isUntouched reports whether nobody has changed a file since it got this entry; now is its entry according
// to the current data of the filesystem.
func (e Entry) isUntouched(now Entry) bool {
	return e.Size == now.Size && e.Modified == now.Modified && e.Changed == now.Changed && e.Inode == now.Inode && e.Mode.Type() == now.Mode.Type()
}

// sameContent reports whether two entries have the same content, or the same link.
func (e Entry) sameContent(other Entry) bool {
	switch {
	case e.Mode.Type() != other.Mode.Type():
		return false
	case e.Mode&fs.ModeSymlink != 0:
		return e.Link == other.Link
	case !e.Mode.IsRegular():
		return true
	case e.Sum != "" && other.Sum != "":
		return e.Sum == other.Sum
	}
	return e.Size == other.Size && e.Modified == other.Modified && e.Inode == other.Inode
}

// sameEntry reports whether two entries are alike. A nil entry means that there is nothing at the path.
func sameEntry(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Mode&fs.ModeSymlink != 0 && b.Mode&fs.ModeSymlink != 0 {
		return a.Link == b.Link // the system decides about the modes of links
	}
	return a.Mode == b.Mode && a.sameContent(*b)
}

// A tree is the content of a workspace at one time: an entry for each path.
type tree struct {
	// At is when the walk began, by the clock of the filesystem.
	At      int64
	Entries map[Name]Entry
}

// lacksCopies reports whether a folder contains a file that is still to be copied.
func (t *tree) lacksCopies(folder Name) bool {
	for name, e := range t.Entries {
		if e.Mode.IsRegular() && !e.HasCopy && e.NoCopyReason == "" && strings.HasPrefix(string(name), string(folder)+"/") {
			return true
		}
	}
	return false
}

// A treeLine is one path of a tree, in the form in which it is stored.
type treeLine struct {
	Path Name `json:"p"`
	Entry
}

type treeLines struct {
	At    int64      `json:"at"`
	Lines []treeLine `json:"lines"` // sorted by path
}

// MarshalJSON implements json.Marshaler: it writes the tree as sorted lines, so that the same tree always
// becomes the same text.
func (t *tree) MarshalJSON() ([]byte, error) {
	all := treeLines{At: t.At, Lines: make([]treeLine, 0, len(t.Entries))}
	for name, e := range t.Entries {
		all.Lines = append(all.Lines, treeLine{name, e})
	}
	slices.SortFunc(all.Lines, func(a, b treeLine) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return plainjson.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler: it reads what MarshalJSON has written.
func (t *tree) UnmarshalJSON(raw []byte) error {
	var all treeLines
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	t.At, t.Entries = all.At, make(map[Name]Entry, len(all.Lines))
	for _, l := range all.Lines {
		t.Entries[l.Path] = l.Entry
	}
	return nil
}

// racyNanos is how many nanoseconds after a change a file may change again without a difference in its
// times, because some filesystems store only seconds.
const racyNanos = 2_000_000_000

// isSettled reports whether the times of an entry's file would differ if the file had been changed after
// this tree was made.
func (t *tree) isSettled(e Entry) bool { return e.Changed < t.At-racyNanos }

// covers reports whether next, a later tree, says nothing that this tree does not, so that it need not be
// stored.
func (t *tree) covers(next *tree) bool {
	for _, e := range t.Entries {
		if e.Mode.IsRegular() && !t.isSettled(e) {
			return false
		}
	}
	return maps.Equal(t.Entries, next.Entries)
}

// maxCached is how many trees stay in memory: those of the sessions that are currently working.
const maxCached = 8

// A cache holds the most recently used trees. A tree's name is the hash of its content, so a cached tree
// is never out of date.
type cache struct {
	mu    sync.Mutex
	names []string
	trees []*tree
}

func (c *cache) find(name string) *tree {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.names, name); i >= 0 {
		return c.trees[i]
	}
	return nil
}

func (c *cache) add(name string, t *tree) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.names, name) {
		return
	}
	c.names, c.trees = append(c.names, name), append(c.trees, t)
	if over := len(c.names) - maxCached; over > 0 {
		c.names, c.trees = slices.Delete(c.names, 0, over), slices.Delete(c.trees, 0, over)
	}
}

// A Change says how one path was changed.
type Change struct {
	Path Name   `json:"path"`
	From *Entry `json:"from,omitempty"` // what was there before; nil if nothing was
	To   *Entry `json:"to,omitempty"`   // what is there now; nil if nothing is
	// ChangedByOthers says that somebody else has changed the path between two parts of the turn.
	ChangedByOthers bool `json:"torn,omitempty"`
}

// The words that Change.KindWord returns.
const (
	Created  = "created"
	Modified = "modified"
	Deleted  = "deleted"
	Mode     = "mode" // only the permissions have changed
)

// KindWord returns a word for the kind of change.
func (c Change) KindWord() string {
	switch {
	case c.From == nil:
		return Created
	case c.To == nil:
		return Deleted
	case c.From.sameContent(*c.To):
		return Mode
	}
	return Modified
}

// IsDir reports whether the path is, or was, a folder.
func (c Change) IsDir() bool {
	return c.From != nil && c.From.Mode.IsDir() || c.To != nil && c.To.Mode.IsDir()
}
