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

// A MemoryChannel is a channel whose platform is in memory. It records what was sent, and fails when its functions
// say so.
type MemoryChannel struct {
	// ChannelLimits is what Limits returns.
	ChannelLimits channels.Limits
	// OnSend, if set, is called for each send, including edits and files, before it is recorded: it decides whether
	// the part arrives, and which error the sender gets.
	OnSend func(ctx context.Context, to bus.Address, part channels.Part) (arrives bool, err error)

	listening chan struct{}
	publish   func(context.Context, bus.Inbound) error

	mu   sync.Mutex
	sent []Arrival
}

// An Arrival is a part as the platform received it.
type Arrival struct {
	To   bus.Address
	Part channels.Part
	ID   string
	At   time.Time
	Edit bool      // whether the part replaced the text of an earlier one
	File *bus.File // the file that came with it, if any
}

// NewMemoryChannel makes a channel for plain text, without limits.
func NewMemoryChannel() *MemoryChannel { return &MemoryChannel{listening: make(chan struct{})} }

// Receive implements channels.Channel: it lets Say publish until ctx is done. It may be called once.
func (c *MemoryChannel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	c.publish = publish
	close(c.listening)
	<-ctx.Done()
	return ctx.Err()
}

// Say publishes a message and returns publish's error: nil is an acknowledgement.
func (c *MemoryChannel) Say(ctx context.Context, in bus.Inbound) error {
	select {
	case <-c.listening:
		return c.publish(ctx, in)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Send implements channels.Channel: it records the part.
func (c *MemoryChannel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	return c.record(ctx, Arrival{To: to, Part: part})
}

// record records a part that arrives; a part without an id is new and gets one.
func (c *MemoryChannel) record(ctx context.Context, a Arrival) (string, error) {
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

// Limits implements channels.Channel: it returns ChannelLimits.
func (c *MemoryChannel) Limits() channels.Limits { return c.ChannelLimits }

// Sent returns all parts that have arrived, in order.
func (c *MemoryChannel) Sent() []Arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

// Texts returns the texts that have arrived in a chat, in order.
func (c *MemoryChannel) Texts(chat string) []string {
	var texts []string
	for _, a := range c.Sent() {
		if a.To.Chat == chat {
			texts = append(texts, a.Part.Text)
		}
	}
	return texts
}

// A TypingChannel is a MemoryChannel that also shows that the bot is at work.
type TypingChannel struct {
	*MemoryChannel

	mu    sync.Mutex
	shown []Arrival
}

// Typing implements channels.Typer: it records the call.
func (c *TypingChannel) Typing(_ context.Context, to bus.Address) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = append(c.shown, Arrival{To: to, At: time.Now()})
	return 5 * time.Second, nil
}

// Shown returns where and when the bot was shown to be at work.
func (c *TypingChannel) Shown() []Arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.shown)
}

// A ButtonChannel is an EditingChannel that also shows buttons.
type ButtonChannel struct{ *EditingChannel }

// MaxButtons implements channels.ButtonShower: three buttons of 64 bytes.
func (ButtonChannel) MaxButtons() (count, bytes int) { return 3, 64 }

// A FindingChannel is a MemoryChannel that can find out whether a part has arrived.
type FindingChannel struct{ *MemoryChannel }

// FindSent implements channels.Reconciler: it looks for the part's key among the arrivals.
func (c FindingChannel) FindSent(_ context.Context, _ bus.Address, part channels.Part) (string, bool, error) {
	for _, a := range c.Sent() {
		if a.Part.Key == part.Key {
			return a.ID, true, nil
		}
	}
	return "", false, nil
}

// A ReplyThreadChannel is a MemoryChannel in which replies go into a thread below the message.
type ReplyThreadChannel struct {
	*MemoryChannel
	// OnReply, if set, returns the error for ReplyAddress to return.
	OnReply func() error
}

// ReplyAddress implements channels.Replier: the thread has the message's id.
func (c ReplyThreadChannel) ReplyAddress(_ context.Context, to bus.Address, id string) (bus.Address, error) {
	if c.OnReply != nil {
		if err := c.OnReply(); err != nil {
			return bus.Address{}, err
		}
	}
	to.Thread = id
	return to, nil
}

// A ReactingChannel is a MemoryChannel that also shows reactions to people's messages.
type ReactingChannel struct {
	*MemoryChannel
	// OnReact, if set, returns the error of each reaction.
	OnReact func(kind, message string) error

	mu    sync.Mutex
	shown []string
}

// MarkSeen implements channels.Reactor: it records the reaction.
func (c *ReactingChannel) MarkSeen(_ context.Context, at bus.Address, message string) error {
	return c.react("seen", at, message)
}

// MarkAnswered implements channels.Reactor: it records the reaction.
func (c *ReactingChannel) MarkAnswered(_ context.Context, at bus.Address, message string) error {
	return c.react("answered", at, message)
}

// MarkFailed implements channels.Reactor: it records the reaction.
func (c *ReactingChannel) MarkFailed(_ context.Context, at bus.Address, message string) error {
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

// Reactions returns the reactions that were shown, in order.
func (c *ReactingChannel) Reactions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.shown)
}

// An EditingChannel is a MemoryChannel that can also edit texts and send files.
type EditingChannel struct {
	*MemoryChannel
	// Caption is what CaptionLength returns.
	Caption int
	// OnEdit, if set, returns the error of each edit; it is called before OnSend.
	OnEdit func(id string) error
}

// Edit implements channels.Editor: it records the new text, unless that is too long for an edit.
func (c *EditingChannel) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	if c.OnEdit != nil {
		if err := c.OnEdit(id); err != nil {
			return err
		}
	}
	if most := c.ChannelLimits.EditBytes; most > 0 && len(part.Text) > most {
		return &channels.SendError{Fault: channels.Rejected, Code: "msg_too_long"}
	}
	_, err := c.record(ctx, Arrival{To: to, Part: part, ID: id, Edit: true})
	return err
}

// SendFile implements channels.FileSender: it records the part with its file.
func (c *EditingChannel) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	return c.record(ctx, Arrival{To: to, Part: part, File: &file})
}

// CaptionLength implements channels.Captioner: it returns Caption.
func (c *EditingChannel) CaptionLength() int { return c.Caption }

// Shown returns what people see in a chat, with edits applied: each text, with the id of the message that it is
// posted under and the name of its file.
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

// Refusal implements channels.RefusalReader: it translates two codes.
func (c *MemoryChannel) Refusal(code string) channels.Refusal {
	switch code {
	case "chat_not_found":
		return channels.NoSuchChat
	case "kicked":
		return channels.NotInChat
	}
	return ""
}
