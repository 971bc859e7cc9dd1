// Package console implements the channel to the person at the terminal.
//
// It is a channel like any other: lines that are typed are published, and answers are sent to it. It also follows
// the session's events, so that text and tool calls appear as they happen; when the answer is finally sent, only
// what has not been shown yet is printed.
//
// The id of an answer begins with the id of the message that it answers and "#". That is how the console
// distinguishes answers from other messages.
//
// The files, in reading order: console.go is the channel; talk.go holds a conversation at a terminal, once.go asks
// a single question; screen.go shows turns, request.go asks whether tool calls may run, window.go and prompt.go are
// the lower end of the terminal, with the line that is being typed, growing.go decides which part of an unfinished
// text is printed, pane.go draws; status.go says what a turn has used, completion.go completes commands and file
// names, size.go follows the terminal's size; clean.go removes characters that a terminal would act on.
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
	"parley/channels/backoff"
	"parley/channels/console/past"
	"parley/channels/console/typedfiles"
	"parley/channels/markup"
)

// The channel's name and its only person. They appear in no configuration.
const (
	Name  = "console"
	Owner = Name + ":owner"
)

// ErrFailed says that the message in Config.Once got no answer. An error that wraps it says why, for people.
var ErrFailed = errors.New("no answer")

const (
	stopText = "/stop"
	// otherChatRetryWait is the wait before the next attempt to send a message that belongs to another terminal's
	// conversation.
	otherChatRetryWait = time.Minute
)

// An EventSource provides the events of a session's turns. A bus.Events is one.
type EventSource interface {
	Subscribe(ctx context.Context, feed bus.Feed, after uint64) (iter.Seq2[bus.Event, error], error)
}

// Config says which conversation to hold, and where to read and write.
type Config struct {
	Chat    string // the conversation's name, and the chat of its address
	Session string // the session's key, by which its events are found
	// Once is a single message to send instead of holding a conversation; only its answer
	// is printed. If Once is empty and In is not a terminal, all of In is the message.
	Once string
	// JSON prints the answer, or the reason why there is none, as a JSON object.
	JSON   bool
	In     io.Reader
	Out    io.Writer
	ErrOut io.Writer   // with Once, receives everything except the answer; nil discards it
	Events EventSource // provides the events; if nil, answers are printed only once they are complete
	// In a conversation, Banner is printed first, and Leaving is printed if the person leaves before the answer has
	// arrived.
	Banner, Leaving string
	// Hint is shown above the line that is typed while nothing is happening.
	Hint string
	// EarlierLines is what the person typed in earlier conversations, oldest first, for the arrow keys.
	EarlierLines []string
	// EarlierExchanges is what was said earlier, oldest first; its end is shown before the first line is typed.
	EarlierExchanges []past.Exchange
	// Commands are the names of the commands that can be completed, without a slash.
	Commands []string
	// RunTerminalCommand, if set, carries out a command that only a terminal has (/sessions, /model, /recall). It returns the text
	// to show, and whether the command ends the conversation.
	RunTerminalCommand func(ctx context.Context, name, args string) (said string, leave bool)
	// RefusalOf, if set, returns why a text must not be sent; "" if it may be.
	RefusalOf func(text string) string
	Log       *slog.Logger
}

// refusalOf returns why a text must not be sent; "" if it may be.
func (c Config) refusalOf(text string) string {
	if c.RefusalOf == nil {
		return ""
	}
	return c.RefusalOf(text)
}

// isCommand reports whether a text is a command, which is answered without a turn.
func isCommand(text string) bool { return strings.HasPrefix(text, "/") }

// A Channel is the terminal, as the channels.Channel of one conversation.
type Channel struct {
	cfg    Config
	plain  *plainOutput // prints while no window is drawn
	screen *screen
	once   *answerWaiter // waits for the answer to a single message; nil in a conversation
}

var _ channels.Channel = (*Channel)(nil)

