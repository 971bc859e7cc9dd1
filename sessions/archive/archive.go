// Package archive moves the audit of each day into a file outside of the database, in a form in which nothing can be
// changed unnoticed and nobody's words are kept.
//
// A file has one line for each record, each with the hash of the line before it, and its first line has the hash of the
// last line of the file before: all files are one chain. The lines are written to the database first, in order, and only
// then to the file, so a file has the same lines however often it is written. Records stay in the audit until the file
// that has them was read back.
//
// People and conversations are named by pseudonyms, each made with a random key of its own. Erasing a person deletes the
// key; the lines stay, and nobody can tell anymore whose they are.
//
// The files, in reading order: archive.go says what a place for files is, archiver.go archives the days, line.go
// says what a line has, table.go has the state of the archive, freeze.go turns records into lines, keys.go makes
// pseudonyms, chain.go reads the lines of a file, and verify.go checks all files.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Place keeps files.
type Place interface {
	// Put stores a file whole or not at all. When it returns nil, the file is durable. It reads content from its
	// beginning, and replaces a file of that name.
	Put(ctx context.Context, name string, content io.ReadSeeker, size int64) error
	// Open opens a file. The error is fs.ErrNotExist if there is none of that name.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// Names returns the names of all files, in any order.
	Names(ctx context.Context) ([]string, error)
	// Check returns an error if no file can be stored now.
	Check(ctx context.Context) error
}

// ErrFenced says that another process archives the audit now.
var ErrFenced = errors.New("another process archives the audit")

// A ConflictError says that the place has a file with other lines than those that are to be archived. It isn't replaced.
type ConflictError struct{ Name string }

// Error says what to do.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("there is already a file %s with other lines: if the database was restored from a backup, move that file away, or name another folder or prefix", e.Name)
}

// The name of a day's file is its day between these.
const (
	namePrefix = "audit-"
	nameSuffix = ".jsonl.gz"
)

// nameOf returns the name of the file of a day.
func nameOf(day string) string { return namePrefix + day + nameSuffix }

// dayOf returns the day of the file with this name; ok is false if it isn't such a name.
func dayOf(name string) (day string, ok bool) {
	day, found := strings.CutPrefix(name, namePrefix)
	day, whole := strings.CutSuffix(day, nameSuffix)
	_, err := time.Parse(time.DateOnly, day)
	return day, found && whole && err == nil
}
