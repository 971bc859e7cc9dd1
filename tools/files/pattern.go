package files

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"parley/tools"
)

// maxAlternatives limits how many alternatives in braces a path pattern may have.
const maxAlternatives = 64

var (
	errPattern      = errors.New("it is not valid: write something like **/*.go (a [ or { needs its end, a literal one a backslash before it)")
	errAlternatives = errors.New("it has too many alternatives in braces, at most 64 are allowed: search with * instead, or several times")
)

// compileGlob turns a path pattern into a regular expression of about the same length. The time
// that a match takes grows only with the path's length, whatever the pattern.
//
// ** between slashes, with nothing else beside it, matches any number of folders. * matches any
// text within a name, and so does ** elsewhere. ? matches one character of a name, [a-z] and [!a-z]
// one character of a class, and {a,b} one of several patterns. A backslash makes the next character
// literal.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	g := globTranslator{rest: pattern, atStart: true}
	g.out.WriteString(`(?s)^`)
	for g.rest != "" {
		if err := g.translateNext(); err != nil {
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

// splitGlob splits a pattern into base, the folder that contains everything that the pattern
// matches, and the rest of the pattern, which applies to paths below that folder.
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

// A globTranslator turns a path pattern into a regular expression, piece by piece.
type globTranslator struct {
	rest         string
	out          strings.Builder
	atStart      bool   // the next piece begins a name
	braces       []bool // the open braces; true for each brace that opens at the beginning of a name
	alternatives int
}

// translateNext translates the next piece of the pattern, such as a star or a character.
func (g *globTranslator) translateNext() error {
	atStart := g.atStart
	g.atStart = false
	c := g.rest[0]
	switch {
	case atStart && g.translateFolders():
	case c == '*':
		g.rest = strings.TrimLeft(g.rest, "*")
		g.out.WriteString(`[^/]*`)
	case c == '?':
		g.rest = g.rest[1:]
		g.out.WriteString(`[^/]`)
	case c == '[':
		return g.translateClass()
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
		return g.translateLiteral()
	}
	if g.alternatives > maxAlternatives {
		return errAlternatives
	}
	return nil
}

// translateFolders translates ** if nothing else is between the slashes around it; otherwise it
// returns false.
func (g *globTranslator) translateFolders() bool {
	behind, ok := strings.CutPrefix(g.rest, "**")
	switch {
	case !ok:
		return false
	case strings.HasPrefix(behind, "/"):
		for strings.HasPrefix(behind, "/**/") { // several in a row mean the same as one
			behind = behind[3:]
		}
		g.out.WriteString(`(?:[^/]+/)*`)
		g.rest, g.atStart = behind[1:], true
	case g.isAtEnd(behind):
		g.out.WriteString(`.*`)
		g.rest = behind
	default:
		return false
	}
	return true
}

// isAtEnd reports whether rest is at the end of the pattern, or of an alternative: if rest is empty, or begins with the
// end of an alternative in braces.
func (g *globTranslator) isAtEnd(rest string) bool {
	return rest == "" || len(g.braces) > 0 && strings.ContainsAny(rest[:1], ",}")
}

// translateLiteral translates one literal character, or /** at the end of the pattern.
func (g *globTranslator) translateLiteral() error {
	if behind, ok := strings.CutPrefix(g.rest, "/**"); ok && g.isAtEnd(behind) { // matches the folder itself, too
		g.out.WriteString(`(?:/.*)?`)
		g.rest = behind
		return nil
	}
	r, rest, err := nextCharacter(g.rest)
	if err != nil {
		return err
	}
	g.atStart = g.rest[0] == '/'
	g.rest = rest
	g.out.WriteString(regexp.QuoteMeta(r))
	return nil
}

// nextCharacter returns the next character of a pattern, without the backslash before it if there
// is one, and the text after it.
func nextCharacter(text string) (c, rest string, err error) {
	text = strings.TrimPrefix(text, `\`)
	if text == "" {
		return "", "", errPattern
	}
	_, size := utf8.DecodeRuneInString(text)
	return text[:size], text[size:], nil
}

// translateClass translates a class of characters, such as [a-z]. No class matches a slash.
func (g *globTranslator) translateClass() error {
	rest := g.rest[1:]
	negated := strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "^")
	if negated {
		rest = rest[1:]
	}
	var set strings.Builder
	if strings.HasPrefix(rest, "]") {
		return errPattern // the class would be empty
	}
	for !strings.HasPrefix(rest, "]") {
		from, behind, err := nextCharacter(rest)
		if err != nil {
			return err
		}
		to := from
		if ends, ok := strings.CutPrefix(behind, "-"); ok && ends != "" && ends[0] != ']' {
			if to, behind, err = nextCharacter(ends); err != nil {
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
	case set.Len() == 0: // only a slash
		g.out.WriteString(`[^\x00-\x{10FFFF}]`)
	default:
		g.out.WriteString(`[` + set.String() + `]`)
	}
	return nil
}

// classRange returns a range of characters for a class of the regular expression. If the range
// includes the slash, it leaves that out.
func classRange(from, to string) string {
	if from > "/" || to < "/" {
		return quoteClassRune(from) + "-" + quoteClassRune(to)
	}
	var out string
	if from < "/" {
		out = quoteClassRune(from) + "-" + quoteClassRune(".")
	}
	if to > "/" {
		out += quoteClassRune("0") + "-" + quoteClassRune(to)
	}
	return out
}

func quoteClassRune(c string) string {
	if strings.ContainsAny(c, `\]^-[&~`) {
		return `\` + c
	}
	return c
}
