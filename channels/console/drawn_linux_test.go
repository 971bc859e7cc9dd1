package console_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/console"
	"parley/channels/console/consoletest"
)

// sizes are the terminals that answers are drawn on: columns and rows.
var sizes = [][2]int{{80, 24}, {132, 50}, {40, 12}, {24, 8}, {100, 6}} //nolint:gochecknoglobals // of this test alone

// mark finds what tells one line of an answer from all others.
var mark = regexp.MustCompile(`m\d{6}`) //nolint:gochecknoglobals // of this test alone

// A watcher looks at a terminal after each drawing, and notes what nobody wants to see there.
type watcher struct {
	mu       sync.Mutex
	terminal *consoletest.Terminal
	rest     string
	drawings int
	first    int // the first mark of the next answer
	wrong    []string
}

const drawn = "\x1b[?2026l" // ends a drawing

func (w *watcher) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest += string(b)
	for {
		drawing, rest, whole := strings.Cut(w.rest, drawn)
		if !whole {
			return len(b), nil
		}
		w.rest = rest
		_, _ = w.terminal.Write([]byte(drawing + drawn)) // an emulator takes all
		w.look()
	}
}

// look looks at the terminal once.
func (w *watcher) look() {
	w.drawings++
	scrolled, rows := w.terminal.Scrolled(), w.terminal.Rows()
	last := len(rows) - 1
	for last > 0 && rows[last] == "" {
		last--
	}
	switch {
	case !strings.HasPrefix(rows[last], "›"):
		w.note("the line that is typed is not the lowest", scrolled, rows)
	case len(scrolled) > 0 && last < len(rows)-1:
		w.note("there are empty rows below the line that is typed", scrolled, rows)
	}
	if seen := mark.FindAllString(strings.Join(append(scrolled, rows...), "\n"), -1); !slices.IsSortedFunc(seen, func(a, b string) int {
		if a == b {
			return -1 // there twice
		}
		return strings.Compare(a, b)
	}) {
		w.note("lines are there twice, or in another order", scrolled, rows)
	}
}

func (w *watcher) note(what string, scrolled, rows []string) {
	if len(w.wrong) == 0 { // the first says enough
		w.wrong = append(w.wrong, fmt.Sprintf("drawing %d: %s:\n%s\n--------\n%s\n--------", w.drawings, what,
			strings.Join(scrolled[max(0, len(scrolled)-10):], "\n"), strings.Join(rows, "\n")))
	}
}

// kinds are the names of what answer makes.
var kinds = []string{"lines", "paragraphs", "one line", "a list", "steps", "code", "a table", "wide", "everything"} //nolint:gochecknoglobals // of this test alone

// answer is a text of n lines of a kind, with the marks from first on.
func answer(kind string, first, n int) string {
	marks := make([]string, n)
	for i := range marks {
		marks[i] = markOf(first + i)
	}
	each := func(before, after, between string) string {
		lines := make([]string, n)
		for i, m := range marks {
			lines[i] = before + m + after
		}
		return strings.Join(lines, between)
	}
	return map[string]string{
		"lines":      each("line ", "", "\n"),
		"paragraphs": each("A paragraph, **the one** with the mark ", ", and some words after it.", "\n\n"),
		"one line":   each("words and ", " more", " "),
		"a list":     each("- an item ", "", "\n"),
		"steps":      each("1. a step ", " of *many*", "\n\n"),
		"code":       "before\n\n```go\n" + each("\tcode(", ")", "\n\n") + "\n```\n\nafter",
		"a table":    "| name | mark |\n|---|---|\n" + each("| x | ", " |", "\n"),
		"wide":       each("你好世界 ", " 🙂👍 漢字", "\n"),
		"many rows":  each("", " begins a paragraph that has more than one row on most terminals, if not on all, and so is broken anew", "\n\n"),
		"everything": "# All\n\n- a\n- b " + each("", "", "\n\n```\ncode\n\n\ncode\n```\n\n"),
	}[kind]
}

func markOf(n int) string { return fmt.Sprintf("m%06d", n) }

