package console

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"parley/channels/markup"
)

// A window is the lower end of a terminal: what the turn is doing now, below it a line that says what is going on,
// and the line that is being typed. Whatever is finished is printed above the window and stays. The window gets
// smaller only by as many rows as are printed above it: otherwise the terminal would be left with empty rows.
type window struct {
	program  *tea.Program
	markdown *markup.Renderer
	links    bool   // whether the terminal shows hyperlinks
	hint     string // shown in the line that says what is going on while nothing is
	fd       int    // the terminal that is read
	changed  chan struct{}

	mu            sync.Mutex
	pane          pane
	width, height int
	finished      []string        // the lines that must be printed above the window
	growing       *growingPassage // the unfinished passage; nil if there is none
	calls         passage         // the tool calls that are running
	status        string          // says what is going on; "" if nothing is
	helpText      string          // helps with the line that is being typed, and is shown instead of status; "" if there is none
	question      string          // the question that the person has to decide; "" if there is none
	typedRows     []string        // the line that is being typed, as rows
	cursor        position        // where the cursor is in them

	lines      chan string   // lines that were typed and sent
	interrupts chan struct{} // receives a value for each Ctrl-C at an empty line
	ended      chan error    // receives why typing has ended; io.EOF after Ctrl-D
}

// maxQueuedLines is the number of sent lines that may wait to be received.
const maxQueuedLines = 16

// frameInterval is the minimum time between two drawings of the window.
const frameInterval = time.Second / 30

func newWindow(fd int, in io.Reader, out io.Writer, width, height int, cfg Config) *window {
	w := &window{
		markdown: markup.New(), links: makesLinks(os.Getenv), hint: cfg.Hint, fd: fd, changed: make(chan struct{}, 1),
		pane:  pane{out: out, reflows: reflowsLines(os.Getenv), noStyles: os.Getenv("NO_COLOR") != ""},
		width: width, height: height, typedRows: []string{promptText},
		lines: make(chan string, maxQueuedLines), interrupts: make(chan struct{}, 1), ended: make(chan error, 1),
	}
	w.program = tea.NewProgram(newPrompt(w, cfg), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutRenderer(),      // the window draws itself: only then is what leaves it printed at the same moment
		tea.WithoutSignalHandler()) // the caller has one
	return w
}

// run shows the window until something ends it, restores the terminal, and sends the reason to w.ended.
func (w *window) run() {
	err := w.runOnTerminal()
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, tea.ErrProgramKilled):
		err = io.EOF
	default:
		err = fmt.Errorf("read the terminal: %w", err)
	}
	w.ended <- err
}

// runOnTerminal makes the terminal pass on each key, and draws the window, until the program ends.
func (w *window) runOnTerminal() (err error) {
	before, err := term.MakeRaw(w.fd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, term.Restore(w.fd, before)) }()
	if err := w.pane.begin(); err != nil {
		return err
	}
	stopSizes := w.followSize()
	defer stopSizes()
	var drawing sync.WaitGroup
	done := make(chan struct{})
	drawing.Go(func() { w.drawOften(done) })
	_, err = w.program.Run()
	close(done)
	drawing.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if drawn := w.drawLast(); drawn != nil {
		return errors.Join(err, drawn)
	}
	return err
}

// drawOften draws the window whenever it has changed, but not more often than people can notice.
func (w *window) drawOften(done <-chan struct{}) {
	for {
		select {
		case <-w.changed:
		case <-done:
			return
		}
		w.mu.Lock()
		w.drawSoon()
		w.mu.Unlock()
		select {
		case <-time.After(frameInterval):
		case <-done:
			return
		}
	}
}

// close ends run and removes the window from the terminal.
func (w *window) close() { w.program.Send(closeMsg{}) }

// A closeMsg tells the prompt that the conversation is over.
type closeMsg struct{}

// update changes what the window shows, and has it drawn soon.
func (w *window) update(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default: // it will be drawn anyway
	}
}

// print prints a finished passage above the window.
func (w *window) print(p passage) {
	w.update(func() { w.finished = append(w.finished, w.linesOf(p)...) })
}

// grow shows an unfinished passage, which begins with the text it had before.
func (w *window) grow(p passage) {
	w.update(func() {
		if w.growing == nil {
			w.growing = new(growingPassage)
		}
		w.growing.passage = p
	})
}

// finish prints the rest of the passage that was growing.
func (w *window) finish() {
	w.update(func() {
		if w.growing != nil {
			w.finished = append(w.finished, w.growing.finish(w.linesOf)...)
			w.growing = nil
		}
	})
}

// showCalls replaces the lines of the running tool calls.
func (w *window) showCalls(lines string) { w.update(func() { w.calls = passage{text: lines} }) }

// showStatus shows the line that says what is going on.
func (w *window) showStatus(line string) { w.update(func() { w.status = line }) }

// showQuestion prints the request that the person has to decide, once, and makes the line that is being typed ask
// for the decision.
func (w *window) showQuestion(question string) {
	w.update(func() {
		if question != "" && question != w.question {
			w.finished = append(w.finished, w.linesOf(passage{text: question})...)
		}
		w.question = question
	})
	w.program.Send(questionMsg(question))
}

