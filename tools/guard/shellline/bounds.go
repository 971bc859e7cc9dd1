package shellline

import (
	"strings"
)

// Bounds of what is parsed.
const (
	maxBytes = 64 << 10
	// maxNesting bounds how many constructs could nest: the parser takes some kilobytes of stack
	// for each.
	maxNesting = 4000
	maxDepth   = 6   // of lines within lines: sh -c "sh -c …"
	maxInner   = 200 // bounds both how many lines are parsed within one, and how many programs in it run others
)

// nestingBound returns how deep the parser might call itself for a line at most: the number of
// constructs in the line that could lie within each other. It does not parse the line.
func nestingBound(line string) int {
	n := 0
	deep := strings.ContainsAny(line, "([") // arithmetic and tests nest by operators as well
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
