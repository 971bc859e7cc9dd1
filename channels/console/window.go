package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"parley/channels/markup"
)

// A window is the lower end of a terminal: what is going on now, and beneath it
// the line that is typed. What is finished is printed above and scrolls away, so
// neither ever lands inside the other.
type window struct {
	program  *tea.Program
	width    atomic.Int64
	height   atomic.Int64
	markdown *markup.Renderer
	links    bool // the terminal makes links

	lines      chan string   // what was typed and sent off
	interrupts chan struct{} // Ctrl-C at an empty line
	ended      chan error    // why nothing more will be typed; io.EOF after Ctrl-D
}

// mostTyped is how many lines may have been sent off and not be taken yet.
const mostTyped = 16

// framesPerSecond is how often the window is drawn at most.
const framesPerSecond = 30

func newWindow(in io.Reader, out io.Writer, width, height int, earlier []string) *window {
	w := &window{
		markdown: markup.New(), links: makesLinks(os.Getenv),
		lines: make(chan string, mostTyped), interrupts: make(chan struct{}, 1), ended: make(chan error, 1),
	}
	w.resized(width, height)
	w.program = tea.NewProgram(newPrompt(w, earlier),
		tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond),
		tea.WithoutSignalHandler()) // the caller has one
	return w
}

// run shows the window until something ends it, and leaves the terminal as it was.
func (w *window) run() {
	_, err := w.program.Run()
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, tea.ErrProgramKilled):
		err = io.EOF
	default:
		err = fmt.Errorf("read the terminal: %w", err)
	}
	w.ended <- err
}

// close ends run; nothing of the window stays on the terminal.
func (w *window) close() { w.program.Send(closing{}) }

type closing struct{}

// resized notes the terminal's size.
func (w *window) resized(width, height int) {
	w.width.Store(int64(width))
	w.height.Store(int64(height))
}

// mostAbove is how many lines are put above the window at once. The terminal has to have
// room for them beside the window, as it was drawn last: what has no room scrolls away, and
// nothing takes it back.
func (w *window) mostAbove() int { return max(int(w.height.Load())/3, 1) }

// print puts a finished passage above, in parts.
func (w *window) print(p passage) {
	lines, most := w.linesOf(p), w.mostAbove()
	for len(lines) > 0 {
		n := min(most, len(lines))
		w.program.Println(strings.Join(lines[:n], "\n"))
		lines = lines[n:]
	}
}

// showUnfinished shows what is not finished yet, in place of what was shown so before.
func (w *window) now(p passage) { w.program.Send(p) }

// wait says whether an answer is awaited.
func (w *window) wait(busy bool) { w.program.Send(waiting(busy)) }

type waiting bool

// ask says what waits for the person's word.
func (w *window) ask(question string) { w.program.Send(asking(question)) }

type asking string

// A passage is a text that is shown as one.
type passage struct {
	text     string
	markdown bool
	dim      bool
}

// linesOf is a passage as the terminal shows it, lines broken between words.
func (w *window) linesOf(p passage) []string {
	width := int(w.width.Load())
	text := strings.Trim(clean(p.text), "\n")
	if p.markdown {
		text = w.markdown.RenderTerminal(text, markup.Screen{Width: width, Links: w.links})
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	lines := strings.Split(wrap(text, width), "\n")
	if p.dim {
		for i := range lines {
			lines[i] = dimOn + lines[i] + dimOff
		}
	}
	return lines
}

// mostGrowing is how much of a growing passage is looked at, in bytes: the rest
// is above the window's edge.
const mostGrowing = 8 << 10

// end is the end of a passage that grows, from the beginning of a line.
func (p passage) end() passage {
	if len(p.text) > mostGrowing {
		p.text = p.text[len(p.text)-mostGrowing:]
		if i := strings.IndexByte(p.text, '\n'); i >= 0 {
			p.text = p.text[i+1:]
		}
	}
	return p
}

// wrap breaks lines between words, and words only where they are longer than a line.
func wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Wrap(text, width, "")
}
