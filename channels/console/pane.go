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

// resize prepares the pane for drawing all rows again on a terminal of another size: where the terminal
// has broken the rows anew, the window begins higher above the cursor than before.
func (p *pane) resize(width, height int) {
	if p.rows == nil {
		return
	}
	above := p.at.row
	if p.reflows && width > 0 {
		above = p.at.column / width
		for _, row := range p.rows[:p.at.row] {
			above += max((ansi.StringWidth(row)+width-1)/width, 1)
		}
	}
	p.rows, p.at.row = []string{}, min(above, max(height-1, 0))
}

// clear has the next drawing begin at the top of an empty screen.
func (p *pane) clear() { p.rows, p.at, p.cleared = nil, position{}, true }

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
