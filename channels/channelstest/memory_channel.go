package channelstest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// A MemoryChannel is a channel whose platform is in memory. It records what
// it was sent, and fails as it is told.
type MemoryChannel struct {
	// Offers is what Limits returns.
	Offers channels.Limits
	// OnSend, if set, decides about each send, edits and files too, before it is
	// recorded: whether it arrives, and what its sender is told.
	OnSend func(ctx context.Context, to bus.Address, part channels.Part) (arrives bool, err error)

	listening chan struct{}
	publish   func(context.Context, bus.Inbound) error

	mu   sync.Mutex
	sent []Arrival
}

// An Arrival is a part as the platform got it.
type Arrival struct {
	To   bus.Address
	Part channels.Part
	ID   string
	At   time.Time
	Edit bool      // it took the place of the text that was there
	File *bus.File // came with it, if any
}

// NewMemoryChannel makes a channel without limits, of plain text.
func NewMemoryChannel() *MemoryChannel { return &MemoryChannel{listening: make(chan struct{})} }

// Receive implements channels.Channel. It may be called once.
func (c *MemoryChannel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	c.publish = publish
	close(c.listening)
	<-ctx.Done()
	return ctx.Err()
}

// Say hands a message over and returns what the bot's side said to it: nil is
// an acknowledgement.
func (c *MemoryChannel) Say(ctx context.Context, in bus.Inbound) error {
	select {
	case <-c.listening:
		return c.publish(ctx, in)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Send implements channels.Channel.
func (c *MemoryChannel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	return c.take(ctx, Arrival{To: to, Part: part})
}

// take records what arrives; what has no id is new and gets one.
func (c *MemoryChannel) take(ctx context.Context, a Arrival) (string, error) {
	arrives, err := true, error(nil)
	if c.OnSend != nil {
		arrives, err = c.OnSend(ctx, a.To, a.Part)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.ID == "" {
		a.ID = fmt.Sprint("id", len(c.sent)+1)
	}
	if a.At = time.Now(); arrives {
		c.sent = append(c.sent, a)
	}
	if err != nil {
		return "", err
	}
	return a.ID, nil
}

// Limits implements channels.Channel.
func (c *MemoryChannel) Limits() channels.Limits { return c.Offers }

// Sent is all that has arrived, in order.
func (c *MemoryChannel) Sent() []Arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

// Texts are the texts that have arrived in a chat, in order.
func (c *MemoryChannel) Texts(chat string) []string {
	var texts []string
	for _, a := range c.Sent() {
		if a.To.Chat == chat {
			texts = append(texts, a.Part.Text)
		}
	}
	return texts
}

// A TypingChannel also shows that the bot is at work.
type TypingChannel struct {
	*MemoryChannel

	mu    sync.Mutex
	shown []Arrival
}

// Typing implements channels.Typer.
func (c *TypingChannel) Typing(_ context.Context, to bus.Address) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = append(c.shown, Arrival{To: to, At: time.Now()})
	return 5 * time.Second, nil
}

// Shown is when the bot was shown at work, and where.
func (c *TypingChannel) Shown() []Arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.shown)
}

// A ButtonChannel is an EditingChannel that also shows buttons.
type ButtonChannel struct{ *EditingChannel }

// MostButtons implements channels.ButtonShower.
func (ButtonChannel) MostButtons() (count, bytes int) { return 3, 64 }

// A TracingChannel can tell what has arrived.
type TracingChannel struct{ *MemoryChannel }

// FindSent implements channels.Reconciler.
func (c TracingChannel) FindSent(_ context.Context, _ bus.Address, part channels.Part) (string, bool, error) {
	for _, a := range c.Sent() {
		if a.Part.Key == part.Key {
			return a.ID, true, nil
		}
	}
	return "", false, nil
}

// A ThreadingChannel has replies stand in a thread below what they reply to.
type ThreadingChannel struct {
	*MemoryChannel
	// OnReply, if set, decides whether it can be told where a reply would stand.
	OnReply func() error
}

// ReplyAddress implements channels.Replier.
func (c ThreadingChannel) ReplyAddress(_ context.Context, to bus.Address, id string) (bus.Address, error) {
	if c.OnReply != nil {
		if err := c.OnReply(); err != nil {
			return bus.Address{}, err
		}
	}
	to.Thread = id
	return to, nil
}

// A ReactingChannel also shows what becomes of people's messages.
type ReactingChannel struct {
	*MemoryChannel
	// OnReact, if set, decides about each reaction.
	OnReact func(kind, message string) error

	mu    sync.Mutex
	shown []string
}

// Seen implements channels.Reactor.
func (c *ReactingChannel) Seen(_ context.Context, at bus.Address, message string) error {
	return c.react("seen", at, message)
}

// Answered implements channels.Reactor.
func (c *ReactingChannel) Answered(_ context.Context, at bus.Address, message string) error {
	return c.react("answered", at, message)
}

// Failed implements channels.Reactor.
func (c *ReactingChannel) Failed(_ context.Context, at bus.Address, message string) error {
	return c.react("failed", at, message)
}

func (c *ReactingChannel) react(kind string, at bus.Address, message string) error {
	if c.OnReact != nil {
		if err := c.OnReact(kind, message); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = append(c.shown, kind+" "+message+" at "+at.String())
	return nil
}

// Reactions are those that were shown, in order.
func (c *ReactingChannel) Reactions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.shown)
}

// An EditingChannel also lets texts be replaced, and takes files.
type EditingChannel struct {
	*MemoryChannel
	// Caption is what CaptionLength returns.
	Caption int
	// OnEdit, if set, decides about each edit before OnSend does.
	OnEdit func(id string) error
}

// Edit implements channels.Editor.
func (c *EditingChannel) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	if c.OnEdit != nil {
		if err := c.OnEdit(id); err != nil {
			return err
		}
	}
	if most := c.Offers.EditBytes; most > 0 && len(part.Text) > most {
		return &channels.SendError{Fault: channels.Rejected, Code: "msg_too_long"}
	}
	_, err := c.take(ctx, Arrival{To: to, Part: part, ID: id, Edit: true})
	return err
}

// SendFile implements channels.FileSender.
func (c *EditingChannel) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	return c.take(ctx, Arrival{To: to, Part: part, File: &file})
}

// CaptionLength implements channels.Captioner.
func (c *EditingChannel) CaptionLength() int { return c.Caption }

// Shown is what a chat shows, edits in place: each text with what it is under
// and the name of its file.
func (c *EditingChannel) Shown(chat string) []string {
	var shown []string
	at := map[string]int{}
	for _, a := range c.Sent() {
		if a.To.Chat != chat {
			continue
		}
		line := a.Part.Text
		if a.Part.Under != "" {
			line += " under " + a.Part.Under
		}
		if a.File != nil {
			line += " with " + a.File.Name
		}
		if i, known := at[a.ID]; known && a.Edit {
			shown[i] = line
			continue
		}
		at[a.ID] = len(shown)
		shown = append(shown, line)
	}
	return shown
}

// Refusal implements channels.RefusalReader.
func (c *MemoryChannel) Refusal(code string) channels.Refusal {
	switch code {
	case "chat_not_found":
		return channels.NoSuchChat
	case "kicked":
		return channels.NotInChat
	}
	return ""
}
