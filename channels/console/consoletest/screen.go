// Package consoletest computes what a person sees on a terminal after a console has written
// to it.
package consoletest

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// An emulator computes what a terminal shows: it obeys the escape sequences that move the
// cursor and erase, insert and scroll lines.
type emulator struct {
	width, height int
	rows          [][]rune // all rows ever shown; as many as height says, the last ones, are visible
	x, y          int      // y counts from the topmost visible row
	wrap          bool     // whether the next character begins a new line
}

// Seen returns the text that a terminal of that size shows after written was written to it: the
// rows that have scrolled away first, then the visible ones, without trailing blanks.
func Seen(written string, width, height int) string {
	g := &emulator{width: width, height: height, rows: make([][]rune, height)}
	for written != "" {
		if strings.HasPrefix(written, "\x1b") {
			written = g.obeyEscape(written[1:])
			continue
		}
		r, n := utf8.DecodeRuneInString(written)
		if r == utf8.RuneError && n == 1 {
			break // the end of what was written so far
		}
		written = written[n:]
		g.put(r)
	}
	lines := make([]string, len(g.rows))
	for i, row := range g.rows {
		lines[i] = strings.TrimRight(string(row), " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// top returns the index of the topmost visible row.
func (g *emulator) top() int { return len(g.rows) - g.height }

// put writes one character at the cursor, or obeys it if it is a control character.
func (g *emulator) put(r rune) {
	switch r {
	case '\r':
		g.x, g.wrap = 0, false
	case '\n':
		g.moveDown()
	case '\b':
		g.x = max(g.x-1, 0)
	case '\t':
		g.x = min((g.x/8+1)*8, g.width-1)
	default:
		if r < ' ' {
			return
		}
		if g.wrap {
			g.x, g.wrap = 0, false
			g.moveDown()
		}
		row := g.row()
		for len(*row) <= g.x {
			*row = append(*row, ' ')
		}
		(*row)[g.x] = r
		if g.x++; g.x == g.width {
			g.x, g.wrap = g.width-1, true
		}
	}
}

// row returns the row of the cursor.
func (g *emulator) row() *[]rune { return &g.rows[g.top()+g.y] }

// moveDown moves the cursor one row down, and scrolls at the bottom.
func (g *emulator) moveDown() {
	if g.y++; g.y == g.height {
		g.rows = append(g.rows, nil)
		g.y--
	}
}

// obeyEscape obeys one escape sequence and returns the text after it.
func (g *emulator) obeyEscape(s string) string {
	if s == "" {
		return ""
	}
	if s[0] == 'M' { // reverse index
		if g.y > 0 {
			g.y--
		}
		return s[1:]
	}
	if s[0] != '[' {
		if end := strings.IndexAny(s, "\a\x1b"); (s[0] == ']' || s[0] == 'P') && end >= 0 { // a title or a question to the terminal
			return strings.TrimPrefix(s[end+1:], "\\")
		}
		return s[1:]
	}
	end := strings.IndexFunc(s[1:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return ""
	}
	body, final := s[1:1+end], s[1+end]
	first, second, _ := strings.Cut(body, ";")
	g.obeyControl(final, parameter(first), parameter(second), body)
	return s[2+end:]
}

// parameter returns a parameter of a sequence; 0 if it is missing.
func parameter(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// obeyControl obeys a control sequence (ESC [ …), given by its last character. n and m are its
// first two parameters, body is all of them.
func (g *emulator) obeyControl(final byte, n, m int, body string) {
	if strings.ContainsAny(body, "?><=$ ") {
		return // modes and questions to the terminal
	}
	one := max(n, 1)
	g.wrap = g.wrap && final == 'm'
	switch final {
	case 'I':
		g.x = min((g.x/8+one)*8, g.width-1)
	case 'Z':
		g.x = max((g.x+7)/8-one, 0) * 8
	case 'A':
		g.y = max(g.y-one, 0)
	case 'B':
		g.y = min(g.y+one, g.height-1)
	case 'C':
		g.x = min(g.x+one, g.width-1)
	case 'D':
		g.x = max(g.x-one, 0)
	case 'G', '`':
		g.x = min(one, g.width) - 1
	case 'd':
		g.y = min(one, g.height) - 1
	case 'H':
		g.y, g.x = min(one, g.height)-1, min(max(m, 1), g.width)-1
	case 'J':
		g.erase(n)
		for y := g.y + 1; y < g.height && n == 0; y++ {
			g.rows[g.top()+y] = nil
		}
	case 'K':
		g.erase(n)
	case 'X':
		g.overwriteBlank(g.x, g.x+one)
	case 'P':
		row := g.row()
		*row = append((*row)[:min(g.x, len(*row))], (*row)[min(g.x+one, len(*row)):]...)
	case 'L':
		for range one {
			at := g.top() + g.y
			copy(g.rows[at+1:], g.rows[at:])
			g.rows[at] = nil
		}
	case 'M':
		for range one {
			at := g.top() + g.y
			copy(g.rows[at:], g.rows[at+1:])
			g.rows[len(g.rows)-1] = nil
		}
	}
}

// erase empties a part of the cursor's line: from the cursor on (0), up to it (1), or all of it.
func (g *emulator) erase(how int) {
	switch how {
	case 0:
		g.overwriteBlank(g.x, g.width)
	case 1:
		g.overwriteBlank(0, g.x+1)
	default:
		g.overwriteBlank(0, g.width)
	}
}

// overwriteBlank overwrites columns of the cursor's row with spaces.
func (g *emulator) overwriteBlank(from, to int) {
	row := *g.row()
	for i := from; i < min(to, len(row)); i++ {
		row[i] = ' '
	}
}
