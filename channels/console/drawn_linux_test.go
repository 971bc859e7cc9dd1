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

// terminalSizes are the sizes of terminals, in columns and rows, on which answers are drawn.
var terminalSizes = [][2]int{{80, 24}, {132, 50}, {40, 12}, {24, 8}, {100, 6}} //nolint:gochecknoglobals // of this test alone

// linePattern finds the mark that distinguishes a line of an answer from all others.
var linePattern = regexp.MustCompile(`m\d{6}`) //nolint:gochecknoglobals // of this test alone

// A drawingWatcher inspects a terminal after each drawing, and records faults.
type drawingWatcher struct {
	mu                sync.Mutex
	terminal          *consoletest.Terminal
	unfinishedDrawing string
	drawings          int
	firstMark         int // the first mark of the next answer
	faults            []string
}

const endOfDrawing = "\x1b[?2026l" // ends a drawing

func (w *drawingWatcher) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unfinishedDrawing += string(b)
	for {
		drawing, rest, whole := strings.Cut(w.unfinishedDrawing, endOfDrawing)
		if !whole {
			return len(b), nil
		}
		w.unfinishedDrawing = rest
		_, _ = w.terminal.Write([]byte(drawing + endOfDrawing)) // writing to the emulator never fails
		w.inspect()
	}
}

// inspect looks for faults in what the terminal shows now.
func (w *drawingWatcher) inspect() {
	w.drawings++
	scrolled, rows := w.terminal.Scrolled(), w.terminal.Rows()
	last := len(rows) - 1
	for last > 0 && rows[last] == "" {
		last--
	}
	switch {
	case !strings.HasPrefix(rows[last], "›"):
		w.recordFault("the line that is typed is not the lowest", scrolled, rows)
	case len(scrolled) > 0 && last < len(rows)-1:
		w.recordFault("there are empty rows below the line that is typed", scrolled, rows)
	}
	if seen := linePattern.FindAllString(strings.Join(append(scrolled, rows...), "\n"), -1); !slices.IsSortedFunc(seen, func(a, b string) int {
		if a == b {
			return -1 // the line is there twice
		}
		return strings.Compare(a, b)
	}) {
		w.recordFault("lines are there twice, or in another order", scrolled, rows)
	}
}

func (w *drawingWatcher) recordFault(what string, scrolled, rows []string) {
	if len(w.faults) == 0 { // the first fault is enough
		w.faults = append(w.faults, fmt.Sprintf("drawing %d: %s:\n%s\n--------\n%s\n--------", w.drawings, what,
			strings.Join(scrolled[max(0, len(scrolled)-10):], "\n"), strings.Join(rows, "\n")))
	}
}

// answerKinds are the names of the kinds of answers that makeAnswer makes.
var answerKinds = []string{"lines", "paragraphs", "one line", "a list", "steps", "code", "a table", "wide", "everything"} //nolint:gochecknoglobals // of this test alone

// makeAnswer returns a text of n lines of a kind, with the marks from first on.
func makeAnswer(kind string, first, n int) string {
	marks := make([]string, n)
	for i := range marks {
		marks[i] = markText(first + i)
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

func markText(n int) string { return fmt.Sprintf("m%06d", n) }

// An answer is printed while it arrives. At each moment, each of its lines is there once, in order, and the
// typed line is the lowest, without empty rows. At the end, the whole answer is there.
func TestAnswersAreDrawnWholeAndOnce(t *testing.T) {
	for _, size := range terminalSizes {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			w := &drawingWatcher{terminal: consoletest.NewTerminal(size[0], size[1])}
			d := startTerminalOfSize(t, console.Config{}, size[0], size[1], w)
			w.firstMark = 100_000
			for _, lines := range []int{1, 25, 400} {
				for _, kind := range answerKinds {
					first := w.nextMark()
					said := makeAnswer(kind, first, lines)
					d.press(t, "tell me\r")
					in := d.nextMessage(t)
					d.emit(in.ID, bus.Event{Type: bus.TurnStart}, bus.Event{Type: bus.BlockStart, Kind: "text"})
					pieces := max(len(said)/60, 7)
					for begin := 0; begin < len(said); begin += pieces { // also cuts escape sequences and words in half
						piece := said[begin:min(begin+pieces, len(said))]
						d.emit(in.ID, bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: piece})
						if begin%(8*pieces) == 0 && kind != "a table" { // of a table, the end is shown only when it is complete
							w.awaitLastMark(t, said[:begin])
						}
					}
					d.emit(in.ID, bus.Event{Type: bus.BlockStop, Kind: "text"}, bus.Event{Type: bus.TurnComplete})
					d.sendAnswer(t, in.ID+"#reply", said)
					w.awaitIdle(t, fmt.Sprintf("%s of %d", kind, lines), markText(first+lines-1))
					w.reportFaults(t, kind, lines)
				}
			}
		})
	}
}

