// Package web implements the channel to programs, and to terminals on other machines: it has no chat platform.
//
// A message that arrives over HTTP is published by Say, which reports whether the message is durable, so that its
// sender learns that too. The agent's replies are in the session's log, and Send shows them to those who watch the
// session; nothing remains to be delivered, so outbound messages to such an address never pile up. Terminals are
// reached in the same way.
package web

import (
	"context"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/sessions"
)

// Name is the channel's name. No configuration mentions it.
const Name = "web"

// Person returns the id of the person in whose name users of the API token with that name speak.
func Person(token string) string { return Name + ":" + token }

// Address returns the address at which a token's user talks to the agent: in the session with that name, or in the
// token's first session if name is empty.
func Address(token, name string) bus.Address {
	return bus.Address{Channel: Name, Chat: token, Thread: name}
}

// A Bus carries messages, and events for those who watch sessions.
type Bus interface {
	bus.Bus
	bus.Events
}

// A Channel is a channel without a platform: people read it by watching the session's events, and those who aren't
// watching find what was said in the log. It is a channels.Channel.
type Channel struct {
	bus   Bus
	agent string
}

var _ channels.Channel = (*Channel)(nil)

// New makes a Channel on top of b. A message that is sent to an address without naming a session goes to the
// session that the agent has there.
func New(b Bus, agent string) *Channel { return &Channel{bus: b, agent: agent} }

// Say publishes a message, or the command that the message contains, in a session. When it returns nil, the message
// is durable; if it is called again with the same message, it accepts and drops it. The error is bus.ErrFull if too
// many messages are already waiting in the session, and bus.ErrInvalid if the message is too long; after any other
// error nobody knows whether the message is durable.
func (c *Channel) Say(ctx context.Context, session string, in bus.Inbound) error {
	in.Mentioned, in.Private = true, true // a token's sessions are its own
	said, urgent := channels.AsCommand(in)
	return bus.PublishInbound(ctx, c.bus, session, said, urgent)
}

// Receive only waits until ctx is done: messages arrive over HTTP.
func (c *Channel) Receive(ctx context.Context, _ func(context.Context, bus.Inbound) error) error {
	<-ctx.Done()
	return nil
}

// Send emits the part as an event to those who watch, and returns the part's key as its id, because the log
// contains the part under that key.
func (c *Channel) Send(_ context.Context, to bus.Address, part channels.Part) (string, error) {
	key := part.Session // several agents may talk at one address
	if key == "" {
		var err error
		if key, err = sessions.Key(c.agent, to.Channel, to.Chat, to.Thread); err != nil {
			return "", &channels.SendError{Fault: channels.Rejected, Code: "no_session", Err: err}
		}
	}
	// The key of a turn's own answer names the turn; other messages have no turn.
	turn, _ := channels.AnsweredTurn(part.Key)
	c.bus.Emit(bus.Event{Type: bus.Spoken, Session: key, Route: to, Turn: turn, Call: part.Key, Delta: part.Text})
	return part.Key, nil
}

// Limits returns no limits: those who watch can read Markdown of any length.
func (c *Channel) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }
