package files

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"parley/tools"
)

// Bounds of a search for files.
const (
	maxVisited = 100_000 // directory entries
	maxPaths   = 1000
	maxPattern = 1000 // bytes
)

// Reasons why a search ends early.
var (
	errEnough  = errors.New("enough found")
	errVisited = errors.New("too many files")
)

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"such as **/*.go, docs/*.md or *.{png,jpg}; ** stands for any number of directories"`
	Path    string `json:"path,omitempty" jsonschema:"directory to search in, relative to the workspace; left out: the whole workspace"`
}

type globResult struct {
	Matches   []string `json:"matches"`
	Count     int      `json:"count"`
	Truncated string   `json:"truncated,omitempty"`
}

func (b fileTools) glob() tools.Tool {
	about := "Find files and directories of the workspace by a pattern of their paths. Returns paths relative to the workspace, sorted; directories end with a slash."
	return tools.New(fileSpec("glob", about, tools.Pure, tools.FileRead, tools.Touches(func(a globArgs) tools.Touch { return touchBelow(a.Path) })), func(ctx context.Context, call tools.Call, args globArgs) (any, error) {
		// The search begins in the folder that the pattern names: docs/*.md does not visit src.
		base, rest := splitGlob(path.Clean(args.Pattern))
		pattern, err := compileGlobArg("pattern", args.Pattern, rest)
		if err != nil {
			return nil, err
		}
		dir, err := b.open(ctx, call)
		if err != nil {
			return nil, asToolError(err)
		}
		if !path.IsAbs(base) {
			base = orDot(args.Path) + "/" + base
		}
		result, err := findMatches(ctx, dir, base, pattern)
		if errors.Is(err, fs.ErrNotExist) && args.Path == "" {
			err = nil // the pattern's own directory is missing: it matches nothing
		}
		if err != nil {
			return nil, asToolError(err)
		}
		return result, nil
	})
}

// findMatches returns the files and directories below base whose paths, relative to base, match
// the pattern.
func findMatches(ctx context.Context, dir Dir, base string, pattern *regexp.Regexp) (globResult, error) {
	result := globResult{Matches: []string{}}
	from, err := dir.Name(base)
	if err != nil {
		return result, err
	}
	result.Truncated, err = walk(ctx, dir, from, func(name string, e fs.DirEntry) error {
		if name == from || !pattern.MatchString(relativeTo(from, name)) {
			return nil
		}
		if len(result.Matches) == maxPaths {
			return errEnough
		}
		if e.IsDir() {
			name += "/"
		}
		result.Matches = append(result.Matches, name)
		return nil
	})
	slices.Sort(result.Matches)
	result.Count = len(result.Matches)
	return result, err
}

// compileGlobArg turns rest into a regular expression: a pattern of paths, or what remains of it
// without the folder in which the search begins. Its errors show the whole pattern, given, and
// the name of the tool's argument, what.
func compileGlobArg(what, given, rest string) (*regexp.Regexp, error) {
	if given == "" || len(given) > maxPattern {
		return nil, tools.Errorf(tools.InvalidArgs, "%s is a pattern of 1 to %d bytes, such as **/*.go", what, maxPattern)
	}
	compiled, err := compileGlob(rest)
	if err != nil {
		return nil, tools.Errorf(tools.InvalidArgs, "%s is a pattern of paths: %v", what, err)
	}
	return compiled, nil
}

// relativeTo returns a name relative to the directory from in which the search began.
func relativeTo(from, name string) string {
	if from == "." {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, from), "/")
}

// isSkippedFolder reports whether a folder is left out of searches unless the model gives a path
// into it: git's own, and the one with results that were too long for the model.
func isSkippedFolder(name string) bool { return name == ".git" || name == ".agent" }

// walk calls visit for a file or, if from is a directory, for everything below it, in the order
// of names. It does not follow symbolic links. If it ends before the end, early says why, in
// words for the model.
func walk(ctx context.Context, dir fs.FS, from string, visit func(name string, e fs.DirEntry) error) (early string, err error) {
	visited := 0
	err = fs.WalkDir(dir, from, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name != from && !errors.Is(err, context.Canceled):
			return nil // the entry has gone or may not be read; the rest is still searched
		case err != nil:
			return err
		case name == from && e.IsDir():
			return nil
		case e.IsDir() && isSkippedFolder(e.Name()):
			return fs.SkipDir
		}
		if visited++; visited > maxVisited {
			return errVisited
		}
		return visit(name, e)
	})
	switch {
	case errors.Is(err, errEnough):
		return "there is more: narrow the search with a narrower pattern or path", nil
	case errors.Is(err, errVisited):
		return "there are too many files to search them all: give a path to search in", nil
	}
	return "", err
}