// A terminal is resized in the middle of answers, as by a person who drags its corner. At each moment, each
// answer is there whole and once, with the typed line as the lowest.
func TestAnswersAreDrawnWholeAndOnceDuringResizes(t *testing.T) {
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
			w := &drawingWatcher{terminal: consoletest.NewTerminal(80, 24)}
			d := startTerminalOfSize(t, console.Config{}, 80, 24, w)
			w.firstMark = 100_000
			for _, kind := range []string{"lines", "a list", "code", "steps", "many rows"} {
				const lines = 120
				first := w.nextMark()
				said := makeAnswer(kind, first, lines)
				d.press(t, "tell me\r")
				in := d.nextMessage(t)
				d.emit(in.ID, bus.Event{Type: bus.TurnStart}, bus.Event{Type: bus.BlockStart, Kind: "text"})
				pieces := len(said) / (4 * len(c.sizes))
				for n, begin := 0, 0; begin < len(said); n, begin = n+1, begin+pieces {
					d.emit(in.ID, bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: said[begin:min(begin+pieces, len(said))]})
					if n%4 == 3 && n/4 < len(c.sizes) {
						w.awaitLastMark(t, said[:min(begin+pieces, len(said))])
						w.resizeTwice(t, d.keyboard, c.sizes[n/4], c.kind == "reflows")
					}
				}
				d.emit(in.ID, bus.Event{Type: bus.BlockStop, Kind: "text"}, bus.Event{Type: bus.TurnComplete})
				d.sendAnswer(t, in.ID+"#reply", said)
				w.awaitIdle(t, kind, markText(first+lines-1))
				w.reportFaults(t, kind, lines)
			}
		})
	}
}

// resizeTwice gives the terminal a new size, and before that a size in between of which the program learns too
// late. Nothing may be on its way to the terminal, because a drawing for an old size would fit no terminal,
// which the program can't know.
func (w *drawingWatcher) resizeTwice(t *testing.T, keyboard *os.File, size [2]int, reflows bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.terminal.Size()
	w.terminal.Resize((now[0]+size[0])/2, (now[1]+size[1])/2, reflows)
	w.terminal.Resize(size[0], size[1], reflows)
	resize(t, keyboard, uint16(size[0]), uint16(size[1]))
	for range 2 { // one for each size
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Error(err)
		}
	}
}

// nextMark returns the first mark of the next answer.
func (w *drawingWatcher) nextMark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.terminal.Forget()
	w.faults = nil
	return w.firstMark
}

// awaitLastMark waits until the last mark of a text is visible.
func (w *drawingWatcher) awaitLastMark(t *testing.T, said string) {
	t.Helper()
	if marks := linePattern.FindAllString(said, -1); len(marks) > 0 {
		last := marks[len(marks)-1]
		w.waitUntil(t, last, func() bool {
			return strings.Contains(strings.Join(append(w.terminal.Scrolled(), w.terminal.Rows()...), "\n"), last)
		})
	}
}

// awaitIdle waits until nothing is happening and the last line of an answer is visible.
func (w *drawingWatcher) awaitIdle(t *testing.T, what, last string) {
	t.Helper()
	w.waitUntil(t, what, func() bool {
		all := strings.Join(append(w.terminal.Scrolled(), w.terminal.Rows()...), "\n")
		return strings.Contains(all, last) && strings.Contains(all, "(nothing")
	})
}

func (w *drawingWatcher) waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); ; <-time.After(time.Millisecond) {
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

// reportFaults fails the test if there were faults, or if a part of an answer is missing.
func (w *drawingWatcher) reportFaults(t *testing.T, kind string, lines int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wrong := range w.faults {
		t.Errorf("%s of %d lines: %s", kind, lines, wrong)
	}
	all := strings.Join(append(w.terminal.Scrolled(), w.terminal.Rows()...), "\n")
	if code := strings.Contains(kind, "code"); code {
		_, all, _ = strings.Cut(all, "go\n")
		if between := strings.Count(all, ")\n\n"); between < lines { // and one empty line before what follows
			t.Errorf("%s of %d lines: %d empty lines:\n%s", kind, lines, between, all)
		}
	}
	n := 0
	for _, m := range linePattern.FindAllString(all, -1) {
		if m >= markText(w.firstMark) {
			n++
		}
	}
	if w.firstMark += lines; n != lines {
		t.Errorf("%s of %d lines: %d are there:\n%s", kind, lines, n, all)
	}
}

// With NO_COLOR, the console sends only text and the sequences that move the cursor.
func TestNoColorSendsNoStyles(t *testing.T) {
	t.Setenv("NO_COLOR", "yes")
	t.Setenv("FORCE_HYPERLINK", "1")
	d := startTerminalWith(t, console.Config{Commands: []string{"help", "history"}})
	d.press(t, "/h")
	d.awaitText(t, "/help · /history")
	d.press(t, "\x03tell me\r")
	in := d.nextMessage(t)
	d.emit(in.ID, bus.Event{Type: bus.TurnStart}, bus.Event{Type: bus.BlockDelta, Kind: "thinking", Delta: "hmm"},
		bus.Event{Type: bus.BlockStop, Kind: "thinking"}, bus.Event{Type: bus.ToolStart, Tool: "exec_shell", Call: "c1", Delta: "make"},
		bus.Event{Type: bus.ToolProgress, Tool: "exec_shell", Call: "c1", Delta: "building step 3 of 4"})
	d.awaitText(t, "· exec_shell make … building step 3 of 4\n")
	d.emit(in.ID, bus.Event{Type: bus.ToolProgress, Tool: "exec_shell", Call: "c1", Delta: "building step 4 of 4"})
	d.awaitText(t, "· exec_shell make … building step 4 of 4\n")
	d.emit(in.ID, bus.Event{Type: bus.ToolEnd, Tool: "exec_shell", Call: "c1"}, bus.Event{Type: bus.TurnComplete})
	d.sendAnswer(t, in.ID+"#reply", "# Head\n\n**bold** `code` [words](https://example.org) ~~gone~~\n\n| a |\n|---|\n| *b* |")
	d.awaitText(t, "https://example.org")
	d.awaitSuffix(t, "›")
	if codes := regexp.MustCompile(`\x1b\[[0-9;:]*m|\x1b\]`).FindAllString(d.output.String(), -1); len(codes) > 0 {
		t.Errorf("styles are sent: %q", codes)
	}
}