// An answer is printed while it comes. At each moment each line is there once, in order, and the line
// that is typed is the lowest, without empty rows; at the end all of it is there.
func TestAnswersOfEachLengthAreDrawnWholeAndOnce(t *testing.T) {
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			w := &watcher{terminal: consoletest.NewTerminal(size[0], size[1])}
			d := sitBefore(t, console.Config{}, size[0], size[1], w)
			w.first = 100_000
			for _, lines := range []int{1, 25, 400} {
				for _, kind := range kinds {
					first := w.begin()
					said := answer(kind, first, lines)
					d.press(t, "tell me\r")
					in := d.next(t)
					d.emit(in.ID, bus.Event{Type: bus.TurnStart}, bus.Event{Type: bus.BlockStart, Kind: "text"})
					pieces := max(len(said)/60, 7)
					for begin := 0; begin < len(said); begin += pieces { // also in the middle of characters' escapes and words
						piece := said[begin:min(begin+pieces, len(said))]
						d.emit(in.ID, bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: piece})
						if begin%(8*pieces) == 0 && kind != "a table" { // of which the end is shown at its end
							w.seesLast(t, said[:begin])
						}
					}
					d.emit(in.ID, bus.Event{Type: bus.BlockStop, Kind: "text"}, bus.Event{Type: bus.TurnComplete})
					d.answer(t, in.ID+"#reply", said)
					w.waitFor(t, fmt.Sprintf("%s of %d", kind, lines), markOf(first+lines-1))
					w.check(t, kind, lines)
				}
			}
		})
	}
}

// A terminal is resized in the middle of answers, as by somebody who pulls at its corner. All of them are
// there whole and once, at each moment, with the line that is typed as the lowest.
func TestAnswersAreDrawnWholeAndOnceWhileTheTerminalIsResized(t *testing.T) {
	for _, c := range []struct {
		kind  string
		name  string
		sizes [][2]int
	}{
		{"reflows", "xterm-kitty", [][2]int{{60, 24}, {40, 24}, {100, 24}, {132, 50}, {132, 25}, {80, 24}, {70, 20}, {90, 12}}},
		{"cuts off", "linux", [][2]int{{60, 24}, {30, 24}, {100, 24}, {132, 50}, {132, 25}, {80, 24}, {70, 20}, {90, 12}}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Setenv("TERM", c.name)
			for _, name := range []string{"TMUX", "STY", "XTERM_VERSION"} {
				t.Setenv(name, "")
			}
			w := &watcher{terminal: consoletest.NewTerminal(80, 24)}
			d := sitBefore(t, console.Config{}, 80, 24, w)
			w.first = 100_000
			for _, kind := range []string{"lines", "a list", "code", "steps", "many rows"} {
				const lines = 120
				first := w.begin()
				said := answer(kind, first, lines)
				d.press(t, "tell me\r")
				in := d.next(t)
				d.emit(in.ID, bus.Event{Type: bus.TurnStart}, bus.Event{Type: bus.BlockStart, Kind: "text"})
				pieces := len(said) / (4 * len(c.sizes))
				for n, begin := 0, 0; begin < len(said); n, begin = n+1, begin+pieces {
					d.emit(in.ID, bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: said[begin:min(begin+pieces, len(said))]})
					if n%4 == 3 && n/4 < len(c.sizes) {
						w.seesLast(t, said[:min(begin+pieces, len(said))])
						w.pull(t, d.keyboard, c.sizes[n/4], c.kind == "reflows")
					}
				}
				d.emit(in.ID, bus.Event{Type: bus.BlockStop, Kind: "text"}, bus.Event{Type: bus.TurnComplete})
				d.answer(t, in.ID+"#reply", said)
				w.waitFor(t, kind, markOf(first+lines-1))
				w.check(t, kind, lines)
			}
		})
	}
}

// pull gives the terminal another size, over one that lies between, of which the program learns too late.
// Nothing may be on its way to the terminal: what was drawn for another size than it has when that comes fits
// no terminal, and the program cannot know that.
func (w *watcher) pull(t *testing.T, keyboard *os.File, size [2]int, reflows bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.terminal.Size()
	w.terminal.Resize((now[0]+size[0])/2, (now[1]+size[1])/2, reflows)
	w.terminal.Resize(size[0], size[1], reflows)
	resize(t, keyboard, uint16(size[0]), uint16(size[1]))
	for range 2 { // one for each
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Error(err)
		}
	}
}

