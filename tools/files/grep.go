package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/ignore"
)

// Limits of a search for text.
const (
	maxMatches      = 200
	maxSearchedLine = 64 << 10 // bytes of a line that are searched
	maxShownLine    = 400      // bytes of a line that are shown
	maxContext      = 10       // how many lines before and after a match are shown at most
)

type grepArgs struct {
	Pattern string `json:"pattern" jsonschema:"regular expression (RE2); (?i) in front ignores case"`
	Path    string `json:"path,omitempty" jsonschema:"directory or file to search in, relative to the workspace; left out: the whole workspace"`
	Glob    string `json:"glob,omitempty" jsonschema:"search only files whose path or name matches, such as *.go or src/**/*.ts"`
	Context int    `json:"context,omitempty" jsonschema:"how many lines to show before and after each match, at most 10"`
	Ignored bool   `json:"ignored,omitempty" jsonschema:"also search what .gitignore names and what programs fill, such as node_modules"`
}

type match struct {
	Path   string   `json:"path"`
	Line   int      `json:"line"`
	Text   string   `json:"text"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

type grepResult struct {
	Matches   []match `json:"matches"`
	Count     int     `json:"count"`
	Truncated string  `json:"truncated,omitempty"`
	Ignored   string  `json:"ignored,omitempty"`
}

func (b fileTools) grep() tools.Tool {
	about := "Search the text files of the workspace for a regular expression, line by line. Returns path, line number and text of each match; files that are no text are skipped, long lines shortened. What .gitignore names, and folders such as node_modules, are left out unless ignored is true."
	return tools.New(fileSpec("grep", about, tools.Pure, tools.FileRead, tools.Touches(func(a grepArgs) tools.Touch { return tools.TouchBelow(a.Path) })), func(ctx context.Context, call tools.Call, args grepArgs) (any, error) {
		s, err := newSearch(args)
		if err != nil {
			return nil, err
		}
		dir, err := b.open(ctx, call)
		if err != nil {
			return nil, tools.DirError(err)
		}
		from, err := dir.Name(tools.OrDot(args.Path))
		if err != nil {
			return nil, tools.DirError(err)
		}
		result, err := s.run(ctx, dir, from, args.Ignored)
		if err != nil {
			return nil, tools.DirError(err)
		}
		return result, nil
	})
}

// run searches the files below from.
func (s *search) run(ctx context.Context, dir Dir, from string, ignored bool) (grepResult, error) {
	find := func(ctx context.Context, filter *ignore.Filter) (count int, early string, err error) {
		early, err = walk(ctx, dir, from, filter, func(name string, e fs.DirEntry) error {
			if !e.Type().IsRegular() || !s.wantsFile(tools.RelativeTo(from, name), e.Name()) {
				return nil
			}
			return s.searchFile(ctx, dir, name)
		})
		return len(s.found), early, err
	}
	filter := filterFrom(dir, from, ignored)
	count, early, err := find(ctx, filter)
	result := grepResult{Matches: s.found, Count: count, Truncated: early}
	if err == nil && count == 0 {
		result.Ignored, err = countIgnored(ctx, filter, find)
	}
	return result, err
}

// A search is one call of the tool grep, with the matches so far.
type search struct {
	text       scanner
	glob       *regexp.Regexp // nil matches every file
	matchNames bool           // glob contains no slash, so it may match just the name
	context    int
	found      []match
}

func newSearch(args grepArgs) (*search, error) {
	s := &search{context: min(max(args.Context, 0), maxContext), found: []match{}}
	var err error
	if args.Glob != "" {
		if s.glob, err = compileGlobArg("glob", args.Glob, args.Glob); err != nil {
			return nil, err
		}
		s.matchNames = !strings.Contains(args.Glob, "/")
	}
	s.text, err = newScanner(args.Pattern)
	return s, err
}

// wantsFile reports whether the call's file name pattern allows searching this file.
func (s *search) wantsFile(name, base string) bool {
	if s.glob == nil || name == "" {
		return true
	}
	return s.glob.MatchString(name) || s.matchNames && s.glob.MatchString(base)
}

// searchFile searches one file. It skips a file that cannot be read or is not text.
func (s *search) searchFile(ctx context.Context, dir fs.FS, name string) error {
	file, err := dir.Open(name)
	if err != nil {
		return nil //nolint:nilerr // the file has gone or may not be read, and is skipped
	}
	err = s.searchLines(ctx, bufio.NewReaderSize(cancelableReader(ctx, file), maxSearchedLine), name)
	_ = file.Close() // it was only read
	return err
}

// searchLines searches the lines of one file and records the matches with their context. It returns errEnoughFound once there
// are maxMatches.
func (s *search) searchLines(ctx context.Context, from *bufio.Reader, name string) error {
	if start, err := from.Peek(tools.SniffBytes); err != nil && !errors.Is(err, io.EOF) || tools.IsBinary(start) {
		return ctx.Err() // a file that cannot be read is skipped, unless the call has ended
	}
	var before []string
	var open []int // matches that still need lines after them
	for number := 1; ; number++ {
		line, err := nextLine(from)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		hit, err := s.text.matches(ctx, line)
		if err != nil {
			return err
		}
		if hit && len(s.found) == maxMatches {
			return errEnoughFound
		}
		if !hit && s.context == 0 {
			continue
		}
		text := tools.ShortenLine(string(line), maxShownLine)
		open = slices.DeleteFunc(open, func(i int) bool {
			s.found[i].After = append(s.found[i].After, text)
			return len(s.found[i].After) == s.context
		})
		if hit {
			s.found = append(s.found, match{Path: name, Line: number, Text: text, Before: slices.Clone(before)})
		}
		if s.context > 0 {
			if hit {
				open = append(open, len(s.found)-1)
			}
			before = append(before, text)
			before = before[max(0, len(before)-s.context):]
		}
	}
}

// nextLine reads one line without its end, or the beginning of a very long line. The line is
// valid until the next call.
func nextLine(from *bufio.Reader) ([]byte, error) {
	line, err := from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = from.ReadSlice('\n')
		}
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = nil
	}
	return bytes.TrimRight(line, "\r\n"), err
}
