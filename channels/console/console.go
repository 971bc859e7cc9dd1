// Package console is the channel to the person at the terminal.
//
// It is a channel like any other: what is typed is published, and what is
// answered is sent to it. Beside that it follows the session's events, so that
// text and tool calls show while they happen; what has been shown so is not
// printed again when it is sent.
//
// What answers a message, whoever it comes from, has an id that begins with the
// message's and "#": that is how an answer is told from what else is said here.
//
// The files, in reading order: console.go is the channel; talk.go talks at a
// terminal, once.go asks a single question; screen.go shows turns, request.go asks
// about calls, window.go and
// prompt.go are the lower end of the terminal with the line that is typed; clean.go
// removes characters that a terminal would act on.
package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// The channel's name and its person. They are in no configuration.
const (
	Name  = "console"
	Owner = Name + ":owner"
)

// ErrFailed says that the one message was not answered; the rest of the error
// says why, for people.
var ErrFailed = errors.New("no answer")

const (
	stopText = "/stop"
	// otherChatWait is how long a message waits that belongs to another terminal.
	otherChatWait = time.Minute
)

// A Watcher follows what the turns of a session do. A bus.Events is one.
type Watcher interface {
	Subscribe(ctx context.Context, feed bus.Feed, after uint64) (iter.Seq2[bus.Event, error], error)
}

// Config says where to talk and what about.
type Config struct {
	Chat    string // the conversation's name, and the chat of its address
	Session string // its session's key, for the events
	// Once is one message to say instead of talking: its answer alone is
	// printed. Where it is empty and In is no terminal, all of In is the message.
	Once string
	// JSON prints the one answer, or why there is none, as a JSON object.
	JSON   bool
	In     io.Reader
	Out    io.Writer
	Err    io.Writer // for what is no answer while Once is set; nil discards it
	Events Watcher   // nil: answers are printed when they are whole
	// Banner is said first, and Leaving when the person goes before the answer
	// is there, where people talk.
	Banner, Leaving string
	// Earlier is what the person said before, the oldest first: the arrow keys
	// bring it back.
	Earlier []string
	// Refuse, if set, says what is wrong with a text that is not to be sent; ""
	// is nothing.
	Refuse func(text string) string
	Log    *slog.Logger
}

func (c Config) refusalOf(text string) string {
	if c.Refuse == nil {
		return ""
	}
	return c.Refuse(text)
}

// isCommand tells what is answered without a turn.
func isCommand(text string) bool { return strings.HasPrefix(text, "/") }

// A Channel is the terminal. It is a channels.Channel for one conversation.
type Channel struct {
	cfg    Config
	page   *plainOutput // what is written where nobody types at a terminal
	screen *screen
	once   *once // nil where people talk
}

var _ channels.Channel = (*Channel)(nil)

// New makes a channel. It reads nothing before Receive.
func New(cfg Config) (*Channel, error) {
	if cfg.Chat == "" || cfg.In == nil || cfg.Out == nil {
		return nil, errors.New("console: chat, input and output are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Err == nil {
		cfg.Err = io.Discard
	}
	p := &plainOutput{out: cfg.Out}
	c := &Channel{cfg: cfg, page: p, screen: newScreen(p, bus.Address{Channel: Name, Chat: cfg.Chat})}
	if _, typed := terminal(cfg.In); cfg.Once != "" || !typed {
		c.once = newOnce(cfg)
	}
	return c, nil
}

// Limits has none: a terminal scrolls.
func (c *Channel) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }

// Receive publishes what is typed. When the person has had enough, and when the
// one message is answered, it returns io.EOF; an answer that failed gives an
// ErrFailed; when ctx is done it returns nil.
//
// It waits for what it started, but for a read of In that nothing can interrupt.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	var typed keyboard
	if c.once == nil { // before the first news, which are shown on it
		var leave func()
		typed, leave = c.openTerminal(ctx)
		defer leave()
	}
	if c.cfg.Events != nil {
		news, err := c.cfg.Events.Subscribe(ctx, bus.SessionFeed(c.cfg.Session), 0)
		if err != nil {
			return fmt.Errorf("follow the session: %w", err)
		}
		watching.Go(func() { c.watch(news) })
	}
	if c.once != nil {
		return c.ask(ctx, publish)
	}
	return c.publishTyped(ctx, publish, typed)
}

// watch shows what the session's turns do, until its subscription ends.
func (c *Channel) watch(news iter.Seq2[bus.Event, error]) {
	for e, err := range news {
		switch {
		case err != nil:
			c.cfg.Log.Debug("events were missed", slog.Any("error", err))
		case c.once != nil:
			c.once.event(e)
		default:
			c.screen.event(e)
		}
	}
}

// Send prints what was not shown yet.
func (c *Channel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	if to.Chat != c.cfg.Chat {
		return "", &channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: otherChatWait, Code: "other_chat"}
	}
	var err error
	if c.once != nil {
		err = c.once.send(ctx, part)
	} else {
		c.screen.send(ctx, part)
		err = c.page.failed()
	}
	if err != nil {
		return "", &channels.SendError{Fault: channels.Unknown, Code: "output", Err: err}
	}
	return rand.Text(), nil
}

// said is a message of the person's.
func (c *Channel) said(text string) bus.Inbound {
	return bus.Inbound{
		ID:        Name + ":" + rand.Text(),
		Kind:      bus.Said,
		From:      bus.Person{ID: Owner},
		At:        bus.Address{Channel: Name, Chat: c.cfg.Chat},
		Mentioned: true,
		Text:      text,
		SentAt:    time.Now(),
	}
}

// publish hands in over however often that takes. Its error is ctx's.
func (c *Channel) publish(ctx context.Context, publish func(context.Context, bus.Inbound) error, in bus.Inbound) error {
	const first, most = 100 * time.Millisecond, 5 * time.Second
	for wait := first; ; wait = min(2*wait, most) {
		err := publish(ctx, in)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if wait == first {
			if c.once == nil {
				c.screen.tell("this could not be stored yet; trying on")
			}
			c.cfg.Log.Debug("a message is not stored yet; trying on", slog.String("message", in.ID), slog.Any("error", err))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
