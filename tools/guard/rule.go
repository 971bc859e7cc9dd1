package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/tools/guard/shellline"
)

// A Rule matches calls: all calls of a tool (TOOL), or those whose text matches a pattern (TOOL(PATTERN)). In both,
// * matches any text. The list that it is in says whether matching calls are denied, asked about or allowed.
type Rule struct {
	text           string
	tool           []string // the pieces between the stars
	pattern        []string // the pieces between the stars; nil matches every call
	urlPattern     []string // the pattern in the form for addresses of pages
	hasRedirection bool     // the pattern contains a redirection, such as > FILE
}

// maxRule limits the length of a rule, in bytes.
const maxRule = 1000

// ParseRule parses a rule: TOOL or TOOL(PATTERN).
func ParseRule(text string) (Rule, error) {
	trimmed := strings.TrimSpace(text)
	tool, pattern, has := strings.Cut(trimmed, "(")
	r := Rule{text: trimmed, tool: strings.Split(tool, "*")}
	switch {
	case len(trimmed) > maxRule:
		return r, fmt.Errorf("a rule can have at most %d bytes", maxRule)
	case tool == "":
		return r, errors.New("it doesn't name a tool: write TOOL or TOOL(PATTERN)")
	case strings.Trim(tool, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*") != "":
		return r, fmt.Errorf("%q isn't a tool's name: write TOOL or TOOL(PATTERN)", tool)
	case !has:
		return r, nil
	}
	pattern, closed := strings.CutSuffix(pattern, ")")
	if !closed {
		return r, errors.New("it doesn't end with a parenthesis: write TOOL(PATTERN)")
	}
	if pattern == "" {
		return r, errors.New("its pattern is empty: write * for any text, or leave the parentheses out")
	}
	if strings.Contains(pattern, shellline.Hole) {
		return r, errors.New("its pattern contains a NUL byte")
	}
	r.pattern, r.hasRedirection = strings.Split(pattern, "*"), strings.Contains(pattern, ">")
	r.urlPattern = strings.Split(normalizePattern(pattern), "*")
	return r, nil
}

// patternFor returns the pattern to compare with the texts of a subject: for the address of a page, the pattern in
// the form for addresses. A rule with a star in its tool's name also applies to texts that are not addresses, so
// its pattern is always taken as written.
func (r Rule) patternFor(s subject) []string {
	if s.isURL && len(r.tool) == 1 {
		return r.urlPattern
	}
	return r.pattern
}

// UnknownTool returns the name of the rule's tool if it is none of the given tools; otherwise "". Tools of servers
// and skills (SERVER__TOOL) become known only while the program runs, so they never count as unknown.
func (r Rule) UnknownTool(tools []string) string {
	name := strings.Join(r.tool, "*")
	if strings.Contains(name, "__") || slices.ContainsFunc(tools, r.appliesTo) {
		return ""
	}
	return name
}

// appliesTo reports whether the rule applies to a tool.
func (r Rule) appliesTo(tool string) bool { return glob(r.tool, tool) }

// matches reports whether the rule matches a call, judging only by what is known before the call runs.
func (r Rule) matches(tool string, s subject) bool {
	return r.appliesTo(tool) && (r.pattern == nil || s.anyText(func(text string) bool { return matchCommand(r.patternFor(s), text) }))
}

// mayMatch reports whether the rule's pattern might match a call once those parts of the call are known that are
// known only when it runs. It returns false for a rule without a pattern.
func (r Rule) mayMatch(tool string, s subject) bool {
	if r.pattern == nil || !r.appliesTo(tool) {
		return false
	}
	overlaps := func(text string) bool { return overlap(r.patternFor(s), strings.Split(text, shellline.Hole)) }
	return s.anyText(overlaps) || slices.ContainsFunc(s.maybeCommands, overlaps)
}

// alwaysMatches reports whether the rule matches a part of a subject no matter what replaces the Holes in its text,
// which are known only when the call runs. A part that writes a file is matched only by a pattern with a
// redirection. The rule has a pattern.
func (r Rule) alwaysMatches(p part, of subject) bool {
	return matchCommand(r.patternFor(of), p.text) && (!p.writes || r.hasRedirection)
}

// matchCommand reports whether a text matches a pattern. A pattern that ends in " *" also matches the command
// without arguments.
func matchCommand(pattern []string, text string) bool {
	last := len(pattern) - 1
	if glob(pattern, text) {
		return true
	}
	return last > 0 && pattern[last] == "" && strings.HasSuffix(pattern[last-1], " ") && glob(pattern, text+" ")
}

// glob reports whether a text consists of these pieces in order, with any text between each piece and the next.
func glob(pieces []string, text string) bool {
	if len(pieces) == 1 {
		return text == pieces[0]
	}
	rest, ok := strings.CutPrefix(text, pieces[0])
	if !ok {
		return false
	}
	last := len(pieces) - 1
	for _, piece := range pieces[1:last] {
		_, after, found := strings.Cut(rest, piece)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, pieces[last])
}

// overlap reports whether some text matches both a and b, each with any text between its pieces.
func overlap(a, b []string) bool {
	switch {
	case len(b) == 1:
		return matchCommand(a, b[0])
	case len(a) == 1:
		return glob(b, a[0])
	}
	// The middle always fits: the pieces of one can follow those of the other.
	return holdsEitherWay(strings.HasPrefix, a[0], b[0]) && holdsEitherWay(strings.HasSuffix, a[len(a)-1], b[len(b)-1])
}

// holdsEitherWay reports whether holds returns true for a and b in either order.
func holdsEitherWay(holds func(text, part string) bool, a, b string) bool {
	return holds(a, b) || holds(b, a)
}
