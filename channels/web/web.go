// Package web is the channel to programs and to terminals elsewhere: it has no platform.
//
// What is said over HTTP comes in by Say, which is told whether it is durable,
// so that whoever speaks is told too. What the agent replies is in the session's
// log, and watchers have seen it being written; nothing is left to deliver. So
// Send only acknowledges, and what waits for such an address never piles up.
package web

import (
	"context"
	"errors"
	"fmt"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// Name is the channel's. It is in no configuration.
const Name = "web"

// Person is the id of whoever speaks with a token.
func Person(token string) string { return Name + ":" + token }

// Address is where whoever speaks with a token talks to the agent: in a session
// by name, or in the token's first one if name is empty.
func Address(token, name string) bus.Address {
	return bus.Address{Channel: Name, Chat: token, Thread: name}
}

// Config says where to publish.
type Config struct {
	Bus bus.Bus
	// Command makes a command of what reads like one, and says whether it is
	// urgent; nil makes none.
	Command func(bus.Inbound) (said bus.Inbound, urgent bool)
}

// A Channel takes in what is said over HTTP. It is a channels.Channel.
type Channel struct{ cfg Config }

var _ channels.Channel = (*Channel)(nil)

// New makes a channel.
func New(cfg Config) (*Channel, error) {
	if cfg.Bus == nil {
		return nil, errors.New("web: a bus is needed")
	}
	if cfg.Command == nil {
		cfg.Command = func(in bus.Inbound) (bus.Inbound, bool) { return in, false }
	}
	return &Channel{cfg: cfg}, nil
}

// Say publishes what somebody says in a session. When it returns nil, it is
// durable; the same message again is accepted and dropped. bus.ErrFull if too
// much waits in the session already, bus.ErrInvalid if it is too long; any other
// error means "not known to be durable".
func (c *Channel) Say(ctx context.Context, session string, in bus.Inbound) error {
	in.Kind, in.Mentioned = bus.Said, true
	said, urgent := c.cfg.Command(in)
	body, err := said.Encode()
	if err != nil {
		return fmt.Errorf("encode message %s: %w", in.ID, err)
	}
	if err := c.cfg.Bus.Publish(ctx, bus.InboundTopic, bus.Message{ID: in.ID, Key: session, Urgent: urgent, Body: body}); err != nil {
		return fmt.Errorf("publish message %s: %w", in.ID, err)
	}
	return nil
}

// Receive waits for ctx: nothing comes from a platform.
func (c *Channel) Receive(ctx context.Context, _ func(context.Context, bus.Inbound) error) error {
	<-ctx.Done()
	return nil
}

// Send acknowledges. The part's key is its id: it names what the log has.
func (c *Channel) Send(_ context.Context, _ bus.Address, part channels.Part) (string, error) {
	return part.Key, nil
}

// Limits has none; watchers read Markdown.
func (c *Channel) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }
