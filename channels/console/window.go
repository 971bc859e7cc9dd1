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

// A window is the lower end of a terminal: what the turn is doing now, and under it the
// line that is typed. Finished passages are printed above the window and scroll away, so
// neither ever disturbs the other.
type window struct {
	program  *tea.Program
	width    atomic.Int64
	height   atomic.Int64
	markdown *markup.Renderer
	links    bool // whether the terminal shows hyperlinks

	lines      chan string   // lines that were typed and sent
	interrupts chan struct{} // gets a value for each Ctrl-C at an empty line
	ended      chan error    // why the typing has ended; io.EOF after Ctrl-D
}

// maxQueuedLines is how many sent lines may wait to be received.
const maxQueuedLines = 16

// framesPerSecond is how many times a second the window is drawn at most.
const framesPerSecond = 30

func newWindow(in io.Reader, out io.Writer, width, height int, earlier []string) *window {
	w := &window{
		markdown: markup.New(), links: makesLinks(os.Getenv),
		lines: make(chan string, maxQueuedLines), interrupts: make(chan struct{}, 1), ended: make(chan error, 1),
	}
	w.setSize(width, height)
	w.program = tea.NewProgram(newPrompt(w, earlier),
		tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond),
		tea.WithoutSignalHandler()) // the caller has one
	return w
}

// run shows the window until something ends it, and restores the terminal.
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

// close ends run and removes the window from the terminal.
func (w *window) close() { w.program.Send(closeMsg{}) }

// A closeMsg tells the prompt that the conversation is over.
type closeMsg struct{}

// setSize stores the terminal's new size.
func (w *window) setSize(width, height int) {
	w.width.Store(int64(width))
	w.height.Store(int64(height))
}

// linesPerPrint is how many lines are printed above the window at once. The terminal must have
// room for them beside the window as it was drawn last: lines without room would scroll
// away, and nothing could bring them back.
func (w *window) linesPerPrint() int { return max(int(w.height.Load())/3, 1) }

// print prints a finished passage above the window, in portions.
func (w *window) print(p passage) {
	lines, most := w.linesOf(p), w.linesPerPrint()
	for len(lines) > 0 {
		n := min(most, len(lines))
		w.program.Println(strings.Join(lines[:n], "\n"))
		lines = lines[n:]
	}
}

// showUnfinished shows an unfinished passage in the window, in place of the one before.
func (w *window) showUnfinished(p passage) { w.program.Send(p) }

// showStatus shows the line that says what goes on.
func (w *window) showStatus(line string) { w.program.Send(statusMsg(line)) }

// A statusMsg tells the prompt the line that says what goes on.
type statusMsg string

// showQuestion shows the request that waits for the person's decision.
func (w *window) showQuestion(question string) { w.program.Send(questionMsg(question)) }

// A questionMsg tells the prompt the request that waits for a decision.
type questionMsg string

// A passage is a text that is shown as a unit, as plain text or Markdown, dimmed or not.
type passage struct {
	text     string
	markdown bool
	dim      bool
}

// linesOf returns a passage as lines for the terminal, broken between words.
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

// maxGrowingBytes is how many bytes of a growing passage are rendered, the last ones: earlier
// ones would not be visible in the window.
const maxGrowingBytes = 8 << 10

// tail returns the last maxGrowingBytes bytes of a growing passage, from the beginning of a
// line.
func (p passage) tail() passage {
	if len(p.text) > maxGrowingBytes {
		p.text = p.text[len(p.text)-maxGrowingBytes:]
		if i := strings.IndexByte(p.text, '\n'); i >= 0 {
			p.text = p.text[i+1:]
		}
	}
	return p
}

// wrap breaks lines between words, and inside words only if they are longer than a line.
func wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Wrap(text, width, "")
}
