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

// A Platform is a chat platform in memory, and a Channel on it. It records what
// it was sent, and fails as it is told.
type Platform struct {
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

// NewPlatform makes a platform without limits, of plain text.
func NewPlatform() *Platform { return &Platform{listening: make(chan struct{})} }

// Receive implements channels.Channel. It may be called once.
func (p *Platform) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	p.publish = publish
	close(p.listening)
	<-ctx.Done()
	return ctx.Err()
}

// Say hands a message over and returns what the bot's side said to it: nil is
// an acknowledgement.
func (p *Platform) Say(ctx context.Context, in bus.Inbound) error {
	select {
	case <-p.listening:
		return p.publish(ctx, in)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Send implements channels.Channel.
func (p *Platform) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	return p.take(ctx, Arrival{To: to, Part: part})
}

// take records what arrives; what has no id is new and gets one.
func (p *Platform) take(ctx context.Context, a Arrival) (string, error) {
	arrives, err := true, error(nil)
	if p.OnSend != nil {
		arrives, err = p.OnSend(ctx, a.To, a.Part)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.ID == "" {
		a.ID = fmt.Sprint("id", len(p.sent)+1)
	}
	if a.At = time.Now(); arrives {
		p.sent = append(p.sent, a)
	}
	if err != nil {
		return "", err
	}
	return a.ID, nil
}

// Limits implements channels.Channel.
func (p *Platform) Limits() channels.Limits { return p.Offers }

// Sent is all that has arrived, in order.
func (p *Platform) Sent() []Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// Texts are the texts that have arrived in a chat, in order.
func (p *Platform) Texts(chat string) []string {
	var texts []string
	for _, a := range p.Sent() {
		if a.To.Chat == chat {
			texts = append(texts, a.Part.Text)
		}
	}
	return texts
}

// A TypingPlatform also shows that the bot is at work.
type TypingPlatform struct {
	*Platform

	mu    sync.Mutex
	shown []Arrival
}

// Typing implements channels.Typer.
func (p *TypingPlatform) Typing(_ context.Context, to bus.Address) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = append(p.shown, Arrival{To: to, At: time.Now()})
	return 5 * time.Second, nil
}

// Shown is when the bot was shown at work, and where.
func (p *TypingPlatform) Shown() []Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.shown)
}

// A TracingPlatform can tell what has arrived.
type TracingPlatform struct{ *Platform }

// FindSent implements channels.Reconciler.
func (p TracingPlatform) FindSent(_ context.Context, _ bus.Address, part channels.Part) (string, bool, error) {
	for _, a := range p.Sent() {
		if a.Part.Key == part.Key {
			return a.ID, true, nil
		}
	}
	return "", false, nil
}

// A ThreadingPlatform has replies stand in a thread below what they reply to.
type ThreadingPlatform struct {
	*Platform
	// OnReply, if set, decides whether it can be told where a reply would stand.
	OnReply func() error
}

// ReplyAddress implements channels.Replier.
func (p ThreadingPlatform) ReplyAddress(_ context.Context, to bus.Address, id string) (bus.Address, error) {
	if p.OnReply != nil {
		if err := p.OnReply(); err != nil {
			return bus.Address{}, err
		}
	}
	to.Thread = id
	return to, nil
}

// A ReactingPlatform also shows what becomes of people's messages.
type ReactingPlatform struct {
	*Platform
	// OnReact, if set, decides about each reaction.
	OnReact func(kind, message string) error

	mu    sync.Mutex
	shown []string
}

// Seen implements channels.Reactor.
func (p *ReactingPlatform) Seen(_ context.Context, at bus.Address, message string) error {
	return p.react("seen", at, message)
}

// Answered implements channels.Reactor.
func (p *ReactingPlatform) Answered(_ context.Context, at bus.Address, message string) error {
	return p.react("answered", at, message)
}

// Failed implements channels.Reactor.
func (p *ReactingPlatform) Failed(_ context.Context, at bus.Address, message string) error {
	return p.react("failed", at, message)
}

func (p *ReactingPlatform) react(kind string, at bus.Address, message string) error {
	if p.OnReact != nil {
		if err := p.OnReact(kind, message); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = append(p.shown, kind+" "+message+" at "+at.String())
	return nil
}

// Reactions are those that were shown, in order.
func (p *ReactingPlatform) Reactions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.shown)
}

// An EditingPlatform also lets texts be replaced, and takes files.
type EditingPlatform struct {
	*Platform
	// Caption is what CaptionLength returns.
	Caption int
	// OnEdit, if set, decides about each edit before OnSend does.
	OnEdit func(id string) error
}

// Edit implements channels.Editor.
func (p *EditingPlatform) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	if p.OnEdit != nil {
		if err := p.OnEdit(id); err != nil {
			return err
		}
	}
	if most := p.Offers.EditBytes; most > 0 && len(part.Text) > most {
		return &channels.SendError{Fault: channels.Rejected, Code: "msg_too_long"}
	}
	_, err := p.take(ctx, Arrival{To: to, Part: part, ID: id, Edit: true})
	return err
}

// SendFile implements channels.FileSender.
func (p *EditingPlatform) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	return p.take(ctx, Arrival{To: to, Part: part, File: &file})
}

// CaptionLength implements channels.Captioner.
func (p *EditingPlatform) CaptionLength() int { return p.Caption }

// Shown is what a chat shows, edits in place: each text with what it is under
// and the name of its file.
func (p *EditingPlatform) Shown(chat string) []string {
	var shown []string
	at := map[string]int{}
	for _, a := range p.Sent() {
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
func (p *Platform) Refusal(code string) channels.Refusal {
	switch code {
	case "chat_not_found":
		return channels.NoSuchChat
	case "kicked":
		return channels.NotInChat
	}
	return ""
}
