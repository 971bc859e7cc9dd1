// Package web is the channel to programs and to terminals elsewhere: it has no platform.
//
// What is said over HTTP comes in by Say, which is told whether it is durable,
// so that whoever speaks is told too. What the agent replies is in the session's
// log, and watchers have seen it being written; nothing is left to deliver. So
// Send only acknowledges, and what waits for such an address never piles up.
package web

import (
	"context"

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

// A Channel takes in what is said over HTTP. It is a channels.Channel.
type Channel struct{ bus bus.Bus }

var _ channels.Channel = (*Channel)(nil)

// New makes a channel that publishes on b.
func New(b bus.Bus) *Channel { return &Channel{bus: b} }

// Say publishes what somebody says in a session, or the command that it is. When
// it returns nil, it is durable; the same message again is accepted and dropped. bus.ErrFull if too
// much waits in the session already, bus.ErrInvalid if it is too long; any other
// error means "not known to be durable".
func (c *Channel) Say(ctx context.Context, session string, in bus.Inbound) error {
	in.Mentioned, in.Private = true, true // a token's sessions are its own
	said, urgent := channels.AsCommand(in)
	return bus.PublishInbound(ctx, c.bus, session, said, urgent)
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