// New makes a Channel. It reads no input before Receive is called. It fails if cfg has no Chat, In or Out.
func New(cfg Config) (*Channel, error) {
	if cfg.Chat == "" || cfg.In == nil || cfg.Out == nil {
		return nil, errors.New("console: chat, input and output are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ErrOut == nil {
		cfg.ErrOut = io.Discard
	}
	p := &plainOutput{out: cfg.Out}
	c := &Channel{cfg: cfg, plain: p, screen: newScreen(p, bus.Address{Channel: Name, Chat: cfg.Chat})}
	if _, typed := terminalFD(cfg.In); cfg.Once != "" || !typed {
		c.once = newAnswerWaiter(cfg)
	}
	return c, nil
}

// Limits returns only the dialect: a terminal scrolls, and so limits no text.
func (c *Channel) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }

// Receive publishes what is typed. It returns io.EOF when the person ends the conversation or the single message
// has been answered, an error that wraps ErrFailed if that message gets no answer, nil when ctx is done, and
// another error if it can't read or print.
//
// It waits for the goroutines that it started, except for a read of In, which nothing can interrupt.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	var typed keyboard
	if c.once == nil { // before the first events, which are shown on it
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
		return c.askOnce(ctx, publish)
	}
	return c.publishTyped(ctx, publish, typed)
}

// watch shows the events of the session's turns (news) until the subscription ends.
func (c *Channel) watch(news iter.Seq2[bus.Event, error]) {
	for e, err := range news {
		switch {
		case err != nil:
			c.cfg.Log.Debug("events were missed", slog.Any("error", err))
		case c.once != nil:
			c.once.handleEvent(e)
		default:
			c.screen.handleEvent(e)
		}
	}
}

// Send prints a part of a message. If the part belongs to an answer that was shown as it was written, Send prints
// only the rest. If the message is for another terminal's conversation, Send fails with the fault Retry.
func (c *Channel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	if to.Chat != c.cfg.Chat {
		return "", &channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: otherChatRetryWait, Code: "other_chat"}
	}
	var err error
	if c.once != nil {
		err = c.once.send(ctx, part)
	} else {
		c.screen.send(ctx, part)
		err = c.plain.writeError()
	}
	if err != nil {
		return "", &channels.SendError{Fault: channels.Unknown, Code: "output", Err: err}
	}
	return rand.Text(), nil
}

// personMessage returns a text as a message from the person at the terminal.
func (c *Channel) personMessage(text string) bus.Inbound {
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

// withFiles returns a message with the files that its text names; a command gets none. wrong says why one of them
// can't be sent. The files' references are paths on this machine: whoever publishes the message must send the
// contents.
func (c *Channel) withFiles(in bus.Inbound) (with bus.Inbound, wrong string) {
	if isCommand(in.Text) {
		return in, ""
	}
	in.Attachments, wrong = typedfiles.Find(in.Text)
	return in, wrong
}

// filesNote returns a text that says which files go with a message.
func filesNote(all []bus.Attachment) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = fmt.Sprintf("%s (%d bytes)", oneLine(a.Name), a.Size)
	}
	return bullet + "sent along: " + strings.Join(names, ", ")
}

// publish calls the publish that Receive was given until it succeeds. It fails only when ctx ends.
func (c *Channel) publish(ctx context.Context, publish func(context.Context, bus.Inbound) error, in bus.Inbound) error {
	const most = 5 * time.Second
	for wait := new(backoff.Series); ; {
		err := publish(ctx, in)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !wait.HasWaited() {
			if c.once == nil {
				c.screen.printNote("I couldn't store this yet; I'm still trying")
			}
			c.cfg.Log.Debug("a message is not stored yet; trying on", slog.String("message", in.ID), slog.Any("error", err))
		}
		if !backoff.Sleep(ctx, wait.Next(most)) {
			return ctx.Err()
		}
	}
}