// begin returns the first mark of the next answer.
func (w *watcher) begin() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.terminal.Forget()
	w.wrong = nil
	return w.first
}

// seesLast waits until the last mark of what was said so far is to be seen.
func (w *watcher) seesLast(t *testing.T, said string) {
	t.Helper()
	if marks := mark.FindAllString(said, -1); len(marks) > 0 {
		last := marks[len(marks)-1]
		w.until(t, last, func() bool {
			return strings.Contains(strings.Join(append(w.terminal.Scrolled(), w.terminal.Rows()...), "\n"), last)
		})
	}
}

// waitFor waits until nothing goes on and the last line of an answer is there.
func (w *watcher) waitFor(t *testing.T, what, last string) {
	t.Helper()
	w.until(t, what, func() bool {
		all := strings.Join(append(w.terminal.Scrolled(), w.terminal.Rows()...), "\n")
		return strings.Contains(all, last) && strings.Contains(all, "(nothing")
	})
}

func (w *watcher) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		w.mu.Lock()
		held := holds()
		rows := strings.Join(w.terminal.Rows(), "\n")
		w.mu.Unlock()
		if held {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s:\n%s", what, rows)
		}
	}
}

// check reports what was wrong, and what of an answer is missing.
func (w *watcher) check(t *testing.T, kind string, lines int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wrong := range w.wrong {
		t.Errorf("%s of %d lines: %s", kind, lines, wrong)
	}
	all := strings.Join(append(w.terminal.Scrolled(), w.terminal.Rows()...), "\n")
	if code := strings.Contains(kind, "code"); code {
		_, all, _ = strings.Cut(all, "go\n")
		if between := strings.Count(all, ")\n\n"); between < lines { // and one before what follows
			t.Errorf("%s of %d lines: %d empty lines:\n%s", kind, lines, between, all)
		}
	}
	n := 0
	for _, m := range mark.FindAllString(all, -1) {
		if m >= markOf(w.first) {
			n++
		}
	}
	if w.first += lines; n != lines {
		t.Errorf("%s of %d lines: %d are there:\n%s", kind, lines, n, all)
	}
}

// Who has set NO_COLOR gets nothing but text and what moves the cursor.
func TestNoColorSendsNoStyles(t *testing.T) {
	t.Setenv("NO_COLOR", "yes")
	t.Setenv("FORCE_HYPERLINK", "1")
	d := sitAt(t, console.Config{Commands: []string{"help", "history"}})
	d.press(t, "/h")
	d.see(t, "/help · /history")
	d.press(t, "\x03tell me\r")
	in := d.next(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart}, bus.Event{Type: bus.BlockDelta, Kind: "thinking", Delta: "hmm"},
		bus.Event{Type: bus.BlockStop, Kind: "thinking"}, bus.Event{Type: bus.ToolStart, Tool: "exec_shell", Call: "c1", Delta: "make"},
		bus.Event{Type: bus.ToolProgress, Tool: "exec_shell", Call: "c1", Delta: "building step 3 of 4"})
	d.see(t, "· exec_shell make … building step 3 of 4\n")
	d.emit(in.ID, bus.Event{Type: bus.ToolProgress, Tool: "exec_shell", Call: "c1", Delta: "building step 4 of 4"})
	d.see(t, "· exec_shell make … building step 4 of 4\n")
	d.emit(in.ID, bus.Event{Type: bus.ToolEnd, Tool: "exec_shell", Call: "c1"}, bus.Event{Type: bus.TurnComplete})
	d.answer(t, in.ID+"#reply", "# Head\n\n**bold** `code` [words](https://example.org) ~~gone~~\n\n| a |\n|---|\n| *b* |")
	d.see(t, "https://example.org")
	d.ends(t, "›")
	if codes := regexp.MustCompile(`\x1b\[[0-9;:]*m|\x1b\]`).FindAllString(d.shown.String(), -1); len(codes) > 0 {
		t.Errorf("styles are sent: %q", codes)
	}
}
