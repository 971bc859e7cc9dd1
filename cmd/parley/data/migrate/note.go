package migrate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/tools/plainjson"
)

// These are the parts of a home that can be copied.
const (
	PartStore = "store" // the logs, and the book
	PartBus   = "bus"   // the messages in the bus
)

// A Note says where the content of a home was copied, or is being copied. It is a file in that
// home.
type Note struct {
	ID    string    `json:"id"`
	Parts []string  `json:"parts"` // the parts that the latest migration copies
	Store string    `json:"store"` // where the logs are now; "" means in this home
	Bus   string    `json:"bus"`   // where the mail is now; "" means in this home
	Began time.Time `json:"began"`
	Done  time.Time `json:"done,omitzero"`
}

// Unfinished reports whether a migration was begun and has not ended.
func (n Note) Unfinished() bool { return n.ID != "" && n.Done.IsZero() }

// HasPart reports whether the latest migration copies this part, PartStore or PartBus.
func (n Note) HasPart(part string) bool { return slices.Contains(n.Parts, part) }

// Places returns in words where the content of the home is now, or "" if all of it is in the home.
func (n Note) Places() string {
	return strings.Join(slices.DeleteFunc([]string{n.Store, n.Bus}, func(s string) bool { return s == "" }), " and ")
}

// Path returns the path of the file that contains a home's note. Deleting the file abandons the
// migration.
func Path(home string) string { return filepath.Join(home, "moved.json") }

// Read reads a home's note. It returns an empty Note if nothing was ever copied.
func Read(home string) (n Note, err error) {
	if n, err = plainjson.ReadFile[Note](Path(home)); err != nil {
		return n, fmt.Errorf("find out what was moved from the home: %w", err)
	}
	return n, nil
}

// write replaces the note durably, or leaves the old one unchanged.
func (n Note) write(home string) error {
	if err := plainjson.ReplaceFile(Path(home), n); err != nil {
		return fmt.Errorf("record in the home what is moved: %w", err)
	}
	return nil
}