// putBack puts a text that was sent back into the line.
func (w *window) putBack(text string) { w.program.Send(putBackMsg(text)) }

// A putBackMsg tells the prompt that a text could not be sent.
type putBackMsg string

// A questionMsg tells the prompt which request is waiting for a decision.
type questionMsg string

// showTyped shows the line that is being typed, as rows, with the cursor in them and the text that helps with it.
func (w *window) showTyped(rows []string, cursor position, helpText string) {
	w.update(func() { w.typedRows, w.cursor, w.helpText = rows, cursor, helpText })
}

// send passes a typed line on to the conversation, and shows the line that is empty then at the same moment: the
// conversation prints what was sent, which nobody should see twice. It returns false if too many lines wait.
func (w *window) send(line string, rows []string, cursor position) (sent bool) {
	w.update(func() {
		select {
		case w.lines <- line:
			w.typedRows, w.cursor, sent = rows, cursor, true
		default:
		}
	})
	return sent
}

// clear clears the screen; what has scrolled away stays.
func (w *window) clear() { w.update(func() { w.pane.clear() }) }

// resize sets the terminal's new size.
func (w *window) resize(width, height int) {
	w.update(func() {
		if width != w.width || height != w.height {
			w.width, w.height = width, height
			w.pane.resize(width, height)
		}
	})
}

// drawSoon draws the window, unless the terminal's size has changed. The caller holds w.mu.
func (w *window) drawSoon() {
	if width, height, ok := w.size(); ok && (width != w.width || height != w.height) {
		go w.program.Send(sizeMsg{}) // the typed line is then laid out for the new size, and everything is drawn
		return
	}
	_ = w.draw() // if the terminal is gone, drawLast fails too, and its error is reported
}

// draw draws the window, and prints what is finished above it. The caller holds w.mu.
func (w *window) draw() error {
	below := 1 + len(w.typedRows)
	// A third, so that the window still fits if the terminal's height is halved. Whatever does not fit scrolls away
	// unfinished, and can't be taken back.
	room := max(min(w.height/3, w.height-below-1), 1)
	var rows []string
	if w.growing != nil {
		finished, rest := w.growing.advance(room, w.linesOf)
		w.finished = append(w.finished, finished...)
		rows = firstLines(rest, room, w.width)
	} else {
		rows = w.linesOf(w.calls)
		rows = rows[max(len(rows)-room, 0):]
	}
	if _, stands := w.pane.extent(); stands > 0 { // if the window got smaller, there would be empty rows below it
		rows = append(rows, make([]string, max(min(stands, w.height)-len(w.finished)-len(rows)-below, 0))...)
	}
	status := cmp.Or(w.helpText, w.status, w.hint)
	rows = append(rows, dimmedRow(oneRow(status), w.width))
	cursor := w.cursor
	cursor.row += len(rows)
	rows = append(rows, w.typedRows...)
	if over := len(rows) - w.height; over > 0 && w.height > 0 { // the terminal is not high enough for what is being typed
		rows, cursor.row = rows[over:], max(cursor.row-over, 0)
	}
	finished := w.finished
	w.finished = nil
	return w.pane.draw(finished, rows, cursor)
}

// drawLast prints what is finished, and removes the window from the terminal. The caller holds w.mu.
func (w *window) drawLast() error {
	if w.growing != nil {
		w.finished = append(w.finished, w.growing.finish(w.linesOf)...)
		w.growing = nil
	}
	return errors.Join(w.draw(), w.pane.end())
}

// firstLines returns the first of the lines if not all fit into the room, and how many more there are.
func firstLines(lines []string, room, width int) []string {
	if len(lines) <= room {
		return lines
	}
	shown := append([]string(nil), lines[:room-1]...)
	more := fmt.Sprintf("… %d more lines, which I'll show once all of them have arrived", len(lines)-len(shown))
	return append(shown, dimmedRow(more, width))
}

// oneRow returns a text without line breaks and without characters that a terminal acts on.
func oneRow(text string) string { return strings.Join(strings.Fields(clean(text)), " ") }

// dimmedRow returns a text as one row, dimmed.
func dimmedRow(text string, width int) string {
	return dimmed(ansi.Truncate(text, max(width-1, 1), "…"))
}

// dimmed returns a line, dimmed.
func dimmed(line string) string {
	if line == "" {
		return ""
	}
	return dimOn + line + dimOff
}

// A passage is a text that is shown as a unit, as plain text or Markdown, dimmed or not.
type passage struct {
	text       string
	isMarkdown bool
	isDimmed   bool
}

// linesOf returns a passage as lines for the terminal, broken between words.
func (w *window) linesOf(p passage) []string {
	text := strings.Trim(clean(p.text), "\n")
	if p.isMarkdown {
		text = w.markdown.RenderTerminal(text, markup.Screen{Width: w.width, Links: w.links})
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	lines := strings.Split(wrap(text, w.width), "\n")
	if p.isDimmed {
		for i := range lines {
			lines[i] = dimmed(ansi.Strip(lines[i])) // the end of a style would also end the dimming
		}
	}
	return lines
}

// wrap breaks lines between words, and inside words only if they are longer than a line.
func wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Wrap(text, width, "")
}
