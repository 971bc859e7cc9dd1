package console

import (
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A pane draws the lower end of a terminal: finished lines go above it and stay, and below them stand
// the rows of the window, which are drawn again whenever they change. It moves the cursor only
// relative to where it stands, so it never touches what was on the terminal before.
//
// All that changes at one time is one write: lines that leave the window for the lines above it
// leave it in the same write, and so no row is ever empty, missing or there twice.
type pane struct {
	out     io.Writer
	reflows bool // whether the terminal breaks its lines anew when it gets narrower

	rows []string // the rows of the window as they stand on the terminal; nil before the first
	at   position // where the cursor stands in them

	cleared bool // whether the screen is to be emptied before the next drawing
	plain   bool // whether nothing but what moves the cursor is sent, that is, no colors and styles

	// The terminal's new size, if that has changed since the last drawing; 0 if not.
	width, height int
}

// A position is a place in the window, counted from 0.
type position struct{ row, column int }

// reflowsLines reports whether the terminal, judged by its environment variables, breaks its lines
// anew when it gets narrower. Nearly all do; those that do not are named here.
func reflowsLines(getenv func(string) string) bool {
	terminal := getenv("TERM")
	for _, fixed := range []string{"linux", "rxvt", "screen", "vt"} {
		if strings.HasPrefix(terminal, fixed) && getenv("TMUX") == "" {
			return false
		}
	}
	return getenv("XTERM_VERSION") == "" && getenv("STY") == ""
}

// draw writes finished lines above the window, and the window's rows with the cursor in them.
func (p *pane) draw(finished, rows []string, at position) error {
	if p.plain {
		finished, rows = withoutStyles(finished), withoutStyles(rows)
	}
	if p.width > 0 { // all is drawn again, from where the window begins now
		above, _ := p.stands()
		p.rows, p.at, p.width, p.height = []string{}, position{row: above}, 0, 0
	}
	from := 0
	if len(finished) == 0 { // rows that did not change are not drawn again
		for from < len(rows)-1 && from < len(p.rows)-1 && rows[from] == p.rows[from] {
			from++
		}
		if !p.cleared && slices.Equal(rows, p.rows) && at == p.at {
			return nil
		}
	}
	var b strings.Builder
	b.WriteString(ansi.SetModeSynchronizedOutput + ansi.ResetModeTextCursorEnable)
	if p.cleared {
		b.WriteString(ansi.CursorHomePosition + ansi.EraseEntireScreen)
		p.cleared = false
	}
	p.moveTo(&b, from)
	lines := append(slices.Clip(finished), rows[from:]...)
	for i, line := range lines {
		// A row is emptied before it is written: behind a full row the cursor still stands in it.
		if i < len(lines)-1 {
			b.WriteString(ansi.EraseEntireLine + line + "\r\n")
		} else {
			b.WriteString(ansi.EraseScreenBelow + line)
		}
	}
	p.rows, p.at = rows, position{row: len(rows) - 1}
	p.moveTo(&b, at.row)
	if at.column > 0 {
		b.WriteString(ansi.CursorForward(at.column))
	}
	p.at = at
	b.WriteString(ansi.SetModeTextCursorEnable + ansi.ResetModeSynchronizedOutput)
	_, err := io.WriteString(p.out, b.String())
	return err
}

// moveTo moves the cursor to the beginning of a row of the window as it stands on the terminal.
func (p *pane) moveTo(b *strings.Builder, row int) {
	b.WriteString("\r")
	switch {
	case row < p.at.row:
		b.WriteString(ansi.CursorUp(p.at.row - row))
	case row > p.at.row:
		b.WriteString(ansi.CursorDown(row - p.at.row))
	}
	p.at = position{row: row}
}

// resize has the next drawing draw all rows again, on a terminal of that size.
func (p *pane) resize(width, height int) {
	if p.rows != nil {
		p.width, p.height = width, height
	}
}

// stands returns how many rows of the window stand above the cursor, and how many it takes in all. Where a
// terminal that was made narrower has broken the rows anew, these are more than were drawn.
func (p *pane) stands() (above, all int) {
	above, all = p.at.row, len(p.rows)
	if p.width == 0 {
		return above, all
	}
	if p.reflows {
		above, all = p.at.column/p.width, 0
		for i, row := range p.rows {
			taken := max((ansi.StringWidth(row)+p.width-1)/p.width, 1)
			if all += taken; i < p.at.row {
				above += taken
			}
		}
	}
	return min(above, max(p.height-1, 0)), min(all, p.height)
}

// withoutStyles returns lines without the codes for colors and styles.
func withoutStyles(lines []string) []string {
	bare := make([]string, len(lines))
	for i, line := range lines {
		bare[i] = ansi.Strip(line)
	}
	return bare
}

// clear has the next drawing begin at the top of an empty screen.
func (p *pane) clear() {
	p.rows, p.at, p.cleared = nil, position{}, true
	p.width, p.height = 0, 0
}

// begin has the terminal say more exactly which keys are pressed, and mark what is pasted; end has
// it stop that, and takes the window off the terminal.
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
