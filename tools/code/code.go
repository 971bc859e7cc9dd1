// Package code provides the tools with which an agent finds its way through source code: code_search finds symbols
// and lines, and code_map shows what a project consists of.
//
// They read a session's directory as the file tools do, and keep an index of its symbols in memory. The first call
// builds the index, each call brings it up to date, and a timer drops it when it hasn't been used for a while.
//
// The files: code.go has the tools; index.go keeps the indexes, and refresh.go brings one up to date; search.go
// searches, rank.go says which match comes first, and lines.go reads lines; outline.go makes the map. The package
// symbols reads the languages.
package code

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/code/symbols"
)

// A Dir is the part of a session's directory that these tools need. It should also be an fs.ReadDirFS and an
// fs.StatFS.
type Dir interface {
	fs.FS
	// Name turns a path that a model gives into a name for fs.FS.
	Name(path string) (string, error)
}

// New makes the tools code_search and code_map. open returns the directory of a call's session, and indexes stores the
// indexes.
func New[D Dir](open func(ctx context.Context, call tools.Call) (D, error), indexes *Indexes) []tools.Tool {
	c := codeTools{indexes: indexes, open: func(ctx context.Context, call tools.Call) (Dir, error) { return open(ctx, call) }}
	return []tools.Tool{c.codeSearch(), c.codeMap()}
}

type codeTools struct {
	open    func(ctx context.Context, call tools.Call) (Dir, error)
	indexes *Indexes
}

// codeSpec returns the Spec of a tool that shows what it finds below a path.
func codeSpec(name, description string, touches func(tools.Call) tools.Touch) tools.Spec {
	return tools.Spec{
		Name: name, Description: description, Effect: tools.Pure, Permission: tools.FileRead, Touches: touches,
		Timeout: 10 * time.Second, MaxTimeout: 30 * time.Second,
	}
}

type searchArgs struct {
	Query    string `json:"query" jsonschema:"name of a symbol, a part of one, TYPE.METHOD, or a text in a line"`
	Kind     string `json:"kind,omitempty" jsonschema:"symbol for declarations only, text for lines only; left out: any" enum:"any,symbol,text"`
	Regexp   bool   `json:"regexp,omitempty" jsonschema:"query is a regular expression (RE2) for names and lines"`
	Language string `json:"language,omitempty" jsonschema:"only files of this language, such as go, python or typescript"`
	Path     string `json:"path,omitempty" jsonschema:"directory or file to search in, relative to the workspace; left out: the whole workspace"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many matches; 20 if left out, at most 100"`
	Ignored  bool   `json:"ignored,omitempty" jsonschema:"also search what .gitignore names and what programs fill, such as node_modules"`
}

func (c codeTools) codeSearch() tools.Tool {
	about := "Find where code declares a symbol (function, method, type, class, constant…), or which lines have a text. The best matches come first: symbols of that name, then those that begin with it or have it as a word, then lines. Knows Go, Python, JavaScript, TypeScript, Rust, Java, C, C++, Ruby and PHP. Leaves out what .gitignore names. Prefer it to grep to find a declaration."
	spec := codeSpec("code_search", about, tools.Touches(func(a searchArgs) tools.Touch { return tools.TouchBelow(a.Path) }))
	return tools.New(spec, func(ctx context.Context, call tools.Call, args searchArgs) (any, error) {
		s, err := newSearch(args)
		if err != nil {
			return nil, err
		}
		list, dir, err := c.refreshBelow(ctx, call, args.Path, args.Ignored)
		if err != nil {
			return nil, tools.DirError(err)
		}
		result, err := s.run(ctx, dir, list)
		if err != nil {
			return nil, tools.DirError(err)
		}
		return result, nil
	})
}

type mapArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"directory, relative to the workspace; left out: the whole workspace"`
	Depth int    `json:"depth,omitempty" jsonschema:"how many levels of folders; 2 if left out, at most 6"`
}

func (c codeTools) codeMap() tools.Tool {
	about := "Show what a project consists of, as a short map: its folders with counts of files by language and their main symbols, where programs begin, and the title of its README. Use it first in a project that you don't know."
	spec := codeSpec("code_map", about, tools.Touches(func(a mapArgs) tools.Touch { return tools.TouchBelow(a.Path) }))
	return tools.New(spec, func(ctx context.Context, call tools.Call, args mapArgs) (any, error) {
		if args.Depth < 0 {
			return nil, tools.Errorf(tools.InvalidArgs, "depth counts levels of folders: give 1 to %d, or leave it out", maxMapDepth)
		}
		list, dir, err := c.refreshBelow(ctx, call, args.Path, false)
		if err != nil {
			return nil, tools.DirError(err)
		}
		return map[string]string{"map": outline(dir, list, args.Depth)}, nil
	})
}

// refreshBelow brings the index of a call's session up to date below a path, and returns the files there.
func (c codeTools) refreshBelow(ctx context.Context, call tools.Call, path string, ignored bool) (listing, Dir, error) {
	dir, err := c.open(ctx, call)
	if err != nil {
		return listing{}, nil, err
	}
	from, err := dir.Name(tools.OrDot(path))
	if err != nil {
		return listing{}, nil, err
	}
	list, err := c.indexes.refresh(ctx, call.Session, dir, from, ignored)
	return list, dir, err
}

// languageNamed returns the language that a model names. "" means all languages.
func languageNamed(name string) (string, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	for of, others := range map[string]string{
		"go": "golang", "python": "py python3", "javascript": "js jsx node", "typescript": "ts tsx", "rust": "rs", "c++": "cpp cc cxx", "ruby": "rb",
	} {
		if slices.Contains(strings.Fields(others), name) {
			name = of
		}
	}
	if name == "" || slices.Contains(symbols.Languages(), name) {
		return name, nil
	}
	return "", tools.Errorf(tools.InvalidArgs, "language is one of %s; for other files leave it out", strings.Join(symbols.Languages(), ", "))
}
