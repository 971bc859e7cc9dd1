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
	// OnSend, if set, decides about each send before it is recorded: whether it
	// arrives, and what its sender is told.
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
	arrives, err := true, error(nil)
	if p.OnSend != nil {
		arrives, err = p.OnSend(ctx, to, part)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id := fmt.Sprint("id", len(p.sent)+1)
	if arrives {
		p.sent = append(p.sent, Arrival{to, part, id, time.Now()})
	}
	if err != nil {
		return "", err
	}
	return id, nil
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
