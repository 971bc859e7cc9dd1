package guard

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"parley/tools"
)

// A Marker wraps tools to keep track of which files contain text that strangers may have written: it marks the files
// that a model writes after it has read such text, and marks results that come from these files as untrusted.
type Marker struct {
	// Open returns the directory of a call's session.
	Open func(ctx context.Context, call tools.Call) (Dir, error)
	// JobRunning reports whether a job is running in the call's session: it may copy written text into files that no
	// call names. If JobRunning is nil, there are no jobs.
	JobRunning func(ctx context.Context, call tools.Call) (bool, error)
}

// mayRunJob reports whether a job may be running in the session of a call.
func (m Marker) mayRunJob(ctx context.Context, call tools.Call) bool {
	if m.JobRunning == nil {
		return false
	}
	runs, err := m.JobRunning(ctx, call)
	return runs || err != nil
}

// Watch wraps tools so that they keep the marks of the files that they touch up to date.
func (m Marker) Watch(all []tools.Tool) []tools.Tool {
	watched := make([]tools.Tool, len(all))
	for i, tool := range all {
		watched[i] = markingTool{Tool: tool, marker: m, touches: tool.Spec().Touches}
	}
	return watched
}

// A markingTool is a wrapped tool that marks the files that it writes after something untrusted was read.
type markingTool struct {
	tools.Tool
	marker  Marker
	touches func(tools.Call) tools.Touch
}

// EffectOf returns the effect of the wrapped tool.
func (t markingTool) EffectOf(call tools.Call) tools.Effect { return tools.EffectOf(t.Tool, call) }

// Ask returns the question of the wrapped tool.
func (t markingTool) Ask(call tools.Call) (tools.Question, bool, error) {
	return tools.QuestionOf(t.Tool, call)
}

// TaskOf returns the task that the wrapped tool hands to a sub-agent.
func (t markingTool) TaskOf(call tools.Call) (tools.Task, bool, error) {
	return tools.TaskOf(t.Tool, call)
}

// touch returns what a call touches.
func (t markingTool) touch(call tools.Call) tools.Touch {
	call.Touches = t.touches
	return call.Touch()
}

// Reconcile asks the wrapped tool whether an interrupted call took effect. The call's files were marked before it
// ran.
func (t markingTool) Reconcile(ctx context.Context, call tools.Call) (tools.Result, bool, error) {
	r, ok := t.Tool.(tools.Reconciler)
	if !ok {
		return tools.Result{}, false, fmt.Errorf("reconcile %s: %w", call.Name, errors.ErrUnsupported)
	}
	touch := t.touch(call)
	if noFiles(touch) {
		return r.Reconcile(ctx, call)
	}
	dir, err := t.marker.Open(ctx, call)
	if err != nil {
		return tools.Result{}, false, err
	}
	had := ReadMarks(dir)
	result, done, err := r.Reconcile(ctx, call)
	switch {
	case anyFiles(touch.Writes):
		result.Untrusted = result.Untrusted || call.Untrusted || had.hasAny()
	case !touch.MayWrite():
		result.Untrusted = result.Untrusted || newFileUse(dir, touch).mayShow(had)
	}
	return result, done, err
}

// Run runs the wrapped tool. Before that it marks the files to which the tool may write untrusted content;
// afterwards it marks the result as untrusted if the result may show a marked file.
func (t markingTool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	touch := t.touch(call)
	if noFiles(touch) {
		return t.Tool.Run(ctx, call)
	}
	dir, err := t.marker.Open(ctx, call)
	if err != nil {
		return tools.Result{}, err
	}
	use, had := newFileUse(dir, touch), ReadMarks(dir)
	switch {
	case anyFiles(touch.Writes):
		return t.runCommand(ctx, call, dir, had)
	case touch.MayWrite():
		return t.runWrite(ctx, call, dir, use, had)
	}
	result, err := t.Tool.Run(ctx, call)
	// Another call may have written the file in the meantime; each call marks a file before it writes it.
	if use.mayShow(had) || use.mayShow(ReadMarks(dir)) {
		result.Untrusted = true
	}
	return result, err
}

