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

// terminal tells whether a stream is one, and gives its descriptor.
func terminal(stream any) (int, bool) {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	fd := int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// size is the terminal's; false where none can be written all over: one that does
// not know its size (a serial line), or that cannot move its cursor.
func (c *Channel) size() (width, height int, ok bool) {
	fd, shown := terminal(c.cfg.Out)
	if _, typed := terminal(c.cfg.In); !typed || !shown || os.Getenv("TERM") == "dumb" {
		return 0, 0, false
	}
	width, height, err := term.GetSize(fd)
	return width, height, err == nil && width > 0 && height > 0
}

// makesLinks tells whether the terminal says of itself that it makes links of the escape
// sequence for them; it cannot be asked. Within another program that draws it (tmux)
// nobody knows. FORCE_HYPERLINK decides, as it does for other programs.
func makesLinks(getenv func(string) string) bool {
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
	const fixed = 5001 // the first VTE of which no link ends the terminal
	if version, err := strconv.Atoi(getenv("VTE_VERSION")); err == nil && version >= fixed {
		return true
	}
	return slices.Contains([]string{"iTerm.app", "WezTerm", "vscode", "ghostty"}, getenv("TERM_PROGRAM")) ||
		slices.Contains([]string{"xterm-kitty", "xterm-ghostty", "alacritty", "foot"}, getenv("TERM")) ||
		getenv("WT_SESSION") != "" || getenv("KONSOLE_VERSION") != "" || getenv("DOMTERM") != ""
}

// keyboard is what a conversation is typed with: lines, Ctrl-C, and the end of both.
type keyboard struct {
	lines      <-chan string
	interrupts <-chan struct{}
	ended      <-chan error
}

// openTerminal opens what a conversation is typed and shown on; leave closes it.
func (c *Channel) openTerminal(ctx context.Context) (t keyboard, leave func()) {
	width, height, ok := c.size()
	if !ok {
		lines, ended := make(chan string), make(chan error, 1)
		go func() { ended <- c.publishLines(ctx, lines) }() // a read of In cannot be interrupted
		return keyboard{lines: lines, ended: ended}, func() {}
	}
	w := newWindow(c.cfg.In, c.cfg.Out, width, height, c.cfg.Earlier)
	var running sync.WaitGroup
	running.Go(w.run)
	c.screen.attach(w)
	if c.cfg.Banner != "" {
		c.screen.tell(c.cfg.Banner)
	}
	return keyboard{w.lines, w.interrupts, w.ended}, func() {
		w.close()
		running.Wait()
		c.screen.attach(c.page)
		if c.screen.isBusy() && c.cfg.Leaving != "" {
			c.screen.tell(c.cfg.Leaving)
		}
	}
}

// publishTyped publishes what is typed, and /stop for Ctrl-C while an answer is awaited.
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
		}
		c.screen.typed(text)
		if command, taken := c.screen.decides(text); taken {
			if command != "" && c.publish(ctx, publish, c.said(command)) != nil {
				return nil // ctx is done
			}
			continue
		}
		if wrong := c.cfg.refusalOf(text); wrong != "" {
			c.screen.tell(wrong)
			continue
		}
		in := c.said(text)
		c.screen.asked(in.ID, text)
		if err := c.publish(ctx, publish, in); err != nil {
			return nil // ctx is done
		}
	}
}

// publishLines reads lines where there is no editing them.
func (c *Channel) publishLines(ctx context.Context, lines chan<- string) error {
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
