package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"parley/tools/plainjson"
)

// MarksFile is the file of a workspace that lists which of its files hold text that strangers may
// have written.
const MarksFile = ".agent/untrusted.json"

// Bounds of what is read of a workspace, because a command can make its files of any size.
const (
	maxMarks     = 1000    // files by name; with more, all files are marked
	maxMarksFile = 1 << 20 // bytes; with more, all files are marked
	maxPrompted  = 1 << 20 // bytes of a file that is in every prompt; a longer one counts as changed by each command
)

// errUnchanged ends an update whose result would be what is there already, so that nothing is
// written.
var errUnchanged = errors.New("nothing to change")

// A Dir is a session's directory, as far as marks need it.
type Dir interface {
	fs.FS
	Name(path string) (string, error)
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
}

// Marks list the files of a workspace that hold what strangers may have written.
type Marks struct {
	// All says that any file may hold such text, because a command ran that could have written or
	// copied it.
	All   bool     `json:"all,omitempty"`
	Files []string `json:"files,omitempty"`
}

// Has reports whether a file is marked by its name. It does not look at All, because that does
// not count for a file that is in every prompt (such as AGENTS.md).
func (m Marks) Has(name string) bool { return slices.Contains(m.Files, name) }

func (m Marks) hasAny() bool { return m.All || len(m.Files) > 0 }

// markEverything returns marks for all files; those that are in every prompt are also marked by
// name.
func markEverything() Marks { return Marks{All: true, Files: PromptedFiles()} }

// ReadMarks reads a workspace's marks. If they cannot be read, or are too long, everything is
// marked.
func ReadMarks(dir fs.FS) Marks {
	raw, err := readUpTo(dir, MarksFile, maxMarksFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Marks{}
	case err != nil:
		return markEverything()
	}
	return parseMarks(raw)
}

// parseMarks decodes marks; if they cannot be read, everything is marked.
func parseMarks(raw []byte) Marks {
	var m Marks
	if json.Unmarshal(raw, &m) != nil {
		return markEverything()
	}
	return m
}

// readUpTo reads a file of at most limit bytes.
func readUpTo(dir fs.FS, name string, limit int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("read %s: %w", name, syscall.EFBIG)
	}
	return raw, nil
}

// ChangeMarks changes the marks in a workspace's file: it adds some names and drops others, and
// with all it marks every file. Others may do so at the same time. If nothing changes it writes
// nothing.
func ChangeMarks(dir Dir, all bool, add, drop []string) error {
	err := dir.Update(MarksFile, maxMarksFile, func(old []byte) ([]byte, error) {
		var now Marks
		if old != nil {
			now = parseMarks(old)
		}
		next, raw, err := now.withChanges(all, add, drop)
		if err == nil && old != nil && next.All == now.All && slices.Equal(next.Files, now.Files) || !next.hasAny() && old == nil {
			return nil, errUnchanged
		}
		return raw, err
	})
	switch {
	case errors.Is(err, errUnchanged):
		return nil
	case errors.Is(err, syscall.EFBIG):
		if _, long := readUpTo(dir, MarksFile, maxMarksFile); errors.Is(long, syscall.EFBIG) {
			return nil // it marks everything as it is
		}
	}
	return err
}

// DropMarks drops the marks of those of the named files that do not exist any more. Whoever removes
// files must call it. The marks of files that exist stay, because a file is marked just before it is
// written.
func DropMarks(dir Dir, names []string) error {
	gone := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := fs.Stat(dir, name)
		return !errors.Is(err, fs.ErrNotExist)
	})
	if len(gone) == 0 {
		return nil
	}
	return ChangeMarks(dir, false, nil, gone)
}

// withChanges returns the marks after a change, and their JSON. If there would be too many names,
// all files are marked instead, and only the names of files that are in every prompt stay,
// because All does not count for these.
func (m Marks) withChanges(all bool, add, drop []string) (Marks, []byte, error) {
	next := Marks{All: m.All || all}
	known := map[string]bool{}
	for _, name := range m.Files {
		if known[name] = true; !slices.Contains(drop, name) {
			next.Files = append(next.Files, name)
		}
	}
	for _, name := range add {
		if !known[name] || slices.Contains(drop, name) {
			known[name] = true
			next.Files = append(next.Files, name)
		}
	}
	raw, err := plainjson.Marshal(next)
	if len(next.Files) > maxMarks || len(raw) > maxMarksFile {
		next.All = true
		next.Files = slices.DeleteFunc(next.Files, func(name string) bool { return !slices.Contains(PromptedFiles(), name) })
		raw, err = plainjson.Marshal(next)
	}
	return next, raw, err
}

// PromptedFiles returns the names of the files that a workspace may have and that are part of
// every prompt.
func PromptedFiles() []string { return []string{"AGENTS.md", "MEMORY.md"} }

// MarkAfterJob marks, at the end of a job, all files of its workspace if it was started after something
// untrusted was read, or may have read a marked file. wroteAll says that it could write any file, those
// that are in every prompt and the marks included.
func MarkAfterJob(dir Dir, untrusted, wroteAll bool) error {
	if !untrusted && !ReadMarks(dir).hasAny() {
		return nil
	}
	var prompted []string
	if wroteAll {
		for _, name := range PromptedFiles() {
			if _, err := fs.Stat(dir, name); !errors.Is(err, fs.ErrNotExist) {
				prompted = append(prompted, name)
			}
		}
	}
	return ChangeMarks(dir, true, prompted, nil)
}
