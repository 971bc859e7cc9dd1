// Package web is the channel to programs and to terminals on other machines: it has no chat platform.
//
// A message that comes over HTTP is published by Say, which reports whether the message is
// durable, so that its sender learns that too. The agent's replies are in the session's log,
// and watchers have seen them being written; nothing is left to deliver. So Send only
// acknowledges, and outbound messages for such an address never pile up.
package web

import (
	"context"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// Name is the channel's name. No configuration mentions it.
const Name = "web"

// Person returns the id of the person in whose name the users of the API token with that name
// speak.
func Person(token string) string { return Name + ":" + token }

// Address returns the address at which a token's user talks to the agent: in the session
// of that name, or in the token's first session if name is empty.
func Address(token, name string) bus.Address {
	return bus.Address{Channel: Name, Chat: token, Thread: name}
}

// A Channel publishes what is said over HTTP. It is a channels.Channel.
type Channel struct{ bus bus.Bus }

var _ channels.Channel = (*Channel)(nil)

// New makes a Channel that publishes on b.
func New(b bus.Bus) *Channel { return &Channel{bus: b} }

// Say publishes a message in a session, or the command that the message contains. After nil it is
// durable; the same message again is accepted and dropped. The error is bus.ErrFull if too many
// messages wait in the session already, bus.ErrInvalid if the message is too long; after any other
// error nobody knows whether the message is durable.
func (c *Channel) Say(ctx context.Context, session string, in bus.Inbound) error {
	in.Mentioned, in.Private = true, true // a token's sessions are its own
	said, urgent := channels.AsCommand(in)
	return bus.PublishInbound(ctx, c.bus, session, said, urgent)
}

// Receive waits until ctx is done: there is no platform to receive from.
func (c *Channel) Receive(ctx context.Context, _ func(context.Context, bus.Inbound) error) error {
	<-ctx.Done()
	return nil
}

// Send acknowledges a part without delivering it. It returns the part's key as its id, by
// which the log names the part.
func (c *Channel) Send(_ context.Context, _ bus.Address, part channels.Part) (string, error) {
	return part.Key, nil
}

// Limits returns no limits, only the dialect: watchers read Markdown.
func (c *Channel) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }
