package guard

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"parley/tools"
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
	raw, err := json.Marshal(next)
	if len(next.Files) > maxMarks || len(raw) > maxMarksFile {
		next.All = true
		next.Files = slices.DeleteFunc(next.Files, func(name string) bool { return !slices.Contains(PromptedFiles(), name) })
		raw, err = json.Marshal(next)
	}
	return next, raw, err
}

// PromptedFiles returns the names of the files that a workspace may have and that are part of
// every prompt.
func PromptedFiles() []string { return []string{"AGENTS.md", "MEMORY.md"} }

// A Marker wraps tools so that it is known which files hold text that strangers may have written:
// it marks files that a model writes after it has read such text, and marks as untrusted what
// tools read from these files.
type Marker struct {
	// Open returns the directory of a call's session.
	Open func(ctx context.Context, call tools.Call) (Dir, error)
	// Patched returns the paths that a patch touches.
	Patched func(patch string) []string
}

// Watch wraps the tools that read or write files, so that they keep marks. It leaves the others as
// they are.
func (m Marker) Watch(all []tools.Tool) []tools.Tool {
	watched := slices.Clone(all)
	for i, tool := range all {
		if use := fileUseOf(tool.Spec().Name); use != usesNoFiles {
			watched[i] = markingTool{Tool: tool, marker: m, use: use}
		}
	}
	return watched
}

// WatchCommands wraps tools that run programs in a workspace, whatever they are called, so that
// they keep marks.
func (m Marker) WatchCommands(all []tools.Tool) []tools.Tool {
	watched := make([]tools.Tool, len(all))
	for i, tool := range all {
		watched[i] = markingTool{Tool: tool, marker: m, use: runsCommand}
	}
	return watched
}

// A fileUse says how a tool uses the files of a workspace.
type fileUse int

const (
	usesNoFiles   fileUse = iota
	readsNamed            // reads the files that its arguments name
	readsAny              // may read any file of the workspace
	replacesNamed         // writes the named file anew
	editsNamed            // changes a part of the named file
	runsCommand           // may read and write any file
)

// fileUseOf returns what the tool of that name does with files.
func fileUseOf(tool string) fileUse {
	switch tool {
	case "read_file", "memory_read", "image", "todo_read":
		return readsNamed
	case "list_directory", "glob", "grep", "job_output":
		return readsAny
	case "write_file", "todo_write":
		return replacesNamed
	case "edit_file", applyPatch, "memory_write":
		return editsNamed
	}
	if slices.Contains(commandTools(), tool) {
		return runsCommand
	}
	return usesNoFiles
}

// A markingTool is a tool wrapped so that files which it writes after reading something
// untrusted are marked.
type markingTool struct {
	tools.Tool
	marker Marker
	use    fileUse
}

// EffectOf returns the effect of the wrapped tool.
func (t markingTool) EffectOf(call tools.Call) tools.Effect { return tools.EffectOf(t.Tool, call) }

// Reconcile asks the wrapped tool whether an interrupted call has taken effect. The call's files
// were marked before it ran.
func (t markingTool) Reconcile(ctx context.Context, call tools.Call) (tools.Result, bool, error) {
	r, ok := t.Tool.(tools.Reconciler)
	if !ok {
		return tools.Result{}, false, fmt.Errorf("reconcile %s: %w", call.Name, errors.ErrUnsupported)
	}
	dir, err := t.marker.Open(ctx, call)
	if err != nil {
		return tools.Result{}, false, err
	}
	had := ReadMarks(dir)
	result, done, err := r.Reconcile(ctx, call)
	switch t.use {
	case readsNamed, readsAny:
		result.Untrusted = result.Untrusted || t.mayShowMarked(had, t.marker.namedFiles(dir, call))
	case runsCommand:
		result.Untrusted = result.Untrusted || call.Untrusted || had.hasAny()
	}
	return result, done, err
}

