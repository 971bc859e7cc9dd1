package console

import (
	"bytes"
	"io"
	"sync"

	"golang.org/x/term"
)

// The keys that mean something here.
const (
	keyInterrupt = 3  // Ctrl-C
	keyLineEnd   = 5  // Ctrl-E
	keyEraseLine = 21 // Ctrl-U
	keyEnter     = '\r'
	keyNewline   = '\n'
)

// A prompter is a terminal's line that is typed at.
type prompter struct {
	fd   int
	term *term.Terminal
	keys *keys
}

// newPrompter takes a terminal that is raw already.
func newPrompter(fd int, out io.Writer) *prompter {
	k := newKeys()
	p := &prompter{fd: fd, keys: k}
	p.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, out}, promptText)
	p.term.History = new(history)
	p.term.SetBracketedPasteMode(true)
	return p
}

// end leaves the terminal as it was, at the beginning of a line.
func (p *prompter) end() {
	p.term.SetBracketedPasteMode(false)
	p.term.SetPrompt("")
	_, _ = p.term.Write([]byte("\n")) // the last thing that is shown
}

// fit tells the editor how wide the terminal is now.
func (p *prompter) fit() {
	if width, height, err := term.GetSize(p.fd); err == nil && width > 0 {
		_ = p.term.SetSize(width, height) // it can only fail to repaint
	}
}

// hide takes the prompt away: what is shown next takes its place.
func (p *prompter) hide() { p.term.SetPrompt("") }

// show brings the prompt back. The editor draws it where a line begins, so an
// empty line is ended for it; where something was typed, it draws the line anew
// below what is shown.
func (p *prompter) show() {
	p.term.SetPrompt(promptText)
	if !p.keys.enter() {
		_, _ = p.term.Write([]byte("\n")) // what cannot be shown is in the log
	}
}

// pump hands on what is typed, but for Ctrl-C, until nothing more can be read.
func (p *prompter) pump(in io.Reader, interrupts chan<- struct{}) {
	defer p.keys.close()
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		for typed := buf[:n]; len(typed) > 0; {
			i := bytes.IndexByte(typed, keyInterrupt)
			if i < 0 {
				p.keys.add(typed)
				break
			}
			p.keys.add(typed[:i])
			typed = typed[i+1:]
			if p.keys.erase() {
				continue
			}
			select {
			case interrupts <- struct{}{}:
			default: // one is on its way
			}
		}
		if err != nil {
			return
		}
	}
}

// keys are what was typed and not yet read by the editor.
type keys struct {
	mu      sync.Mutex
	typed   []byte
	pending bool // the line has something on it
	closed  bool
	wake    chan struct{}
}

func newKeys() *keys { return &keys{wake: make(chan struct{}, 1)} }

// Read waits for keys.
func (k *keys) Read(p []byte) (int, error) {
	for {
		k.mu.Lock()
		n := copy(p, k.typed)
		k.typed = k.typed[n:]
		closed := k.closed
		k.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if closed {
			return 0, io.EOF
		}
		<-k.wake
	}
}

func (k *keys) add(typed []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range typed {
		k.pending = b != keyEnter && b != keyNewline
	}
	k.append(typed...)
}

// enter ends the line, if nothing was typed on it.
func (k *keys) enter() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending {
		return false
	}
	k.append(keyEnter)
	return true
}

// erase empties the line, if something was typed on it.
func (k *keys) erase() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.pending {
		return false
	}
	k.pending = false
	k.append(keyLineEnd, keyEraseLine)
	return true
}

func (k *keys) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.append()
}

// append adds keys and wakes the reader. k.mu is held.
func (k *keys) append(typed ...byte) {
	k.typed = append(k.typed, typed...)
	select {
	case k.wake <- struct{}{}:
	default: // it is awake
	}
}

// mostRemembered is how many lines can be called back.
const mostRemembered = 500

// A history remembers what was typed, but for empty lines and repetitions.
type history struct{ lines []string }

// Add remembers a line.
func (h *history) Add(line string) {
	if n := len(h.lines); line == "" || (n > 0 && h.lines[n-1] == line) {
		return
	}
	h.lines = append(h.lines, line)
	if len(h.lines) > mostRemembered {
		h.lines = h.lines[1:]
	}
}

// Len is how many lines are remembered.
func (h *history) Len() int { return len(h.lines) }

// At is a line, 0 being the newest.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
