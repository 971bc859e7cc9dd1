package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/guard/shellline"
)

// A Rule is about the calls of a tool, or about some of them: TOOL or TOOL(PATTERN).
// In both * stands for any text.
type Rule struct {
	text    string
	tool    []string // the pieces between the stars
	pattern []string // nil is every call
	writes  bool     // the pattern names a redirection
}

// maxRule bounds one rule, in bytes.
const maxRule = 1000

// ParseRule reads a rule.
func ParseRule(text string) (Rule, error) {
	trimmed := strings.TrimSpace(text)
	tool, pattern, has := strings.Cut(trimmed, "(")
	r := Rule{text: trimmed, tool: strings.Split(tool, "*")}
	switch {
	case len(trimmed) > maxRule:
		return r, fmt.Errorf("a rule has at most %d bytes", maxRule)
	case tool == "":
		return r, errors.New("it names no tool: write TOOL or TOOL(PATTERN)")
	case strings.Trim(tool, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*") != "":
		return r, fmt.Errorf("%q is no tool's name: write TOOL or TOOL(PATTERN)", tool)
	case !has:
		return r, nil
	}
	pattern, closed := strings.CutSuffix(pattern, ")")
	if !closed {
		return r, errors.New("it does not end with a parenthesis: write TOOL(PATTERN)")
	}
	if pattern == "" {
		return r, errors.New("its pattern is empty: write * for any text, or leave the parentheses out")
	}
	if strings.Contains(pattern, shellline.Hole) {
		return r, errors.New("its pattern holds a NUL byte")
	}
	if tool == webFetch {
		pattern = plainPattern(pattern)
	}
	r.pattern, r.writes = strings.Split(pattern, "*"), strings.Contains(pattern, ">")
	return r, nil
}

// Unknown says which tool a rule names that is none of those; "" if one is. Tools of
// servers and skills (SERVER__TOOL) are known only as they come.
func (r Rule) Unknown(tools []string) string {
	name := strings.Join(r.tool, "*")
	if strings.Contains(name, "__") || slices.ContainsFunc(tools, r.of) {
		return ""
	}
	return name
}

// of tells whether a rule is about a tool.
func (r Rule) of(tool string) bool { return glob(r.tool, tool) }

// matches tells whether a call is what the rule is about, as far as can be seen.
func (r Rule) matches(tool string, s subject) bool {
	return r.of(tool) && (r.pattern == nil || s.any(func(text string) bool { return matchCommand(r.pattern, text) }))
}

// mayMatch tells whether what cannot be seen of a call might be what the rule is about.
func (r Rule) mayMatch(tool string, s subject) bool {
	return r.pattern != nil && r.of(tool) && s.any(func(text string) bool { return overlap(r.pattern, strings.Split(text, shellline.Hole)) })
}

// covers tells whether a rule allows a text, whatever its holes turn out to be.
func (r Rule) covers(p part) bool {
	return matchCommand(r.pattern, p.text) && (!p.writes || r.writes)
}

// matchCommand tells whether a text matches a pattern. A pattern that ends in " *" is
// also about the command without arguments.
func matchCommand(pattern []string, text string) bool {
	last := len(pattern) - 1
	if glob(pattern, text) {
		return true
	}
	return last > 0 && pattern[last] == "" && strings.HasSuffix(pattern[last-1], " ") && glob(pattern, text+" ")
}

// glob tells whether a text consists of the pieces in their order, with any text
// between them.
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

// overlap tells whether some text has both the pieces of a and those of b, each with
// any text between its own.
func overlap(a, b []string) bool {
	switch {
	case len(b) == 1:
		return matchCommand(a, b[0])
	case len(a) == 1:
		return glob(b, a[0])
	}
	// What lies in the middle always fits: one after the other.
	return either(strings.HasPrefix, a[0], b[0]) && either(strings.HasSuffix, a[len(a)-1], b[len(b)-1])
}

func either(holds func(text, part string) bool, a, b string) bool { return holds(a, b) || holds(b, a) }

// shown is a text as a person is shown it: one short line.
func shown(text string) string {
	const most = 120
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, shellline.Hole, "…")), " ")
	return tools.Clip(text, most)
}
