package console

import (
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A pane draws the lower end of a terminal: finished lines go above it and stay, and below them are the rows of the
// window, which are redrawn whenever they change. It moves the cursor only relative to its position, so it never
// touches what was on the terminal before.
//
// Everything that changes at the same time is one write: lines that move from the window to the lines above it do
// so in a single write, so no row is ever empty, missing or shown twice.
type pane struct {
	out     io.Writer
	reflows bool // whether the terminal reflows its lines when it gets narrower

	rows   []string // the window's rows as they are on the terminal; nil before the first drawing
	cursor position // where the cursor is in them

	mustClear bool // whether the screen must be cleared before the next drawing
	noStyles  bool // whether only sequences that move the cursor are sent, that is, no colors and styles

	// The terminal's new size, if it has changed since the last drawing; otherwise 0.
	width, height int
}

// A position is a place in the window, counting from 0.
type position struct{ row, column int }

// reflowsLines reports, based on environment variables, whether the terminal reflows its lines when it gets
// narrower. Nearly all terminals do; the ones that don't are named here.
func reflowsLines(getenv func(string) string) bool {
	terminal := getenv("TERM")
	for _, fixed := range []string{"linux", "rxvt", "screen", "vt"} {
		if strings.HasPrefix(terminal, fixed) && getenv("TMUX") == "" {
			return false
		}
	}
	return getenv("XTERM_VERSION") == "" && getenv("STY") == ""
}

// draw writes finished lines above the window, then the window's rows with the cursor in them.
func (p *pane) draw(finished, rows []string, at position) error {
	if p.noStyles {
		finished, rows = withoutStyles(finished), withoutStyles(rows)
	}
	if p.width > 0 { // everything is redrawn, from where the window begins now
		above, _ := p.extent()
		p.rows, p.cursor, p.width, p.height = []string{}, position{row: above}, 0, 0
	}
	from := 0
	if len(finished) == 0 { // unchanged rows are not redrawn
		for from < len(rows)-1 && from < len(p.rows)-1 && rows[from] == p.rows[from] {
			from++
		}
		if !p.mustClear && slices.Equal(rows, p.rows) && at == p.cursor {
			return nil
		}
	}
	var b strings.Builder
	b.WriteString(ansi.SetModeSynchronizedOutput + ansi.ResetModeTextCursorEnable)
	if p.mustClear {
		b.WriteString(ansi.CursorHomePosition + ansi.EraseEntireScreen)
		p.mustClear = false
	}
	p.moveTo(&b, from)
	lines := append(slices.Clip(finished), rows[from:]...)
	for i, line := range lines {
		// A row is cleared before it is written: after a full row is written, the cursor is still in it.
		if i < len(lines)-1 {
			b.WriteString(ansi.EraseEntireLine + line + "\r\n")
		} else {
			b.WriteString(ansi.EraseScreenBelow + line)
		}
	}
	p.rows, p.cursor = rows, position{row: len(rows) - 1}
	p.moveTo(&b, at.row)
	if at.column > 0 {
		b.WriteString(ansi.CursorForward(at.column))
	}
	p.cursor = at
	b.WriteString(ansi.SetModeTextCursorEnable + ansi.ResetModeSynchronizedOutput)
	_, err := io.WriteString(p.out, b.String())
	return err
}

// moveTo moves the cursor to the beginning of one of the window's rows as they are on the terminal.
func (p *pane) moveTo(b *strings.Builder, row int) {
	b.WriteString("\r")
	switch {
	case row < p.cursor.row:
		b.WriteString(ansi.CursorUp(p.cursor.row - row))
	case row > p.cursor.row:
		b.WriteString(ansi.CursorDown(row - p.cursor.row))
	}
	p.cursor = position{row: row}
}

// resize makes the next drawing redraw all rows, on a terminal of that size.
func (p *pane) resize(width, height int) {
	if p.rows != nil {
		p.width, p.height = width, height
	}
}

// extent returns how many of the window's rows are above the cursor, and how many there are in total. If the
// terminal was made narrower and has reflowed the rows, there are more than were drawn.
func (p *pane) extent() (above, all int) {
	above, all = p.cursor.row, len(p.rows)
	if p.width == 0 {
		return above, all
	}
	if p.reflows {
		above, all = p.cursor.column/p.width, 0
		for i, row := range p.rows {
			taken := max((ansi.StringWidth(row)+p.width-1)/p.width, 1)
			if all += taken; i < p.cursor.row {
				above += taken
			}
		}
	}
	return min(above, max(p.height-1, 0)), min(all, p.height)
}

// withoutStyles returns lines without the sequences for colors and styles.
func withoutStyles(lines []string) []string {
	bare := make([]string, len(lines))
	for i, line := range lines {
		bare[i] = ansi.Strip(line)
	}
	return bare
}

// clear makes the next drawing start at the top of an empty screen.
func (p *pane) clear() {
	p.rows, p.cursor, p.mustClear = nil, position{}, true
	p.width, p.height = 0, 0
}

// begin makes the terminal report more exactly which keys are pressed, and mark pasted text; end makes it stop
// that, and removes the window from the terminal.
func (p *pane) begin() error {
	_, err := io.WriteString(p.out, ansi.SetModeBracketedPaste+ansi.SetModifyOtherKeys2+ansi.PushKittyKeyboard(1))
	return err
}

func (p *pane) end() error {
	var b strings.Builder
	if p.rows != nil {
		p.moveTo(&b, 0)
		b.WriteString(ansi.EraseScreenBelow)
	}
	p.rows = nil
	b.WriteString(ansi.ResetModeBracketedPaste + ansi.ResetModifyOtherKeys + ansi.PopKittyKeyboard(1))
	_, err := io.WriteString(p.out, b.String())
	return err
}
