package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"parley/tools"
)

// MarksFile is where a workspace remembers which of its files hold what strangers may
// have written.
const MarksFile = ".agent/untrusted.json"

const (
	maxMarks     = 1000    // files by name; beyond it all are marked
	maxMarksFile = 4 << 20 // bytes
)

// A Dir is a session's directory, as far as marks need it.
type Dir interface {
	fs.FS
	Name(path string) (string, error)
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
}

// Marks say which files of a workspace hold what strangers may have written.
type Marks struct {
	// All says that any may: a command ran that could have written, or copied, one.
	All   bool     `json:"all,omitempty"`
	Files []string `json:"files,omitempty"`
}

// Has tells whether a file is marked. Of a file that is in each prompt it wants its own
// name to be among the marks.
func (m Marks) Has(name string) bool { return slices.Contains(m.Files, name) }

func (m Marks) any() bool { return m.All || len(m.Files) > 0 }

// ReadMarks reads a workspace's marks. What cannot be read marks all.
func ReadMarks(dir fs.FS) Marks {
	raw, err := fs.ReadFile(dir, MarksFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Marks{}
	}
	var m Marks
	if err != nil || json.Unmarshal(raw, &m) != nil {
		return Marks{All: true}
	}
	return m
}

// ChangeMarks adds marks and takes some away. Nothing is written where nothing changes.
func ChangeMarks(dir Dir, all bool, add, drop []string) error {
	now := ReadMarks(dir)
	next := Marks{All: now.All || all}
	for _, name := range now.Files {
		if !slices.Contains(drop, name) {
			next.Files = append(next.Files, name)
		}
	}
	for _, name := range add {
		if !slices.Contains(next.Files, name) {
			next.Files = append(next.Files, name)
		}
	}
	if len(next.Files) > maxMarks {
		next.All, next.Files = true, next.Files[len(next.Files)-maxMarks:]
	}
	if next.All == now.All && slices.Equal(next.Files, now.Files) {
		return nil
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	return dir.Update(MarksFile, maxMarksFile, func([]byte) ([]byte, error) { return raw, nil })
}

// Prompted are the files of a workspace that every prompt holds.
func Prompted() []string { return []string{"AGENTS.md", "MEMORY.md"} }

// A Marker makes tools remember which files hold what strangers may have written: those
// written by a model that has read such a thing. What is read of these is untrusted.
type Marker struct {
	// Open gives a call its session's directory.
	Open func(ctx context.Context, call tools.Call) (Dir, error)
	// Patched gives the paths that a patch touches.
	Patched func(patch string) []string
}

// Watch makes those of the tools remember that read or write files.
func (m Marker) Watch(all []tools.Tool) []tools.Tool {
	watched := slices.Clone(all)
	for i, tool := range all {
		if use := useOf(tool.Spec().Name); use != noFiles {
			watched[i] = marked{Tool: tool, marker: m, use: use}
		}
	}
	return watched
}

// A fileUse is what a tool does with files.
type fileUse int

const (
	noFiles  fileUse = iota
	reads            // the file that it names
	searches         // any file
	replaces         // all that the file held
	changes          // some of what the file held
	commands         // reads and writes any file
)

func useOf(tool string) fileUse {
	switch tool {
	case "read_file", "memory_read", "image":
		return reads
	case "list_directory", "glob", "grep":
		return searches
	case "write_file":
		return replaces
	case "edit_file", applyPatch, "memory_write":
		return changes
	case execShell, spawn, "git_status", "git_diff", "git_log", "git_commit", "git_branch":
		return commands
	}
	return noFiles
}

// marked is a tool that remembers.
type marked struct {
	tools.Tool
	marker Marker
	use    fileUse
}

// EffectOf is that of the tool.
func (t marked) EffectOf(call tools.Call) tools.Effect { return tools.EffectOf(t.Tool, call) }

// Reconcile asks the tool. Its marks were made before it ran.
func (t marked) Reconcile(ctx context.Context, call tools.Call) (tools.Result, bool, error) {
	r, ok := t.Tool.(tools.Reconciler)
	if !ok {
		return tools.Result{}, false, fmt.Errorf("reconcile %s: %w", call.Name, errors.ErrUnsupported)
	}
	result, done, err := r.Reconcile(ctx, call)
	result.Untrusted = result.Untrusted || call.Untrusted && t.use == commands
	return result, done, err
}

// Run marks what a call is about to write before it runs, and its result after.
func (t marked) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	dir, err := t.marker.Open(ctx, call)
	if err != nil {
		return tools.Result{}, err
	}
	names, had := t.marker.names(dir, call), ReadMarks(dir)
	switch t.use {
	case replaces, changes:
		return t.write(ctx, call, dir, names, had)
	case commands:
		return t.command(ctx, call, dir, had)
	}
	result, err := t.Tool.Run(ctx, call)
	if had.All || t.use == searches && had.any() || slices.ContainsFunc(names, had.Has) {
		result.Untrusted = true
	}
	return result, err
}

func (t marked) write(ctx context.Context, call tools.Call, dir Dir, names []string, had Marks) (tools.Result, error) {
	if slices.Contains(names, MarksFile) {
		return tools.Result{}, tools.Errorf(tools.PermissionDenied, "%s is kept by the system: leave it alone", MarksFile)
	}
	untrusted := call.Untrusted || t.use == changes && slices.ContainsFunc(names, had.Has)
	if untrusted {
		if err := ChangeMarks(dir, false, names, nil); err != nil {
			return tools.Result{}, fmt.Errorf("note that what is written is untrusted: %w", err)
		}
	}
	result, err := t.Tool.Run(ctx, call)
	if err == nil && !untrusted && t.use == replaces {
		_ = ChangeMarks(dir, false, nil, names) // a mark too many does no harm
	}
	return result, err
}

// command runs what may read and write any file. It may remove the marks as well, so
// they are written once more behind it.
func (t marked) command(ctx context.Context, call tools.Call, dir Dir, had Marks) (tools.Result, error) {
	if !call.Untrusted && !had.any() {
		return t.Tool.Run(ctx, call)
	}
	if err := ChangeMarks(dir, true, nil, nil); err != nil {
		return tools.Result{}, fmt.Errorf("note that what is written is untrusted: %w", err)
	}
	before := prompted(dir)
	result, err := t.Tool.Run(ctx, call)
	result.Untrusted = true
	rewritten := slices.Clone(had.Files)
	for name, now := range prompted(dir) {
		if before[name] != now {
			rewritten = append(rewritten, name)
		}
	}
	if failed := ChangeMarks(dir, true, rewritten, nil); failed != nil {
		return tools.Result{}, errors.Join(err, fmt.Errorf("note that what was written is untrusted: %w", failed))
	}
	return result, err
}

// prompted is what the files hold that are in every prompt.
func prompted(dir fs.FS) map[string]string {
	all := map[string]string{}
	for _, name := range Prompted() {
		if raw, err := fs.ReadFile(dir, name); err == nil {
			all[name] = string(raw)
		}
	}
	return all
}

// names are the files that a call names.
func (m Marker) names(dir Dir, call tools.Call) []string {
	a := read(call)
	paths := []string{a.Path}
	switch call.Name {
	case "memory_read", "memory_write":
		paths = []string{"MEMORY.md"}
	case applyPatch:
		paths = m.Patched(a.Patch)
	}
	var names []string
	for _, p := range paths {
		if name, err := dir.Name(p); err == nil {
			names = append(names, name)
		}
	}
	return names
}