// Run marks the files that a call is about to write before it runs, and marks its result
// afterwards.
func (t markingTool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	dir, err := t.marker.Open(ctx, call)
	if err != nil {
		return tools.Result{}, err
	}
	names, had := t.marker.namedFiles(dir, call), ReadMarks(dir)
	switch t.use {
	case replacesNamed, editsNamed:
		return t.runWrite(ctx, call, dir, names, had)
	case runsCommand:
		return t.runCommand(ctx, call, dir, had)
	}
	result, err := t.Tool.Run(ctx, call)
	// Another call may have written the file meanwhile; it marks a file before it writes.
	if t.mayShowMarked(had, names) || t.mayShowMarked(ReadMarks(dir), names) {
		result.Untrusted = true
	}
	return result, err
}

// mayShowMarked reports whether the result of a tool that reads files may show text from marked
// files. names are the files that the call names.
func (t markingTool) mayShowMarked(m Marks, names []string) bool {
	return m.All || t.use == readsAny && m.hasAny() || slices.ContainsFunc(names, m.Has)
}

// runWrite runs a tool that writes files. An error of the tool may quote what the files held, so
// it is untrusted if they were marked.
func (t markingTool) runWrite(ctx context.Context, call tools.Call, dir Dir, names []string, had Marks) (tools.Result, error) {
	if slices.Contains(names, MarksFile) {
		return tools.Result{}, tools.Errorf(tools.PermissionDenied, "%s is kept by the system: leave it alone", MarksFile)
	}
	untrusted := call.Untrusted || t.use == editsNamed && slices.ContainsFunc(names, had.Has)
	if untrusted {
		if err := ChangeMarks(dir, false, names, nil); err != nil {
			return tools.Result{}, fmt.Errorf("note that what is written is untrusted: %w", err)
		}
	}
	result, err := t.Tool.Run(ctx, call)
	switch {
	case err != nil:
		result.Untrusted = result.Untrusted || t.mayShowMarked(had, names) || t.mayShowMarked(ReadMarks(dir), names)
	case !untrusted && t.use == replacesNamed:
		_ = ChangeMarks(dir, false, nil, names) // a mark too many does no harm
	case call.Name == applyPatch:
		_ = DropMarks(dir, names) // of what the patch has removed
	}
	return result, err
}

// runCommand runs a tool that runs a command, which may read and write any file. As the command
// may also remove the marks, they are written once more after it has run.
func (t markingTool) runCommand(ctx context.Context, call tools.Call, dir Dir, had Marks) (tools.Result, error) {
	if !call.Untrusted && !had.hasAny() {
		return t.Tool.Run(ctx, call)
	}
	if err := ChangeMarks(dir, true, nil, nil); err != nil {
		return tools.Result{}, fmt.Errorf("note that what is written is untrusted: %w", err)
	}
	before := promptedFingerprints(dir)
	result, err := t.Tool.Run(ctx, call)
	result.Untrusted = true
	rewritten := slices.Clone(had.Files)
	for name, now := range promptedFingerprints(dir) {
		if !now.whole || before[name] != now {
			rewritten = append(rewritten, name)
		}
	}
	if failed := ChangeMarks(dir, true, rewritten, nil); failed != nil {
		return tools.Result{Untrusted: true}, errors.Join(err, fmt.Errorf("note that what was written is untrusted: %w", failed))
	}
	return result, err
}

// A fingerprint is a hash by which one sees whether a file was changed; whole says that all of
// the file could be read.
type fingerprint struct {
	sum   [sha256.Size]byte
	whole bool
}

// promptedFingerprints returns fingerprints of the files that are in every prompt, as far as they
// exist.
func promptedFingerprints(dir fs.FS) map[string]fingerprint {
	all := map[string]fingerprint{}
	for _, name := range PromptedFiles() {
		raw, err := readUpTo(dir, name, maxPrompted)
		if !errors.Is(err, fs.ErrNotExist) {
			all[name] = fingerprint{sha256.Sum256(raw), err == nil}
		}
	}
	return all
}

// namedFiles returns the files that a call names.
func (m Marker) namedFiles(dir Dir, call tools.Call) []string {
	a := readArguments(call)
	paths := []string{a.Path}
	switch call.Name {
	case "memory_read", "memory_write":
		paths = []string{"MEMORY.md"}
		if a.Scope != "" && a.Scope != "session" {
			return nil // it is no file, and remembers that by itself
		}
	case "todo_read", "todo_write":
		paths = []string{".agent/todo.json"}
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
