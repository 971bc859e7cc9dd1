package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"parley/tools"
	"parley/tools/plainjson"
)

type patchArgs struct {
	Patch string `json:"patch" jsonschema:"a unified diff: lines --- a/PATH and +++ b/PATH, /dev/null for a new or removed file, then hunks that begin with @@ and give a few unchanged lines around each change"`
}

func (b fileTools) applyPatch() tools.Tool {
	about := "Apply a unified diff to files of the workspace: change, add, remove and rename several at once. All of it is applied, or nothing; an error names the hunk that does not fit. " +
		"The unchanged lines of a hunk must be as they are in the file, to the letter; its line numbers may be off."
	touch := func(a patchArgs) tools.Touch {
		paths := tools.Paths(patchPaths(a.Patch))
		return tools.Touch{Subject: paths, Reads: paths, Writes: paths, Outward: tools.NothingOutward{}}
	}
	spec := fileSpec("apply_patch", about, tools.Reconcilable, tools.FileWrite, tools.Touches(touch))
	spec.Shows = tools.Shows(func(a patchArgs) tools.Showing { return tools.Showing{Text: a.Patch, ShownArgs: []string{"patch"}} })
	return tools.New(spec, b.patch, tools.Reconcile(b.reconcilePatch))
}

// A change replaces the content of one path; nil means that there is no file.
type change struct {
	path     string
	old, new []byte
}

// A patchedFile describes one changed file to the model.
type patchedFile struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

func (b fileTools) patch(ctx context.Context, call tools.Call, args patchArgs) (any, error) {
	list, err := parsePatch(args.Patch)
	if err != nil {
		return nil, err
	}
	dir, err := b.open(ctx, call)
	if err != nil {
		return nil, tools.DirError(err)
	}
	begun, err := readIntent(dir, call.Key)
	if err != nil {
		return nil, tools.DirError(err)
	}
	changes, err := planChanges(ctx, dir, list, begun)
	if err != nil {
		return nil, err
	}
	if begun == nil {
		if err := writeIntent(dir, call.Key, changes); err != nil {
			return nil, tools.DirError(err)
		}
	}
	if err := makeChanges(ctx, dir, changes); err != nil {
		return nil, err
	}
	return patchResult(list), nil
}

// patchResult returns what a patch has changed, for the model.
func patchResult(list []filePatch) map[string][]patchedFile {
	var files []patchedFile
	for _, f := range list {
		one := patchedFile{Path: f.displayPath()}
		for _, h := range f.hunks {
			one.Added += h.added
			one.Removed += h.removed
		}
		files = append(files, one)
	}
	return map[string][]patchedFile{"files": files}
}

// planChanges returns the changes that a patch makes, path by path. If an earlier run of the call
// was cut off, begun is what that run recorded, and planChanges leaves out the changes that were
// already made.
func planChanges(ctx context.Context, dir Dir, list []filePatch, begun *intent) ([]change, error) {
	var all []change
	names := map[string]bool{}
	for _, f := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		made, err := planFile(ctx, dir, f, begun)
		if err != nil {
			return nil, err
		}
		for _, c := range made {
			if names[c.path] {
				return nil, tools.Errorf(tools.InvalidArgs, "%q is in the patch twice: put its hunks together", shorten(c.path))
			}
			names[c.path] = true
		}
		all = append(all, made...)
	}
	return all, nil
}

// planFile returns the changes that a patch makes for one file; there are two if the file is
// renamed.
func planFile(ctx context.Context, dir Dir, f filePatch, begun *intent) ([]change, error) {
	var err error
	for _, path := range []*string{&f.from, &f.to} {
		if *path == "" {
			continue
		}
		if *path, err = dir.Name(*path); err != nil {
			return nil, tools.DirError(err)
		}
	}
	if begun.isDone(dir, f.from) && begun.isDone(dir, f.to) {
		return nil, nil
	}
	var old, at []byte
	if f.from != "" {
		if old, err = readWhole(dir, f.from); err != nil {
			return nil, tools.DirError(err)
		}
		old = nonNil(old)
	}
	if f.to != f.from && f.to != "" && !begun.isDone(dir, f.to) {
		if at, err = readIfExists(dir, f.to); err != nil {
			return nil, tools.DirError(err)
		}
		if at != nil {
			return nil, tools.Errorf(tools.InvalidArgs, "%q exists already: patch it, or remove it first", shorten(f.to))
		}
	}
	made, err := f.apply(ctx, old)
	switch {
	case err != nil:
		return nil, err
	case f.to == "":
		return []change{{f.from, old, nil}}, nil
	case f.to == f.from:
		return []change{{f.to, old, made}}, nil
	case f.from == "":
		return []change{{f.to, nil, made}}, nil
	}
	renamed := []change{{f.to, nil, made}, {f.from, old, nil}}
	return slices.DeleteFunc(renamed, func(c change) bool { return begun.isDone(dir, c.path) }), nil
}

