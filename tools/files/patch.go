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
)

type patchArgs struct {
	Patch string `json:"patch" jsonschema:"a unified diff: lines --- a/PATH and +++ b/PATH, /dev/null for a new or removed file, then hunks that begin with @@ and give a few unchanged lines around each change"`
}

func (b fileTools) applyPatch() tools.Tool {
	about := "Apply a unified diff to files of the workspace: change, add, remove and rename several at once. All of it is applied, or nothing; an error names the hunk that does not fit. " +
		"The unchanged lines of a hunk must be as they are in the file, to the letter; its line numbers may be off."
	return tools.New(spec("apply_patch", about, tools.Reconcilable, tools.FileWrite), b.patch, tools.Reconcile(b.patched))
}

// A change is what becomes of one path: from one content to another. Nil is no file.
type change struct {
	path     string
	old, new []byte
}

// A patchedFile is what is told of one.
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
		return nil, asToolError(err)
	}
	begun, err := readIntent(dir, call.Key)
	if err != nil {
		return nil, asToolError(err)
	}
	changes, err := plan(ctx, dir, list, begun)
	if err != nil {
		return nil, err
	}
	if begun == nil {
		if err := writeIntent(dir, call.Key, changes); err != nil {
			return nil, asToolError(err)
		}
	}
	if err := commit(ctx, dir, changes); err != nil {
		return nil, err
	}
	return patchDone(list), nil
}

func patchDone(list []filePatch) map[string][]patchedFile {
	var files []patchedFile
	for _, f := range list {
		one := patchedFile{Path: f.path()}
		for _, h := range f.hunks {
			one.Added += h.added
			one.Removed += h.removed
		}
		files = append(files, one)
	}
	return map[string][]patchedFile{"files": files}
}

// plan works out what becomes of each path. Of a patch that was begun, and cut off,
// what has been done already is left out.
func plan(ctx context.Context, dir Dir, list []filePatch, begun *intent) ([]change, error) {
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
				return nil, tools.Errorf(tools.InvalidArgs, "%q is in the patch twice: put its hunks together", short(c.path))
			}
			names[c.path] = true
		}
		all = append(all, made...)
	}
	return all, nil
}

// planFile works out what becomes of the paths of one file: two, where it is renamed.
func planFile(ctx context.Context, dir Dir, f filePatch, begun *intent) ([]change, error) {
	var err error
	for _, path := range []*string{&f.from, &f.to} {
		if *path == "" {
			continue
		}
		if *path, err = dir.Name(*path); err != nil {
			return nil, asToolError(err)
		}
	}
	if begun.done(dir, f.from) && begun.done(dir, f.to) {
		return nil, nil
	}
	var old, at []byte
	if f.from != "" {
		if old, err = readWhole(dir, f.from); err != nil {
			return nil, asToolError(err)
		}
		old = orEmpty(old)
	}
	if f.to != f.from && f.to != "" && !begun.done(dir, f.to) {
		if at, err = wholeOrNone(dir, f.to); err != nil {
			return nil, asToolError(err)
		}
		if at != nil {
			return nil, tools.Errorf(tools.InvalidArgs, "%q exists already: patch it, or remove it first", short(f.to))
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
	return slices.DeleteFunc(renamed, func(c change) bool { return begun.done(dir, c.path) }), nil
}

// wholeOrNone is a file's content, nil where there is none.
func wholeOrNone(dir Dir, path string) ([]byte, error) {
	content, err := readWhole(dir, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return orEmpty(content), err
}

func orEmpty(content []byte) []byte {
	if content == nil {
		return []byte{}
	}
	return content
}

// errChanged says that a file is not any more what the patch was made for.
var errChanged = errors.New("it was changed meanwhile")

// commit makes the changes. Where one fails, those before it are taken back.
func commit(ctx context.Context, dir Dir, changes []change) error {
	for i, c := range changes {
		err := ctx.Err()
		if err == nil {
			err = c.make(dir)
		}
		if err == nil {
			continue
		}
		var stuck []string
		for _, done := range slices.Backward(changes[:i]) {
			back := change{done.path, done.new, done.old}
			if back.make(dir) != nil {
				stuck = append(stuck, done.path)
			}
		}
		if len(stuck) > 0 {
			return tools.Errorf(tools.ExecutionFailed, "%q could not be patched (%v), and these stay changed: %q", short(c.path), err, stuck)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return tools.Errorf(tools.ExecutionFailed, "nothing was changed, because %q could not be patched: %v", short(c.path), err)
	}
	return nil
}

// make makes a change, if the file is still what it was.
func (c change) make(dir Dir) error {
	if c.new == nil {
		now, err := wholeOrNone(dir, c.path)
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
	return dir.Update(c.path, maxWhole, func(now []byte) ([]byte, error) {
		if (now == nil) != (c.old == nil) || !bytes.Equal(now, c.old) {
			return nil, errChanged
		}
		return c.new, nil
	})
}

// intentFile is where a call notes what it is about to do, so that whoever goes on
// after a crash can tell what of it was done. The next patch writes over it.
const intentFile = ".agent/patch.json"

// An intent is what a call was about to do: by path, the sums of what a file held
// and will hold; "" is no file.
type intent struct {
	Call  string                  `json:"call"`
	Files map[string]intentChange `json:"files"`
}

type intentChange struct {
	Old string `json:"old"`
	New string `json:"new"`
}

func sum(content []byte) string {
	if content == nil {
		return ""
	}
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

func writeIntent(dir Dir, call string, changes []change) error {
	i := intent{Call: call, Files: map[string]intentChange{}}
	for _, c := range changes {
		i.Files[c.path] = intentChange{sum(c.old), sum(c.new)}
	}
	raw, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return dir.Write(intentFile, raw)
}

// readIntent is what a call was about to do when it was cut off; nil if it had not
// come so far.
func readIntent(dir Dir, call string) (*intent, error) {
	raw, err := wholeOrNone(dir, intentFile)
	if err != nil || raw == nil {
		return nil, err
	}
	var i intent
	if json.Unmarshal(raw, &i) != nil || i.Call != call {
		return nil, nil
	}
	return &i, nil
}

// done tells whether a path is what the patch makes of it. No path is.
func (i *intent) done(dir Dir, path string) bool {
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
	now, err := wholeOrNone(dir, path)
	return err == nil && sum(now) == c.New
}

// patched finds out whether a patch that was cut off was applied. One that was begun
// and has not come to its end is run once more, and does the rest.
func (b fileTools) patched(ctx context.Context, call tools.Call, args patchArgs) (any, bool, error) {
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
		now, err := wholeOrNone(dir, path)
		if err != nil {
			return nil, false, err
		}
		switch sum(now) {
		case c.New:
		case c.Old:
			all = false
		default:
			return nil, false, errUnclear
		}
	}
	return patchDone(list), all, nil
}
