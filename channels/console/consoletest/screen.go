// Package consoletest shows what a person sees of a terminal that a console has written to.
package consoletest

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// An emulator is what a person sees of a terminal: it obeys the escape sequences by
// which a cursor is moved and lines are erased, inserted and scrolled.
type emulator struct {
	width, height int
	rows          [][]rune // all that was ever shown; the last height of them are in sight
	x, y          int      // y counts from the top of what is in sight
	wrap          bool     // the next character begins a new line
}

// Seen is what a terminal of that size shows of what was written to it, with
// what has scrolled away above, without trailing blanks.
func Seen(written string, width, height int) string {
	g := &emulator{width: width, height: height, rows: make([][]rune, height)}
	for written != "" {
		if strings.HasPrefix(written, "\x1b") {
			written = g.escape(written[1:])
			continue
		}
		r, n := utf8.DecodeRuneInString(written)
		if r == utf8.RuneError && n == 1 {
			break // the end of what was read so far
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

func (g *emulator) top() int { return len(g.rows) - g.height }

func (g *emulator) put(r rune) {
	switch r {
	case '\r':
		g.x, g.wrap = 0, false
	case '\n':
		g.down()
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
			g.down()
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

func (g *emulator) row() *[]rune { return &g.rows[g.top()+g.y] }

func (g *emulator) down() {
	if g.y++; g.y == g.height {
		g.rows = append(g.rows, nil)
		g.y--
	}
}

// escape obeys one sequence and gives what follows it.
func (g *emulator) escape(s string) string {
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
		if end := strings.IndexAny(s, "\a\x1b"); (s[0] == ']' || s[0] == 'P') && end >= 0 { // a title, a question
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
	g.control(final, number(first), number(second), body)
	return s[2+end:]
}

// number is a parameter; 0 where there is none.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func (g *emulator) control(final byte, n, m int, body string) {
	if strings.ContainsAny(body, "?><=$ ") {
		return // modes and questions
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
		g.blank(g.x, g.x+one)
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

// erase empties the line: behind the cursor, before it, or all of it.
func (g *emulator) erase(how int) {
	switch how {
	case 0:
		g.blank(g.x, g.width)
	case 1:
		g.blank(0, g.x+1)
	default:
		g.blank(0, g.width)
	}
}

func (g *emulator) blank(from, to int) {
	row := *g.row()
	for i := from; i < min(to, len(row)); i++ {
		row[i] = ' '
	}
}
