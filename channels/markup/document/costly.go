package document

import "strings"

// MaxLink is the maximum length of a link's target, in bytes; a link with a longer target is text.
const MaxLink = 2000

const (
	maxNested = 16 // the maximum number of nested levels of lists and quotes
	maxIndent = 64 // the maximum number of columns by which a line's text may be indented
)

// escapeCostly escapes what no person would write and what would cost the parser time that grows with the square of
// the text's length: very deeply nested quotes and lists, and links whose target never ends.
func escapeCostly(md string) string {
	if strings.Contains(md, "](") {
		md = escapeCostlyLinks(md)
	}
	var b *strings.Builder
	done := 0
	for start := 0; start < len(md); {
		end := len(md)
		if i := strings.IndexByte(md[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		if at := tooDeepAt(md[start:end]); at >= 0 {
			if b == nil {
				b = &strings.Builder{}
			}
			b.WriteString(md[done : start+at])
			// Excessive indentation is removed; a marker that is nested too deep, or that follows such indentation,
			// is escaped.
			done = start + at + leadingSpace(md[start+at:end])
			if done < end && strings.IndexByte(">-+*.)", md[done]) >= 0 {
				b.WriteByte('\\')
			}
		}
		start = end
	}
	if b == nil {
		return md
	}
	b.WriteString(md[done:])
	return b.String()
}

// leadingSpace returns how many spaces and tabs a text begins with.
func leadingSpace(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// tooDeepAt returns the byte position in a line where the nesting or the indentation becomes too deep; -1 if it
// doesn't.
func tooDeepAt(line string) int {
	nested, spaces := 0, 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ', c == '\t':
			if spaces++; spaces > maxIndent {
				return i
			}
			continue
		case c == '>', c == '-', c == '+', c == '*':
			nested++
		case isDigit(c):
			j := i
			for j < len(line) && isDigit(line[j]) {
				j++
			}
			if j >= len(line) || line[j] != '.' && line[j] != ')' {
				return -1
			}
			i = j
			nested++
		default:
			return -1
		}
		if nested > maxNested {
			if isRule(line[i:]) {
				return -1
			}
			return i
		}
	}
	return -1
}

// isRule reports whether a line is a rule, such as ***.
func isRule(line string) bool {
	return (line[0] == '-' || line[0] == '*') && strings.Trim(line, line[:1]+" \t\n") == ""
}

// escapeCostlyLinks escapes links whose target is too long or never ends.
func escapeCostlyLinks(md string) string {
	var b strings.Builder
	done := 0
	space := -1 // the position of the next white space, once searched for
	for at := 0; ; {
		i := strings.Index(md[at:], "](")
		if i < 0 {
			break
		}
		at += i + 2
		if space < at {
			space = len(md)
			if j := strings.IndexAny(md[at:], " \t\n"); j >= 0 {
				space = at + j
			}
		}
		if space-at > MaxLink && !strings.Contains(md[at:at+MaxLink], ")") {
			b.WriteString(md[done : at-1])
			b.WriteByte('\\')
			done = at - 1
		}
	}
	if done == 0 {
		return md
	}
	b.WriteString(md[done:])
	return b.String()
}
