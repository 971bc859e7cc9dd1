package code

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"

	"parley/tools/code/symbols"
)

// A rank decides which of two symbols is shown first.
type rank struct {
	class    int // how well the name matches; 0 is best
	demotion int // higher for symbols of lesser interest: variables and constants, and above all those of tests
	length   int // of the name
	path     string
	line     int
}

// How well a name matches.
const (
	exactMatch = iota
	sameName   // except for case and separators
	prefixMatch
	subWord       // a word within the name begins with the query
	containsMatch // the name contains the query elsewhere
)

func (r rank) compare(with rank) int {
	return cmp.Or(cmp.Compare(r.class, with.class), cmp.Compare(r.demotion, with.demotion), cmp.Compare(r.length, with.length),
		cmp.Compare(len(r.path), len(with.path)), strings.Compare(r.path, with.path), cmp.Compare(r.line, with.line))
}

// rankOf returns the rank of a symbol whose name matches.
func rankOf(class int, s symbols.Symbol, path string) rank {
	r := rank{class: class, length: len(s.Name), path: path, line: s.Line}
	if s.Kind == symbols.Var || s.Kind == symbols.Const {
		r.demotion++
	}
	if isTest(path) {
		r.demotion += 2
	}
	return r
}

// isTest reports whether a file contains tests, judging by its path.
func isTest(path string) bool {
	path = strings.ToLower(path)
	for _, mark := range []string{"_test.", ".test.", ".spec.", "test_", "tests/", "test/", "testdata/", "fixtures/"} {
		if strings.Contains(path, mark) {
			return true
		}
	}
	return false
}

// A nameMatcher matches the names of symbols.
type nameMatcher struct {
	name          wantedName
	owner, member wantedName     // of a query such as Type.method
	pattern       *regexp.Regexp // instead of a name
}

// A wantedName is a name to look for.
type wantedName struct{ name, simplified string }

func newNameMatcher(query string) nameMatcher {
	n := nameMatcher{name: wantedName{query, simplified(query)}}
	if owner, member, ok := splitQuery(query); ok {
		n.owner, n.member = wantedName{name: owner}, wantedName{member, simplified(member)}
	}
	return n
}

// match returns how well a symbol's name matches; ok is false if it doesn't match.
func (n nameMatcher) match(name, container string) (class int, ok bool) {
	if n.pattern != nil {
		return subWord, n.pattern.MatchString(name)
	}
	if class, ok := n.name.match(name); ok || n.owner.name == "" || !strings.EqualFold(n.owner.name, container) {
		return class, ok
	}
	return n.member.match(name)
}

// splitQuery splits Type.method, Type::method and Type#method; false if a query has none of these forms.
func splitQuery(query string) (owner, member string, ok bool) {
	for _, mark := range []string{"::", ".", "#"} {
		if at := strings.LastIndex(query, mark); at > 0 && at+len(mark) < len(query) {
			owner, member = query[:at], query[at+len(mark):]
			owner = owner[strings.LastIndexAny(owner, ".:#")+1:]
			return strings.Trim(owner, "()*&"), strings.TrimSuffix(member, "()"), true
		}
	}
	return "", "", false
}

// match returns how well a name matches; ok is false if it doesn't match.
func (w wantedName) match(name string) (class int, ok bool) {
	if w.name == name {
		return exactMatch, true
	}
	if w.simplified == "" {
		return 0, false
	}
	plain := simplified(name)
	at := strings.Index(plain, w.simplified)
	switch {
	case at < 0:
		return 0, false
	case w.simplified == plain:
		return sameName, true
	case at == 0:
		return prefixMatch, true
	case hasWord(name, w.simplified):
		return subWord, true
	}
	return containsMatch, true
}

// simplified returns a name in lower case, without characters such as underscores that only separate its words.
func simplified(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '$' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// hasWord reports whether a simplified query matches the name from the beginning of one of its words on. Words are
// separated as in readFile or read_file.
func hasWord(name, query string) bool {
	previous := ' '
	for i, r := range name {
		begins := !unicode.IsUpper(previous) && unicode.IsUpper(r) || !unicode.IsLetter(previous) && unicode.IsLetter(r)
		if begins && strings.HasPrefix(simplified(name[i:]), query) {
			return true
		}
		previous = r
	}
	return false
}
