package files

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"parley/tools"
)

// maxAlternatives bounds how many texts in braces a pattern of paths chooses from.
const maxAlternatives = 64

var (
	errPattern      = errors.New("it is not valid: write something like **/*.go (a [ or { needs its end, a literal one a backslash before it)")
	errAlternatives = errors.New("it has too many alternatives in braces, at most 64 are allowed: search with * instead, or several times")
)

// compileGlob makes of a pattern of paths a regular expression of the same
// length, which takes a time that grows with the path alone, whatever the pattern.
//
// ** is any number of folders where it stands alone between slashes, and * there
// or elsewhere anything within a name; ? is one character of a name, [a-z] and
// [!a-z] one of a class, {a,b} one of several texts, which may hold all of these,
// and a backslash takes its meaning from what follows.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	g := globber{rest: pattern, atStart: true}
	g.out.WriteString(`(?s)^`)
	for g.rest != "" {
		if err := g.next(); err != nil {
			return nil, err
		}
	}
	if len(g.braces) > 0 {
		return nil, errPattern
	}
	g.out.WriteString(`$`)
	compiled, _, err := tools.Pattern(g.out.String())
	return compiled, err
}

// splitGlob parts a pattern into the folder in which all that it matches lies,
// and the pattern of what is below.
func splitGlob(pattern string) (base, rest string) {
	at := strings.IndexAny(pattern, `*?[]{}\`)
	if at < 0 {
		at = len(pattern)
	}
	slash := strings.LastIndexByte(pattern[:at], '/')
	switch slash {
	case -1:
		return ".", pattern
	case 0:
		return "/", pattern[1:]
	}
	return pattern[:slash], pattern[slash+1:]
}

// A globber turns a pattern of paths into a regular expression, piece by piece.
type globber struct {
	rest         string
	out          strings.Builder
	atStart      bool   // of a name
	braces       []bool // that are open: was a name begun before each?
	alternatives int
}

// next turns one piece.
func (g *globber) next() error {
	atStart := g.atStart
	g.atStart = false
	c := g.rest[0]
	switch {
	case atStart && g.folders():
	case c == '*':
		g.rest = strings.TrimLeft(g.rest, "*")
		g.out.WriteString(`[^/]*`)
	case c == '?':
		g.rest = g.rest[1:]
		g.out.WriteString(`[^/]`)
	case c == '[':
		return g.class()
	case c == '{':
		g.rest = g.rest[1:]
		g.out.WriteString(`(?:`)
		g.braces, g.atStart = append(g.braces, atStart), atStart
		g.alternatives++
	case c == ',' && len(g.braces) > 0:
		g.rest = g.rest[1:]
		g.out.WriteString(`|`)
		g.atStart = g.braces[len(g.braces)-1]
		g.alternatives++
	case c == '}':
		if len(g.braces) == 0 {
			return errPattern
		}
		g.rest, g.braces = g.rest[1:], g.braces[:len(g.braces)-1]
		g.out.WriteString(`)`)
	default:
		return g.literal()
	}
	if g.alternatives > maxAlternatives {
		return errAlternatives
	}
	return nil
}

// folders turns ** where it stands alone between slashes.
func (g *globber) folders() bool {
	behind, ok := strings.CutPrefix(g.rest, "**")
	switch {
	case !ok:
		return false
	case strings.HasPrefix(behind, "/"):
		for strings.HasPrefix(behind, "/**/") { // several are one
			behind = behind[3:]
		}
		g.out.WriteString(`(?:[^/]+/)*`)
		g.rest, g.atStart = behind[1:], true
	case g.ends(behind):
		g.out.WriteString(`.*`)
		g.rest = behind
	default:
		return false
	}
	return true
}

// ends tells whether a path may end before this rest of the pattern.
func (g *globber) ends(rest string) bool {
	return rest == "" || len(g.braces) > 0 && strings.ContainsAny(rest[:1], ",}")
}

// literal turns one character that stands for itself.
func (g *globber) literal() error {
	if behind, ok := strings.CutPrefix(g.rest, "/**"); ok && g.ends(behind) { // the folder itself, too
		g.out.WriteString(`(?:/.*)?`)
		g.rest = behind
		return nil
	}
	r, rest, err := character(g.rest)
	if err != nil {
		return err
	}
	g.atStart = g.rest[0] == '/'
	g.rest = rest
	g.out.WriteString(regexp.QuoteMeta(r))
	return nil
}

// character is the next one of a pattern, behind its backslash if it has one.
func character(text string) (c, rest string, err error) {
	text = strings.TrimPrefix(text, `\`)
	if text == "" {
		return "", "", errPattern
	}
	_, size := utf8.DecodeRuneInString(text)
	return text[:size], text[size:], nil
}

// class turns a class of characters. None holds a slash.
func (g *globber) class() error {
	rest := g.rest[1:]
	negated := strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "^")
	if negated {
		rest = rest[1:]
	}
	var set strings.Builder
	if strings.HasPrefix(rest, "]") {
		return errPattern // it would hold nothing
	}
	for !strings.HasPrefix(rest, "]") {
		from, behind, err := character(rest)
		if err != nil {
			return err
		}
		to := from
		if ends, ok := strings.CutPrefix(behind, "-"); ok && ends != "" && ends[0] != ']' {
			if to, behind, err = character(ends); err != nil {
				return err
			}
		}
		if to < from {
			return errPattern
		}
		set.WriteString(classRange(from, to))
		rest = behind
	}
	g.rest = rest[1:]
	switch {
	case negated:
		g.out.WriteString(`[^/` + set.String() + `]`)
	case set.Len() == 0: // a slash alone
		g.out.WriteString(`[^\x00-\x{10FFFF}]`)
	default:
		g.out.WriteString(`[` + set.String() + `]`)
	}
	return nil
}

// classRange writes a range of a class, without the slash if it is in it.
func classRange(from, to string) string {
	if from > "/" || to < "/" {
		return classRune(from) + "-" + classRune(to)
	}
	var out string
	if from < "/" {
		out = classRune(from) + "-" + classRune(".")
	}
	if to > "/" {
		out += classRune("0") + "-" + classRune(to)
	}
	return out
}

func classRune(c string) string {
	if strings.ContainsAny(c, `\]^-[&~`) {
		return `\` + c
	}
	return c
}
