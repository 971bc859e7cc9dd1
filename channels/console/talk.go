package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/term"

	"parley/bus"
)

const promptText = "› "

// terminal tells whether a stream is one, and gives its descriptor.
func terminal(stream any) (int, bool) {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	fd := int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// typist is what a conversation is typed with: lines, Ctrl-C, and the end of both.
type typist struct {
	lines      chan string
	interrupts chan struct{}
	ended      chan error
}

// talk publishes line after line until there are no more.
func (c *Channel) talk(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	t := typist{make(chan string), make(chan struct{}, 1), make(chan error, 1)}
	fd, typed := terminal(c.cfg.In)
	if _, shown := terminal(c.cfg.Out); !typed || !shown {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { t.ended <- c.scan(ctx, t.lines) }() // a read of In cannot be interrupted
		return c.converse(ctx, publish, t)
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	p := newPrompter(fd, c.cfg.Out)
	c.screen.attach(p, p.term)
	editing, cancel := context.WithCancel(ctx)
	var editor sync.WaitGroup
	go p.pump(c.cfg.In, t.interrupts) // as above
	editor.Go(func() { t.ended <- c.edit(editing, p, t.lines) })

	err = c.converse(ctx, publish, t)

	cancel()
	p.keys.close()
	editor.Wait()
	p.end()
	c.screen.attach(nil, c.cfg.Out)
	if failed := term.Restore(fd, before); failed != nil && err == nil {
		err = fmt.Errorf("restore the terminal: %w", failed)
	}
	return err
}

// converse publishes what is typed, and /stop for Ctrl-C while an answer is awaited.
func (c *Channel) converse(ctx context.Context, publish func(context.Context, bus.Inbound) error, t typist) error {
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
		in := c.said(text)
		c.screen.asked(in.ID, strings.HasPrefix(text, "/"))
		if err := c.publish(ctx, publish, in); err != nil {
			return nil // ctx is done
		}
	}
}

// scan reads lines where there is no editing them.
func (c *Channel) scan(ctx context.Context, lines chan<- string) error {
	s := bufio.NewScanner(c.cfg.In)
	s.Buffer(nil, bus.MaxBody)
	for s.Scan() {
		if !c.hand(ctx, s.Text(), lines) {
			return nil
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("read a line: %w", err)
	}
	return io.EOF
}

// edit reads lines with their editing. Several that are pasted at once are one message.
func (c *Channel) edit(ctx context.Context, p *prompter, lines chan<- string) error {
	var pasted []string
	for {
		p.fit()
		line, err := p.term.ReadLine()
		switch {
		case errors.Is(err, term.ErrPasteIndicator):
			pasted = append(pasted, line)
			continue
		case err != nil:
			return err // io.EOF, also where reading was ended
		}
		text := strings.Join(append(pasted, line), "\n")
		pasted = nil
		if !c.hand(ctx, text, lines) {
			return nil
		}
	}
}

// hand passes a line on, unless it is empty; false if ctx is done.
func (c *Channel) hand(ctx context.Context, text string, lines chan<- string) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		return true
	}
	c.screen.typed()
	select {
	case lines <- text:
		return true
	case <-ctx.Done():
		return false
	}
}
