package code

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/tools"
)

// Limits of a search.
const (
	defaultLimit = 20
	maxLimit     = 100
	maxQuery     = 500
	maxRanked    = 20_000 // matching symbols, of which the best are shown
)

// A match is one symbol or line that was found.
type match struct {
	Path      string `json:"path"`
	Line      int    `json:"line"`
	Kind      string `json:"kind"` // the kind of symbol; "text" for a line
	Name      string `json:"name,omitempty"`
	Container string `json:"container,omitempty"`
	Text      string `json:"text"`

	rank rank
}

type searchResult struct {
	Matches   []match `json:"matches"`
	Count     int     `json:"count"`
	Truncated string  `json:"truncated,omitempty"`
	Ignored   string  `json:"ignored,omitempty"`
}

// A search is one call of code_search.
type search struct {
	symbols, lines bool
	language       string
	limit          int
	names          nameMatcher
	texts          lineMatcher

	began   time.Time
	matched int // how many symbols match
	found   []match
	early   string // why the search ended early; "" if it did not
}

func newSearch(args searchArgs) (*search, error) {
	query := strings.TrimSpace(args.Query)
	if args.Regexp {
		query = args.Query
	}
	if query == "" || len(query) > maxQuery {
		return nil, tools.Errorf(tools.InvalidArgs, "query is a name or a text of 1 to %d bytes", maxQuery)
	}
	s := &search{symbols: args.Kind != "text", lines: args.Kind != "symbol", limit: min(args.Limit, maxLimit), began: time.Now()}
	if s.limit <= 0 {
		s.limit = defaultLimit
	}
	var err error
	if s.language, err = languageNamed(args.Language); err != nil {
		return nil, err
	}
	s.names, s.texts = newNameMatcher(query), newLineMatcher(query)
	if args.Regexp {
		compiled, steps, err := tools.Pattern(query)
		if err != nil {
			return nil, tools.Errorf(tools.InvalidArgs, "query is no regular expression that can be used (RE2, without lookaround and backreferences): %v", err)
		}
		s.names.pattern, s.texts = compiled, lineMatcher{pattern: compiled, steps: steps}
	}
	return s, nil
}

// run searches the files of a listing.
func (s *search) run(ctx context.Context, dir Dir, list listing) (searchResult, error) {
	s.early = list.cutReason
	if s.symbols {
		s.findSymbols(list)
	}
	declared := len(s.found)
	if s.lines && declared < s.limit {
		if err := s.findLines(ctx, dir, list); err != nil {
			return searchResult{}, err
		}
	}
	if err := showLines(ctx, dir, s.found[:declared]); err != nil {
		return searchResult{}, err
	}
	result := searchResult{Matches: s.found, Count: len(s.found), Truncated: s.early}
	if len(s.found) == 0 {
		result.Matches = []match{}
		if list.skipped {
			result.Ignored = "ignored files were not searched: pass ignored=true"
		}
	}
	return result, nil
}

// findSymbols finds the symbols whose names match best.
func (s *search) findSymbols(list listing) {
	for _, f := range list.files {
		if s.language != "" && f.language != s.language {
			continue
		}
		for _, symbol := range f.symbols {
			class, ok := s.names.match(symbol.Name, symbol.Container)
			if !ok {
				continue
			}
			s.matched++
			s.found = append(s.found, match{
				Path: f.name, Line: symbol.Line, Kind: symbol.Kind, Name: symbol.Name, Container: symbol.Container,
				rank: rankOf(class, symbol, f.name),
			})
			if len(s.found) == maxRanked {
				s.keepBest()
			}
		}
	}
	if more := s.matched - s.limit; more > 0 && s.early == "" {
		s.early = fmt.Sprintf("%d more symbols match: narrow the search, or raise limit", more)
	}
	s.keepBest()
}

// keepBest sorts the matches, the best ones first, and keeps at most limit of them.
func (s *search) keepBest() {
	slices.SortStableFunc(s.found, func(a, b match) int { return a.rank.compare(b.rank) })
	s.found = s.found[:min(len(s.found), s.limit)]
}

// findLines finds lines that contain the text, until there is no room for more matches.
func (s *search) findLines(ctx context.Context, dir Dir, list listing) error {
	known := map[string]map[int]bool{}
	for _, m := range s.found {
		if known[m.Path] == nil {
			known[m.Path] = map[int]bool{}
		}
		known[m.Path][m.Line] = true
	}
	large := 0
	for _, f := range list.files {
		if s.language != "" && f.language != s.language {
			continue
		}
		if f.size > maxSearched {
			large++
			continue
		}
		if time.Since(s.began) > 2*maxTime {
			s.early = "not all lines were searched, which takes too long: give a path or a language"
			return nil
		}
		content, ok := readText(dir, f.name, maxSearched)
		if !ok {
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		if full, err := s.findInFile(ctx, f.name, content, known[f.name]); err != nil || full {
			return err
		}
	}
	if large > 0 && s.early == "" {
		s.early = fmt.Sprintf("files of more than %d MB (%d of them) were not searched: use grep", maxSearched>>20, large)
	}
	return nil
}

// findInFile finds lines in one file; full says that there is no room for more.
func (s *search) findInFile(ctx context.Context, name, content string, known map[int]bool) (full bool, err error) {
	err = s.texts.forEachMatch(ctx, content, func(number int, line string) bool {
		switch {
		case known[number]:
			return true
		case len(s.found) == s.limit:
			full = true
			if s.early == "" {
				s.early = "there is more: narrow the search, or raise limit"
			}
			return false
		}
		s.found = append(s.found, match{Path: name, Line: number, Kind: "text", Text: tools.ShortenLine(strings.TrimSpace(line), maxShown)})
		return true
	})
	return full, err
}