// readIfExists returns a file's content, or nil if there is no such file.
func readIfExists(dir Dir, path string) ([]byte, error) {
	content, err := readWhole(dir, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nonNil(content), err
}

// nonNil returns content, or an empty slice for nil, because nil means that there is no file.
func nonNil(content []byte) []byte {
	if content == nil {
		return []byte{}
	}
	return content
}

// errChanged says that a file no longer has the content for which the patch was made.
var errChanged = errors.New("it was changed meanwhile")

// makeChanges makes the changes in order. If one fails, it undoes the previous ones.
func makeChanges(ctx context.Context, dir Dir, changes []change) error {
	for i, c := range changes {
		err := ctx.Err()
		if err == nil {
			err = c.applyTo(dir)
		}
		if err == nil {
			continue
		}
		var stuck []string
		for _, done := range slices.Backward(changes[:i]) {
			back := change{done.path, done.new, done.old}
			if back.applyTo(dir) != nil {
				stuck = append(stuck, done.path)
			}
		}
		if len(stuck) > 0 {
			return tools.Errorf(tools.ExecutionFailed, "%q could not be patched (%v), and these stay changed: %q", shorten(c.path), err, stuck)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return tools.Errorf(tools.ExecutionFailed, "nothing was changed, because %q could not be patched: %v", shorten(c.path), err)
	}
	return nil
}

// applyTo makes the change if the file still has its old content; otherwise it returns errChanged.
// A file to be removed may already be gone.
func (c change) applyTo(dir Dir) error {
	if c.new == nil {
		now, err := readIfExists(dir, c.path)
		switch {
		case err != nil:
			return err
		case now == nil:
			return nil
		case !bytes.Equal(now, c.old):
			return errChanged
		}
		return dir.Remove(c.path)
	}
	return dir.Update(c.path, maxFileBytes, func(now []byte) ([]byte, error) {
		if (now == nil) != (c.old == nil) || !bytes.Equal(now, c.old) {
			return nil, errChanged
		}
		return c.new, nil
	})
}

// intentFile is the file in which a call records which changes it is about to make, so that the
// process that continues after a crash can tell which were already made. The next patch overwrites
// it.
const intentFile = ".agent/patch.json"

// An intent records what a call was about to do: for each path the hashes of its old and new
// content; "" means that there is no file.
type intent struct {
	Call  string                  `json:"call"`
	Files map[string]intentChange `json:"files"`
}

type intentChange struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// hashOf returns the hash of a content; "" for nil, which means that there is no file.
func hashOf(content []byte) string {
	if content == nil {
		return ""
	}
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// writeIntent records the changes that a call is about to make.
func writeIntent(dir Dir, call string, changes []change) error {
	i := intent{Call: call, Files: map[string]intentChange{}}
	for _, c := range changes {
		i.Files[c.path] = intentChange{hashOf(c.old), hashOf(c.new)}
	}
	raw, err := plainjson.Marshal(i)
	if err != nil {
		return err
	}
	return dir.Write(intentFile, raw)
}

// readIntent returns what a call was about to do when it was cut off; nil if it had not recorded
// that yet.
func readIntent(dir Dir, call string) (*intent, error) {
	raw, err := readIfExists(dir, intentFile)
	if err != nil || raw == nil {
		return nil, err
	}
	var i intent
	if json.Unmarshal(raw, &i) != nil || i.Call != call {
		return nil, nil
	}
	return &i, nil
}

// isDone reports whether the file at a path already has the content that the patch gives it. It returns true for the
// path "", and false if the intent is nil.
func (i *intent) isDone(dir Dir, path string) bool {
	if i == nil {
		return false
	}
	if path == "" {
		return true
	}
	c, ok := i.Files[path]
	if !ok {
		return false
	}
	now, err := readIfExists(dir, path)
	return err == nil && hashOf(now) == c.New
}

// reconcilePatch finds out whether a patch was applied when its call was cut off. A patch that was
// applied only in part isn't reported as done: the call then runs again, and does the rest.
func (b fileTools) reconcilePatch(ctx context.Context, call tools.Call, args patchArgs) (any, bool, error) {
	list, err := parsePatch(args.Patch)
	if err != nil {
		return nil, false, nil // running it says why
	}
	dir, err := b.open(ctx, call)
	if err != nil {
		return nil, false, err
	}
	begun, err := readIntent(dir, call.Key)
	if err != nil || begun == nil {
		return nil, false, err
	}
	all := true
	for path, c := range begun.Files {
		now, err := readIfExists(dir, path)
		if err != nil {
			return nil, false, err
		}
		switch hashOf(now) {
		case c.New:
		case c.Old:
			all = false
		default:
			return nil, false, errUnclear
		}
	}
	return patchResult(list), all, nil
}
