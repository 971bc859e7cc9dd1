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

// The parts of a home that are taken.
const (
	PartStore = "store" // the logs, and the book
	PartBus   = "bus"   // the mail
)

// A Note stands in a home of which something was taken, or is being taken.
type Note struct {
	ID    string    `json:"id"`
	Parts []string  `json:"parts"` // that the latest migration takes
	Store string    `json:"store"` // where the logs are now; "" is here
	Bus   string    `json:"bus"`   // where the mail is now; "" is here
	Began time.Time `json:"began"`
	Done  time.Time `json:"done,omitzero"`
}

// Unfinished says that a migration was begun and has not come to its end.
func (n Note) Unfinished() bool { return n.ID != "" && n.Done.IsZero() }

// Has says that the latest migration takes a part.
func (n Note) Has(part string) bool { return slices.Contains(n.Parts, part) }

// Places names where what was here is now.
func (n Note) Places() string {
	return strings.Join(slices.DeleteFunc([]string{n.Store, n.Bus}, func(s string) bool { return s == "" }), " and ")
}

// Path is the file that holds a home's note: to delete it is to give up what it says.
func Path(home string) string { return filepath.Join(home, "moved.json") }

// Read reads a home's note; it is empty where nothing was ever taken.
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

// write writes it down for good, or leaves what stood there.
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
