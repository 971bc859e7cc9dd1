package console

import (
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// A growingPassage is an unfinished passage. Its beginning is printed while the rest grows: whole Markdown blocks as soon
// as the next one has begun, and whole lines of a block that is longer than the room for it. Each byte of the text
// is printed once, so nothing is missing or printed twice.
type growingPassage struct {
	passage
	printedBytes int    // how many bytes of the text have been printed
	fence        string // the mark of the code block that continues after them; "" outside of code
	hasGap       bool   // whether there is an empty line between what has been printed and the rest
}

// A render renders a passage as lines for the terminal.
type render func(passage) []string

// advance returns the lines of the passage that are finished and not printed yet, which count as printed from now
// on, and the lines of the rest. The rest has at most room lines, unless nothing of it can be printed before its
// block ends: no line of a table is known before its last cell is.
func (g *growingPassage) advance(room int, lines render) (finished, rest []string) {
	if n := finishedLength(g.text[g.printedBytes:], g.fence); n > 0 {
		finished = g.takeLines(n, lines)
	}
	for {
		rest = g.withGap(lines(g.restAsPassage(g.text[g.printedBytes:])))
		if len(rest) <= room {
			return finished, rest
		}
		n := g.stableLength(len(rest)-room/2, lines)
		if n == 0 {
			return finished, rest
		}
		finished = append(finished, g.takeLines(n, lines)...)
	}
}

// finish returns all lines of the passage that have not been printed yet.
func (g *growingPassage) finish(lines render) []string {
	finished, rest := g.advance(math.MaxInt, lines)
	g.printedBytes = len(g.text)
	return append(finished, rest...)
}

// restAsPassage returns a text from the beginning of the rest as a passage of its own.
func (g *growingPassage) restAsPassage(text string) passage {
	p := g.passage
	if p.text = text; g.fence != "" {
		p.text = g.fence + "\n" + text
	}
	return p
}

// withGap returns lines, preceded by an empty line if there is one between what has been printed and them.
func (g *growingPassage) withGap(lines []string) []string {
	if g.hasGap && len(lines) > 0 {
		return append([]string{""}, lines...)
	}
	return lines
}

// takeLines returns the lines for the next n bytes, which count as printed from now on.
func (g *growingPassage) takeLines(n int, lines render) []string {
	rest := g.text[g.printedBytes:]
	fence := fenceAfter(rest[:n], g.fence)
	all, first := lines(g.restAsPassage(rest)), lines(g.restAsPassage(rest[:n]+fence)) // if it ends here, code keeps its last empty lines
	out := g.withGap(first)
	g.fence = fence
	second := lines(g.restAsPassage(rest[n:]))
	if len(first) > 0 {
		g.hasGap = g.fence == "" && !slices.Equal(all, slices.Concat(first, second)) &&
			(slices.Equal(all, slices.Concat(first, []string{""}, second)) || endsEmpty(rest[:n]))
	}
	g.printedBytes += n
	return out
}

// endsEmpty reports whether the last line of a text is empty.
func endsEmpty(text string) bool {
	lines := strings.Split(text, "\n")
	n := len(lines)
	return n >= 2 && lines[n-1] == "" && strings.TrimSpace(lines[n-2]) == ""
}

// stableLength returns the length of a beginning of the rest that takes up at most `most` lines, and whose lines will
// not change, whatever follows; 0 if there is none.
func (g *growingPassage) stableLength(most int, lines render) int {
	rest := g.text[g.printedBytes:]
	first, _, _ := strings.Cut(rest, "\n")
	if g.isMarkdown && (g.fence != "" || fenceMark(first) != "") {
		n := strings.LastIndexByte(rest, '\n') + 1
		if g.fence == "" && n <= len(first)+1 {
			return 0
		}
		return n
	}
	if g.isMarkdown && strings.HasPrefix(strings.TrimSpace(first), "|") {
		return 0
	}
	var ends []int // where words end
	for i, r := range rest {
		if unicode.IsSpace(r) {
			ends = append(ends, i+len(string(r)))
		}
	}
	all := lines(g.restAsPassage(rest))
	const tries = 5
	for k := most; k > max(most-tries, 0); k-- {
		at := sort.Search(len(ends), func(i int) bool { return len(lines(g.restAsPassage(rest[:ends[i]]))) > k })
		if at == 0 {
			return 0
		}
		n := ends[at-1]
		before, after := lines(g.restAsPassage(rest[:n])), lines(g.restAsPassage(rest[n:]))
		if len(before) > 0 && (slices.Equal(all, slices.Concat(before, after)) || slices.Equal(all, slices.Concat(before, []string{""}, after))) {
			return n
		}
	}
	return 0
}

// fenceMark returns the mark with which a line begins a code block; "" if it begins none.
func fenceMark(line string) string {
	inner, _ := indented(line)
	for _, mark := range []string{"`", "~"} {
		if length := len(inner) - len(strings.TrimLeft(inner, mark)); length >= 3 {
			return inner[:length]
		}
	}
	return ""
}

// isListItem reports whether a line begins an item in a list that isn't nested.
func isListItem(line string) bool {
	inner, deep := indented(line)
	mark, _, _ := strings.Cut(strings.ReplaceAll(inner, "\t", " "), " ")
	if number := strings.TrimRight(mark, ".)"); len(number) == len(mark)-1 && number != "" {
		return !deep && strings.Trim(number, "0123456789") == ""
	}
	return !deep && (mark == "-" || mark == "*" || mark == "+")
}

// indented returns a line without its leading spaces; "" and true if they make it a line of indented code.
func indented(line string) (inner string, deep bool) {
	inner = strings.TrimLeft(line, " ")
	if deep = len(line)-len(inner) > 3 || strings.HasPrefix(inner, "\t"); deep {
		inner = ""
	}
	return inner, deep
}

// finishedLength returns the length of the longest beginning of a Markdown text that consists of finished blocks; 0 if
// there is none. A code block outside of lists is finished when its closing mark has come, any other block when the
// next one has begun. fence is the mark of the code block in which the text begins.
func finishedLength(text, fence string) (end int) {
	list, inList, empty := false, false, false // whether we are in a list, in code inside a list, and after an empty line
	at := 0
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\r\n")
		switch {
		case fence != "":
			if closesFence(body, fence) && len(body) < len(line) {
				if fence = ""; !inList {
					end, list = at+len(line), false
				}
			}
		case strings.TrimSpace(body) == "":
			empty = true
		default:
			within := list && (strings.HasPrefix(body, "  ") || strings.HasPrefix(body, "\t")) // whether the line belongs to a list item
			mark := fenceMark(strings.TrimLeft(body, " \t"))
			if !within {
				mark = fenceMark(body)
			}
			if (empty || mark != "") && !within {
				end, list = at, false
			}
			if mark != "" {
				fence, inList = mark, list
			}
			list = list || isListItem(body)
			empty = false
		}
		at += len(line)
	}
	return end
}

// closesFence reports whether a line ends the code block that began with a mark.
func closesFence(line, mark string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(mark) && strings.Trim(line, mark[:1]) == ""
}

// fenceAfter returns the mark of the code block in which a text ends; "" if it ends outside of code. fence is the
// mark of the code block in which the text begins.
func fenceAfter(text, fence string) string {
	for line := range strings.Lines(text) {
		mark := fenceMark(line)
		switch {
		case fence == "" && mark != "":
			fence = mark
		case fence != "" && closesFence(line, fence):
			fence = ""
		}
	}
	return fence
}
