// Package consoletest computes what a person sees on a terminal after a console has written
// to it.
package consoletest

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/vt"
)

// maxScrolledLines is the maximum number of lines that are kept after they have scrolled away.
const maxScrolledLines = 100_000

// A Terminal is a terminal without a display: tests read what it would show.
type Terminal struct {
	emulator *vt.SafeEmulator

	lines []string // what was on it before it was resized, until something is written
	x, y  int      // where the cursor was in these lines
}

// NewTerminal returns a terminal of the given size.
func NewTerminal(width, height int) *Terminal {
	e := vt.NewSafeEmulator(width, height)
	e.SetScrollbackSize(maxScrolledLines)
	return &Terminal{emulator: e}
}

// Write shows the output of a program.
func (t *Terminal) Write(b []byte) (int, error) {
	t.lines = nil
	return t.emulator.Write(b)
}

// Resize changes the terminal's size in the way that terminals do: the lowest rows stay in sight. A terminal that
// reflows breaks its rows into new ones; others cut them off.
func (t *Terminal) Resize(width, height int, reflows bool) {
	if t.lines == nil || !reflows {
		t.lines, t.x, t.y = t.Scrolled(), 0, 0
		above, rows := len(t.lines), t.Rows()
		x, y := t.Cursor()
		for len(rows) > y+1 && rows[len(rows)-1] == "" {
			rows = rows[:len(rows)-1]
		}
		t.lines, t.x, t.y = append(t.lines, rows...), x, above+y
	}
	var rows []string
	at, column := 0, min(t.x, width-1)
	for i, line := range t.lines {
		if i == t.y {
			at = len(rows)
		}
		cells := []rune(line) // each is one cell wide: tests of sizes write no other characters
		for reflows && len(cells) > width {
			rows = append(rows, string(cells[:width]))
			cells = cells[width:]
		}
		rows = append(rows, string(cells[:min(len(cells), width)]))
	}
	if reflows {
		at, column = at+t.x/width, t.x%width
	}
	t.emulator = vt.NewSafeEmulator(width, height)
	t.emulator.SetScrollbackSize(maxScrolledLines)
	_, _ = t.emulator.Write([]byte(strings.Join(rows, "\r\n"))) // an emulator accepts everything
	last := len(rows) - 1
	_, _ = fmt.Fprintf(t.emulator, "\x1b[%d;%dH", min(last, height-1)-(last-at)+1, column+1)
}

// Size returns the number of columns and rows.
func (t *Terminal) Size() [2]int { return [2]int{t.emulator.Width(), t.emulator.Height()} }

// Scrolled returns the lines that have scrolled away, oldest first, without trailing blanks.
func (t *Terminal) Scrolled() []string {
	var lines []string
	for _, line := range t.emulator.Scrollback().Lines() {
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// Rows returns the rows of the screen, without trailing blanks.
func (t *Terminal) Rows() []string {
	rows := make([]string, t.emulator.Height())
	for y := range rows {
		var row strings.Builder
		for x := 0; x < t.emulator.Width(); {
			cell := t.emulator.CellAt(x, y)
			if cell == nil || cell.Width == 0 {
				row.WriteByte(' ')
				x++
				continue
			}
			row.WriteString(cell.Content)
			x += cell.Width
		}
		rows[y] = strings.TrimRight(row.String(), " ")
	}
	return rows
}

// A Span is a part of a row whose text has one style.
type Span struct {
	Text        string
	Bold, Faint bool
}

// The attributes of a cell, as the emulator encodes them.
const (
	boldAttr  = 1 << 0
	faintAttr = 1 << 1
)

// Spans returns the rows of the screen with their styles, without trailing blanks.
func (t *Terminal) Spans() [][]Span {
	rows := t.Rows()
	all := make([][]Span, len(rows))
	for y, row := range rows {
		var line []Span
		for x, left := 0, len(row); x < t.emulator.Width() && left > 0; {
			text, width, attrs := " ", 1, uint8(0)
			if cell := t.emulator.CellAt(x, y); cell != nil && cell.Width > 0 {
				text, width, attrs = cell.Content, cell.Width, cell.Style.Attrs
			}
			span := Span{text, attrs&boldAttr != 0, attrs&faintAttr != 0}
			if n := len(line); n > 0 && line[n-1].Bold == span.Bold && line[n-1].Faint == span.Faint {
				line[n-1].Text += text
			} else {
				line = append(line, span)
			}
			x, left = x+width, left-len(text)
		}
		all[y] = line
	}
	return all
}

// Cursor returns where the cursor is, counted from 0.
func (t *Terminal) Cursor() (x, y int) {
	at := t.emulator.CursorPosition()
	return at.X, at.Y
}

// ShownText returns the text that a terminal of that size shows after written was written to it: first the rows that
// have scrolled away, then the visible ones, without trailing blanks.
func ShownText(written string, width, height int) string {
	t := NewTerminal(width, height)
	_, _ = t.Write([]byte(written)) // an emulator accepts everything
	return strings.TrimRight(strings.Join(append(t.Scrolled(), t.Rows()...), "\n"), "\n")
}

// Forget forgets the lines that have scrolled away.
func (t *Terminal) Forget() { t.emulator.ClearScrollback() }
