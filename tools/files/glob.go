package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"time"

	"parley/tools"
	"parley/tools/ignore"
)

// Limits of a search for files.
const (
	maxVisited = 100_000 // directory entries
	maxPaths   = 1000
	maxPattern = 1000 // bytes
)

// Reasons why a search ends early.
var (
	errEnoughFound    = errors.New("enough found")
	errTooManyVisited = errors.New("too many files")
)

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"such as **/*.go, docs/*.md or *.{png,jpg}; ** stands for any number of directories"`
	Path    string `json:"path,omitempty" jsonschema:"directory to search in, relative to the workspace; left out: the whole workspace"`
	Ignored bool   `json:"ignored,omitempty" jsonschema:"also find what .gitignore names and what programs fill, such as node_modules"`
}

type globResult struct {
	Matches   []string `json:"matches"`
	Count     int      `json:"count"`
	Truncated string   `json:"truncated,omitempty"`
	Ignored   string   `json:"ignored,omitempty"`
}

func (b fileTools) glob() tools.Tool {
	about := "Find files and directories of the workspace by a pattern of their paths. Returns paths relative to the workspace, sorted; directories end with a slash. What .gitignore names, and folders such as node_modules, are left out unless ignored is true."
	return tools.New(fileSpec("glob", about, tools.Pure, tools.FileRead, tools.Touches(func(a globArgs) tools.Touch { return tools.TouchBelow(a.Path) })), func(ctx context.Context, call tools.Call, args globArgs) (any, error) {
		// The search begins in the folder that the pattern names: docs/*.md does not visit src.
		base, rest := splitGlob(path.Clean(args.Pattern))
		pattern, err := compileGlobArg("pattern", args.Pattern, rest)
		if err != nil {
			return nil, err
		}
		dir, err := b.open(ctx, call)
		if err != nil {
			return nil, tools.DirError(err)
		}
		if !path.IsAbs(base) {
			base = tools.OrDot(args.Path) + "/" + base
		}
		result, err := findMatches(ctx, dir, base, pattern, args.Ignored)
		if errors.Is(err, fs.ErrNotExist) && args.Path == "" {
			err = nil // the pattern's own directory is missing, so it matches nothing
		}
		if err != nil {
			return nil, tools.DirError(err)
		}
		return result, nil
	})
}

// findMatches returns the files and directories below base whose paths, relative to base, match
// the pattern.
func findMatches(ctx context.Context, dir Dir, base string, pattern *regexp.Regexp, ignored bool) (globResult, error) {
	result := globResult{Matches: []string{}}
	from, err := dir.Name(base)
	if err != nil {
		return result, err
	}
	find := func(ctx context.Context, filter *ignore.Filter) (count int, early string, err error) {
		result.Matches = result.Matches[:0]
		early, err = walk(ctx, dir, from, filter, func(name string, e fs.DirEntry) error {
			if name == from || !pattern.MatchString(tools.RelativeTo(from, name)) {
				return nil
			}
			if len(result.Matches) == maxPaths {
				return errEnoughFound
			}
			if e.IsDir() {
				name += "/"
			}
			result.Matches = append(result.Matches, name)
			return nil
		})
		return len(result.Matches), early, err
	}
	filter := filterFrom(dir, from, ignored)
	result.Count, result.Truncated, err = find(ctx, filter)
	if err == nil && result.Count == 0 {
		result.Ignored, err = countIgnored(ctx, filter, find)
		result.Matches = []string{}
	}
	slices.Sort(result.Matches)
	return result, err
}

// compileGlobArg compiles rest, which is the pattern in a tool's argument, or what is left of that pattern without the
// folder in which the search begins. what is the argument's name, for errors. given is the complete pattern, of which
// only the length is checked.
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

// filterFrom returns the filter that decides what a search beginning in from leaves out.
func filterFrom(dir fs.FS, from string, ignored bool) *ignore.Filter {
	if ignored {
		return ignore.Off()
	}
	return ignore.New(dir, from)
}

// maxCounting is how long a search that found nothing looks for matches among the files that it left out.
const maxCounting = time.Second

// countIgnored returns a text that says how many matches a search would have found without its filter. The search
// found none with it. The text is "" if there would have been none either.
func countIgnored(ctx context.Context, filter *ignore.Filter, find func(context.Context, *ignore.Filter) (int, string, error)) (string, error) {
	if !filter.Skipped() {
		return "", nil
	}
	counting, cancel := context.WithTimeout(ctx, maxCounting)
	defer cancel()
	count, early, err := find(counting, ignore.Off())
	cut := early != "" || err != nil
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && counting.Err() == nil:
		return "", err
	case cut && count == 0:
		return "ignored files were not searched: pass ignored=true", nil
	case cut:
		return fmt.Sprintf("at least %d matches in ignored files: pass ignored=true", count), nil
	case count == 1:
		return "1 match in ignored files: pass ignored=true", nil
	case count > 1:
		return fmt.Sprintf("%d matches in ignored files: pass ignored=true", count), nil
	}
	return "", nil
}

// walk calls visit for a file or, if from is a directory, for everything below it that filter does not leave out,
// in the order of names. It does not follow symbolic links. If it ends early, because visit returns errEnoughFound or
// there are too many files, early says why, worded for the model.
func walk(ctx context.Context, dir fs.FS, from string, filter *ignore.Filter, visit func(name string, e fs.DirEntry) error) (early string, err error) {
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
		case name != from && filter.Skips(name, e.IsDir()):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if visited++; visited > maxVisited {
			return errTooManyVisited
		}
		return visit(name, e)
	})
	switch {
	case errors.Is(err, errEnoughFound):
		return "there is more: narrow the search with a narrower pattern or path", nil
	case errors.Is(err, errTooManyVisited):
		return "there are too many files to search them all: give a path to search in", nil
	}
	return "", err
}
