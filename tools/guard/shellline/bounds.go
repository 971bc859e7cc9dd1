package shellline

import (
	"strings"
)

// Limits of what is parsed.
const (
	maxBytes = 64 << 10
	// maxNesting limits how many constructs could be nested: the parser uses some kilobytes of
	// stack for each.
	maxNesting = 4000
	maxDepth   = 6   // of lines within lines: sh -c "sh -c …"
	maxInner   = 200 // limits both how many lines are parsed within one, and how many of its programs run others
)

// nestingBound returns how deep the parser might recurse for a line at most: the number of
// constructs in the line that could be nested. It doesn't parse the line.
func nestingBound(line string) int {
	n := 0
	deep := strings.ContainsAny(line, "([") // arithmetic and tests can also nest by operators
	word := 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && 'a' <= line[i] && line[i] <= 'z' {
			continue
		}
		switch line[word:i] {
		case "if", "elif", "while", "until", "for", "case", "select", "time", "coproc", "function", "let":
			n++
		}
		word = i + 1
		if i == len(line) {
			break
		}
		switch line[i] {
		case '(', '{', '[', '`', '$', '|', '&':
			n++
		case '!', '-', '+', '~', '?', '=', ',', '*', '/', '%', '<', '>', '^':
			if deep {
				n++
			}
		}
	}
	return n
}
