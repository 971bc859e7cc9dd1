package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"

	"parley/bus"
)

// terminalFD reports whether a stream is a terminal, and returns its file descriptor.
func terminalFD(stream any) (int, bool) {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	fd := int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// terminalSize returns the terminal's size; false if a window can't be drawn, because In or Out is no terminal, or
// the terminal does not know its size (a serial line) or can't move its cursor.
func (c *Channel) terminalSize() (width, height int, ok bool) {
	fd, shown := terminalFD(c.cfg.Out)
	if _, typed := terminalFD(c.cfg.In); !typed || !shown || os.Getenv("TERM") == "dumb" {
		return 0, 0, false
	}
	width, height, err := term.GetSize(fd)
	return width, height, err == nil && width > 0 && height > 0
}

// makesLinks reports, based on environment variables, whether the terminal turns the escape sequence for hyperlinks
// into links; a terminal can't be asked. It returns false inside a program such as tmux, which may not pass the
// sequence on. FORCE_HYPERLINK overrides all this, as it does in other programs; only NO_COLOR is stronger.
func makesLinks(getenv func(string) string) bool {
	if getenv("NO_COLOR") != "" { // then nothing is sent except what moves the cursor
		return false
	}
	switch getenv("FORCE_HYPERLINK") {
	case "":
	case "0":
		return false
	default:
		return true
	}
	if getenv("TMUX") != "" || getenv("STY") != "" {
		return false
	}
	const fixed = 5001 // the first version of VTE that hyperlinks don't crash
	if version, err := strconv.Atoi(getenv("VTE_VERSION")); err == nil && version >= fixed {
		return true
	}
	return slices.Contains([]string{"iTerm.app", "WezTerm", "vscode", "ghostty"}, getenv("TERM_PROGRAM")) ||
		slices.Contains([]string{"xterm-kitty", "xterm-ghostty", "alacritty", "foot"}, getenv("TERM")) ||
		getenv("WT_SESSION") != "" || getenv("KONSOLE_VERSION") != "" || getenv("DOMTERM") != ""
}

// A keyboard delivers what a person types in a conversation: lines, Ctrl-C, and the end of input.
type keyboard struct {
	lines      <-chan string
	interrupts <-chan struct{}
	ended      <-chan error
}

// openTerminal opens the terminal for a conversation, or plain input and output if no window can be drawn; the
// returned function leave closes it.
func (c *Channel) openTerminal(ctx context.Context) (t keyboard, leave func()) {
	width, height, ok := c.terminalSize()
	if !ok {
		lines, ended := make(chan string), make(chan error, 1)
		go func() { ended <- c.readLines(ctx, lines) }() // a read of In can't be interrupted
		return keyboard{lines: lines, ended: ended}, func() {}
	}
	fd, _ := terminalFD(c.cfg.In)
	w := newWindow(fd, c.cfg.In, c.cfg.Out, width, height, c.cfg)
	var running sync.WaitGroup
	running.Go(w.run)
	c.screen.attach(w)
	if c.cfg.Banner != "" {
		c.screen.printNote(c.cfg.Banner)
	}
	c.screen.printPast(c.cfg.EarlierExchanges)
	return keyboard{w.lines, w.interrupts, w.ended}, func() {
		w.close()
		running.Wait()
		c.screen.attach(c.plain)
		if c.screen.isBusy() && c.cfg.Leaving != "" {
			c.screen.printNote(c.cfg.Leaving)
		}
	}
}

// publishTyped publishes each typed line that it does not carry out itself. Ctrl-C publishes /stop while an answer
// is expected; a second Ctrl-C, or one while no answer is expected, ends the conversation.
func (c *Channel) publishTyped(ctx context.Context, publish func(context.Context, bus.Inbound) error, t keyboard) error {
	stopping := false
	for {
		var text string
		select {
		case text = <-t.lines:
			stopping = false
		case <-t.interrupts:
			if stopping || !c.screen.isBusy() {
				return io.EOF
			}
			text, stopping = stopText, true
		case err := <-t.ended:
			return err
		case <-ctx.Done():
			return nil
		}
		switch text {
		case "/quit", "/exit":
			return io.EOF
		case "/clear":
			c.screen.clear()
			continue
		}
		c.screen.showTyped(text)
		if text == "/help" {
			c.screen.printNote(keysHelp)
		}
		if done, leave := c.carryOut(ctx, text); leave {
			return io.EOF
		} else if done {
			continue
		}
		if command, taken := c.screen.takeDecision(text); taken {
			if command != "" && c.publish(ctx, publish, c.personMessage(command)) != nil {
				return nil // ctx is done
			}
			continue
		}
		if wrong := c.cfg.refusalOf(text); wrong != "" {
			c.screen.printNote(wrong)
			continue
		}
		in, wrong := c.withFiles(c.personMessage(text))
		if wrong != "" {
			c.screen.putBack(text, wrong+"; nothing was sent")
			continue
		}
		if with := in.Attachments; len(with) > 0 {
			c.screen.printNote(filesNote(with))
		}
		c.screen.recordSent(in.ID, text)
		if err := c.publish(ctx, publish, in); err != nil {
			return nil // ctx is done
		}
	}
}

// carryOut carries out a command that only a terminal has. done is false for any other text; leave says that the
// conversation is over.
func (c *Channel) carryOut(ctx context.Context, text string) (done, leave bool) {
	name, args, _ := strings.Cut(text, " ")
	name, is := strings.CutPrefix(name, "/")
	if c.cfg.RunTerminalCommand == nil || !is || !slices.Contains(terminalOnlyCommands(), name) {
		return false, false
	}
	said, leave := c.cfg.RunTerminalCommand(ctx, name, strings.TrimSpace(args))
	if said != "" {
		c.screen.printNote(said)
	}
	if leave {
		c.cfg.Leaving = "" // an answer continues in the meantime
	}
	return true, leave
}

// readLines reads lines from an input that has no editor, and leaves out empty ones. At the end of the input it
// returns io.EOF, and nil if ctx ends first.
func (c *Channel) readLines(ctx context.Context, lines chan<- string) error {
	s := bufio.NewScanner(c.cfg.In)
	s.Buffer(nil, bus.MaxBody)
	for s.Scan() {
		text := strings.TrimSpace(s.Text())
		if text == "" {
			continue
		}
		select {
		case lines <- text:
		case <-ctx.Done():
			return nil
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("read a line: %w", err)
	}
	return io.EOF
}
