package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The parts of a home that can be copied.
const (
	PartStore = "store" // the logs, and the book
	PartBus   = "bus"   // the mail
)

// A Note is written in a home from which something was copied, or is being copied.
type Note struct {
	ID    string    `json:"id"`
	Parts []string  `json:"parts"` // those that the latest migration copies
	Store string    `json:"store"` // where the logs are now; "" means in this home
	Bus   string    `json:"bus"`   // where the mail is now; "" means in this home
	Began time.Time `json:"began"`
	Done  time.Time `json:"done,omitzero"`
}

// Unfinished tells whether a migration was begun and has not ended.
func (n Note) Unfinished() bool { return n.ID != "" && n.Done.IsZero() }

// HasPart tells whether the latest migration copies a part.
func (n Note) HasPart(part string) bool { return slices.Contains(n.Parts, part) }

// Places names the places where the content of the home is now.
func (n Note) Places() string {
	return strings.Join(slices.DeleteFunc([]string{n.Store, n.Bus}, func(s string) bool { return s == "" }), " and ")
}

// Path is the file with a home's note. Deleting it gives the migration up.
func Path(home string) string { return filepath.Join(home, "moved.json") }

// Read reads a home's note. It is empty if nothing was ever copied.
func Read(home string) (n Note, err error) {
	raw, err := os.ReadFile(Path(home))
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &n)
	}
	if err != nil {
		return n, fmt.Errorf("read what was taken from the home: %w", err)
	}
	return n, nil
}

// write replaces the note durably, or leaves the old one as it was.
func (n Note) write(home string) error {
	if err := n.replace(home); err != nil {
		return fmt.Errorf("note in the home what is taken: %w", err)
	}
	return nil
}

func (n Note) replace(home string) error {
	raw, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	next := Path(home) + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, Path(home)); err != nil {
		return err
	}
	dir, err := os.Open(home)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
