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

// Bounds of a search.
const (
	maxVisited = 100_000 // entries of directories
	maxPaths   = 1000
	maxPattern = 1000 // bytes
)

// Why a search ends early.
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

func (b box) glob() tools.Tool {
	about := "Find files and directories of the workspace by a pattern of their paths. Returns paths relative to the workspace, sorted; directories end with a slash."
	return tools.New(spec("glob", about, tools.Pure, tools.FileRead), func(ctx context.Context, call tools.Call, args globArgs) (any, error) {
		// The search begins where the pattern does: docs/*.md does not visit src.
		base, rest := splitGlob(path.Clean(args.Pattern))
		pattern, err := globOf("pattern", args.Pattern, rest)
		if err != nil {
			return nil, err
		}
		dir, err := b.open(ctx, call)
		if err != nil {
			return nil, failure(err)
		}
		if !path.IsAbs(base) {
			base = orDot(args.Path) + "/" + base
		}
		result, err := matching(ctx, dir, base, pattern)
		if errors.Is(err, fs.ErrNotExist) && args.Path == "" {
			err = nil // the pattern's own directory is missing: it matches nothing
		}
		if err != nil {
			return nil, failure(err)
		}
		return result, nil
	})
}

// matching finds what matches below a directory.
func matching(ctx context.Context, dir Dir, base string, pattern *regexp.Regexp) (globResult, error) {
	result := globResult{Matches: []string{}}
	from, err := dir.Name(base)
	if err != nil {
		return result, err
	}
	result.Truncated, err = walk(ctx, dir, from, func(name string, e fs.DirEntry) error {
		if name == from || !pattern.MatchString(below(from, name)) {
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

// globOf compiles a pattern of paths, or the part of a given one that is left.
func globOf(what, given, rest string) (*regexp.Regexp, error) {
	if given == "" || len(given) > maxPattern {
		return nil, tools.Errorf(tools.InvalidArgs, "%s is a pattern of 1 to %d bytes, such as **/*.go", what, maxPattern)
	}
	compiled, err := compileGlob(rest)
	if err != nil {
		return nil, tools.Errorf(tools.InvalidArgs, "%s is a pattern of paths: %v", what, err)
	}
	return compiled, nil
}

// below is a name seen from the directory where the search began.
func below(from, name string) string {
	if from == "." {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, from), "/")
}

// aside tells whether a directory is searched only if the path leads into it:
// what git keeps, and what results were too long to show.
func aside(name string) bool { return name == ".git" || name == ".agent" }

// walk visits what is below a directory, or a file, in the order of names.
// Symbolic links are not followed. The text says why it ended early, if it did.
func walk(ctx context.Context, dir fs.FS, from string, visit func(name string, e fs.DirEntry) error) (early string, err error) {
	visited := 0
	err = fs.WalkDir(dir, from, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name != from && !errors.Is(err, context.Canceled):
			return nil // gone, or not ours to read: the rest is still worth finding
		case err != nil:
			return err
		case name == from && e.IsDir():
			return nil
		case e.IsDir() && aside(e.Name()):
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
