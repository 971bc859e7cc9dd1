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

// MarksFile is the file of a workspace that lists which of its files contain text that strangers may have written.
const MarksFile = ".agent/untrusted.json"

// Limits of what is read from a workspace, because a command can make its files any size.
const (
	maxMarks     = 1000    // files by name; with more, all files are marked
	maxMarksFile = 1 << 20 // bytes; with more, all files are marked
	maxPrompted  = 1 << 20 // bytes of a file that is part of every prompt; a longer one counts as changed by each command
)

// errUnchanged ends an update that would change nothing, so that nothing is written.
var errUnchanged = errors.New("nothing to change")

// A Dir is the part of a session's directory that marks need.
type Dir interface {
	fs.FS
	Name(path string) (string, error)
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
}

// Marks list the files of a workspace that contain text that strangers may have written.
type Marks struct {
	// All says that any file may contain such text, because a command ran that could have written or copied it.
	All   bool     `json:"all,omitempty"`
	Files []string `json:"files,omitempty"`
}

// Has reports whether a file is marked by name. It ignores All, because All doesn't apply to files that are part of
// every prompt (such as AGENTS.md).
func (m Marks) Has(name string) bool { return slices.Contains(m.Files, name) }

// MayContain reports whether a file that is not part of a prompt may contain such text.
func (m Marks) MayContain(name string) bool { return m.All || m.Has(name) }

func (m Marks) hasAny() bool { return m.All || len(m.Files) > 0 }

// markEverything returns marks for all files. It marks those that are part of every prompt by name, too.
func markEverything() Marks { return Marks{All: true, Files: PromptedFiles()} }

// ReadMarks reads a workspace's marks. If they cannot be read, or are too long, everything counts as marked.
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

// parseMarks decodes marks; if they cannot be decoded, everything counts as marked.
func parseMarks(raw []byte) Marks {
	var m Marks
	if json.Unmarshal(raw, &m) != nil {
		return markEverything()
	}
	return m
}

// readUpTo reads a file of at most limit bytes. For a longer file it returns EFBIG.
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

// ChangeMarks changes a workspace's MarksFile: it adds some names and drops others, and if all is set it marks
// every file. Others may do so at the same time. If nothing changes it writes nothing.
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
			return nil // unreadable marks already mark everything
		}
	}
	return err
}

// DropMarks drops the marks of those named files that no longer exist. A caller that removes files must call it. It
// keeps the marks of files that exist, because a file is marked just before it is written.
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

// withChanges returns the marks after a change, and their JSON. If there would be too many names, it marks all
// files instead, and keeps only the names of files that are part of every prompt, because All doesn't apply to
// these.
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

// PromptedFiles returns the names of the files in a workspace that are part of every prompt, if they exist.
func PromptedFiles() []string { return []string{"AGENTS.md", "MEMORY.md"} }

// MarkAfterJob marks all files of a job's workspace when the job ends, if the job was started after something
// untrusted was read, or may have read a marked file. wroteAll says that the job could write any file, including
// those that are part of every prompt and MarksFile.
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
