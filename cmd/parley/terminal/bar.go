package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	drawEvery = 100 * time.Millisecond // how often a bar is drawn, within a step
	tellEvery = 10 * time.Second       // how often a line is written if there is no terminal
	barWidth  = 24
)

// A Bar shows how far some work is: as a bar on a terminal, and elsewhere as a plain line now and then.
type Bar struct {
	out      io.Writer
	terminal *os.File // nil if out isn't a terminal

	mu       sync.Mutex
	step     string // the one that is shown; "" if nothing is
	nextDraw time.Time
}

// NewBar returns a Bar that writes to out, which may be a Screen.
func NewBar(out io.Writer) *Bar {
	b := &Bar{out: out, terminal: terminalOf(out)}
	if b.terminal == nil {
		b.nextDraw = time.Now().Add(tellEvery)
	}
	return b
}

// Show shows the step that is under way, how far it is, and which part of all the work is done, from 0 to 1. It may be
// called often: it draws a step every drawEvery, or writes a line every tellEvery where there is no terminal.
func (b *Bar) Show(part float64, step, far string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.nextDraw) && (b.terminal == nil || b.step == step) {
		return
	}
	part = min(1, max(0, part))
	text := Cell(step)
	if far != "" {
		text += ": " + Cell(far)
	}
	if b.terminal == nil {
		b.nextDraw = time.Now().Add(tellEvery)
		fmt.Fprintf(b.out, "%.0f %%, %s\n", 100*part, text)
		return
	}
	b.step, b.nextDraw = step, time.Now().Add(drawEvery)
	full := int(barWidth * part)
	// This goes past the Screen, which would remove the sequence that clears the line.
	fmt.Fprint(b.terminal, clearLine+strings.Repeat("█", full)+strings.Repeat("░", barWidth-full)+" "+text)
}

// clearLine moves the cursor to the beginning of its line, and clears the line.
const clearLine = "\r\x1b[K"

// Clear removes the bar from the terminal. A caller must do that before it writes there, unless it writes to the bar.
func (b *Bar) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

// clear removes the bar from the terminal. The caller holds b.mu.
func (b *Bar) clear() {
	if b.step == "" {
		return
	}
	b.step, b.nextDraw = "", time.Time{}
	fmt.Fprint(b.terminal, clearLine)
}

// Write removes the bar, and writes to what it is shown on; the next Show draws it below.
func (b *Bar) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	return b.out.Write(text)
}

// IsTerminal reports whether out is a terminal, or a Screen in front of one.
func IsTerminal(out io.Writer) bool { return terminalOf(out) != nil }

// terminalOf returns out itself if it is a terminal, or the terminal behind a Screen; nil if there is none.
func terminalOf(out io.Writer) *os.File {
	if s, ok := out.(*Screen); ok {
		out = s.To
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}