// runWrite runs a tool that writes files. An error from the tool may quote the content of the files, so it is
// untrusted if they were marked.
func (t markingTool) runWrite(ctx context.Context, call tools.Call, dir Dir, use fileUse, had Marks) (tools.Result, error) {
	if slices.Contains(use.written, MarksFile) {
		return tools.Result{}, tools.Errorf(tools.PermissionDenied, "%s is kept by the system: leave it alone", MarksFile)
	}
	untrusted := call.Untrusted || use.mayCopyMarked(had)
	if untrusted {
		if err := ChangeMarks(dir, t.marker.mayRunJob(ctx, call), use.written, nil); err != nil {
			return tools.Result{}, fmt.Errorf("record that the written text is untrusted: %w", err)
		}
	}
	result, err := t.Tool.Run(ctx, call)
	switch {
	case err != nil:
		result.Untrusted = result.Untrusted || use.mayShow(had) || use.mayShow(ReadMarks(dir))
	case !untrusted && use.readsNothing:
		_ = ChangeMarks(dir, false, nil, use.written) // an extra mark does no harm
	case !use.readsNothing:
		_ = DropMarks(dir, use.written) // drops the marks of files that the call has removed
	}
	return result, err
}

// runCommand runs a tool that may write and read any file, such as one that runs a command. Because the tool may
// also remove the marks, runCommand writes them again afterwards.
func (t markingTool) runCommand(ctx context.Context, call tools.Call, dir Dir, had Marks) (tools.Result, error) {
	if !call.Untrusted && !had.hasAny() {
		return t.Tool.Run(ctx, call)
	}
	if err := ChangeMarks(dir, true, nil, nil); err != nil {
		return tools.Result{}, fmt.Errorf("record that the written text is untrusted: %w", err)
	}
	before := promptedFingerprints(dir)
	result, err := t.Tool.Run(ctx, call)
	result.Untrusted = true
	rewritten := slices.Clone(had.Files)
	for name, now := range promptedFingerprints(dir) {
		if !now.complete || before[name] != now {
			rewritten = append(rewritten, name)
		}
	}
	if failed := ChangeMarks(dir, true, rewritten, nil); failed != nil {
		return tools.Result{Untrusted: true}, errors.Join(err, fmt.Errorf("record that the written text is untrusted: %w", failed))
	}
	return result, err
}

// A fingerprint is a hash of a file, used to detect changes; complete says that all of the file could be read.
type fingerprint struct {
	sum      [sha256.Size]byte
	complete bool
}

// promptedFingerprints returns fingerprints of those files that are part of every prompt and exist.
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

// A fileUse describes how a call uses the files of a workspace, if it writes only files that it names.
type fileUse struct {
	readsAny      bool
	read, written []string // the files that the call names
	readsNothing  bool     // the call reads no files, so the files that it writes contain nothing from others
}

func newFileUse(dir Dir, t tools.Touch) fileUse {
	_, replaces := t.Reads.(tools.NoFiles)
	return fileUse{readsAny: anyFiles(t.Reads), read: namesOf(dir, t.Reads), written: namesOf(dir, t.Writes), readsNothing: replaces}
}

// mayShow reports whether a result may show text from marked files.
func (u fileUse) mayShow(m Marks) bool {
	return m.All || u.readsAny && m.hasAny() || slices.ContainsFunc(u.read, m.Has) || slices.ContainsFunc(u.written, m.Has)
}

// mayCopyMarked reports whether the files that a call writes may contain text from marked files.
func (u fileUse) mayCopyMarked(m Marks) bool {
	return u.readsAny && m.hasAny() || slices.ContainsFunc(u.read, m.Has)
}

// namesOf returns the names of the files that a call names.
func namesOf(dir Dir, of tools.Files) []string {
	paths, _ := of.(tools.Paths)
	var names []string
	for _, p := range paths {
		if name, err := dir.Name(p); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// anyFiles reports whether the call may use any file.
func anyFiles(of tools.Files) bool {
	switch of.(type) {
	case tools.NoFiles, tools.Paths:
		return false
	}
	return true
}

// noFiles reports whether a call neither reads nor writes files.
func noFiles(t tools.Touch) bool {
	_, none := t.Reads.(tools.NoFiles)
	return none && !t.MayWrite()
}
