// Package events passes what programs post to webhooks on to agents, and sends the agents' answers to chats.
//
// A webhook with an agent starts turns instead of sending messages. What is posted is said in a session of its own,
// AGENT:webhook:NAME:GROUP, by the person webhook:NAME, and marked as a quote that nobody vouches for. The agent's
// answer goes to the channel "webhook", whose adapter is the Channel: it has no platform, and publishes each answer
// once more for each place where the webhook's messages go.
package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/sessions"
)

// Name is the name of the channel through which agents answer what programs post to webhooks. If a webhook has an
// agent, no configured channel may have this name.
const Name = "webhook"

// Person returns the id of the person who speaks through a webhook.
func Person(webhook string) string { return Name + ":" + webhook }

// Address returns the address at which the agent is told of a group's events. A group consists of posts to one
// webhook that belong together.
func Address(webhook, group string) bus.Address {
	return bus.Address{Channel: Name, Chat: webhook, Thread: group}
}

// An Event is what a program has posted to a webhook that has an agent.
type Event struct {
	// ID is the same no matter how often the program posts the event.
	ID string
	At bus.Address // where the agent is told of it; see Address
	// Kind says, in words, what kind of program posts there.
	Kind string
	Text string
	// Posted is when the event first arrived.
	Posted time.Time
}

// A Webhook holds what a Channel needs to know about a configured webhook.
type Webhook struct {
	Agent string        // if it is "", the webhook's posts start no turns
	To    []bus.Address // where answers go if the post that they belong to is no longer known
}

// A Book is the part of the channels' book (the record of sends, chats, people and asks) that a Channel needs.
type Book interface {
	// Submission returns what was posted under that id; channels.ErrNoSend if there is nothing.
	Submission(ctx context.Context, id string) (channels.Submission, error)
	channels.Notes
}

// A Channel passes what programs post to webhooks to agents, and sends the agents' answers on to chats. It is the
// channels.Channel for the sessions in which the agents work on these posts.
type Channel struct {
	Bus    bus.Bus
	Events bus.Events
	Book   Book
	// Webhooks returns a webhook as it is configured now; false if there is none with that name.
	Webhooks func(name string) (Webhook, bool)
	Now      func() time.Time // nil means time.Now
}

var _ channels.Channel = (*Channel)(nil)

// Session returns the key of the session at an address that Address returned; an error if the webhook no longer has
// an agent.
func (d *Channel) Session(at bus.Address) (string, error) {
	w, ok := d.Webhooks(at.Chat)
	if !ok || w.Agent == "" {
		return "", fmt.Errorf("no webhook named %q has an agent", at.Chat)
	}
	return sessions.Key(w.Agent, at.Channel, at.Chat, at.Thread)
}

// Start publishes an event to the agent. When it returns nil, the event is durable; if it is called again with the
// same event, it accepts and drops it. More events from a webhook may wait than messages from a person, so that a
// storm of alerts is accepted: bus.ErrFull is returned only after bus.UrgentBeyond more events.
func (d *Channel) Start(ctx context.Context, e Event) error {
	session, err := d.Session(e.At)
	if err != nil {
		return err
	}
	in := bus.Program(Person(e.At.Chat)).Mail(bus.Inbound{
		ID: e.ID, Kind: bus.Said, At: e.At, SentAt: e.Posted,
		// The reply names the submission, which records where the reply goes.
		ReplyTo: e.ID,
		// Events that arrive together are one storm, and are answered together.
		More: true,
		Text: fmt.Sprintf("An event was posted to the webhook %s (%s); it's quoted below. Figure out what it means and what needs to be done. "+
			"Your answer goes to the people who need to know; nobody can reply to you here.", e.At.Chat, e.Kind),
		Quotes: []bus.Quote{{Kind: bus.Posted, At: e.Posted, Text: e.Text}},
	})
	err = bus.PublishInbound(ctx, d.Bus, session, in, false)
	if !errors.Is(err, bus.ErrFull) {
		return err
	}
	body, err := in.Encode()
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	if err := d.Bus.Publish(ctx, bus.InboundTopic, bus.Message{ID: in.ID, Key: session, Urgent: true, Bounded: true, Body: body}); err != nil {
		return fmt.Errorf("publish event %s: %w", e.ID, err)
	}
	return nil
}

// Receive does nothing until ctx is done, because events arrive through Start and not from a platform.
func (*Channel) Receive(ctx context.Context, _ func(context.Context, bus.Inbound) error) error {
	<-ctx.Done()
	return nil
}

// Limits sets no limits of its own: answers are rendered by the channel that they are sent on to.
func (*Channel) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }

// Send publishes a part of an answer once for each place where it goes. The ids of these messages are derived from
// the part's, so a repeated Send has no effect. People who watch the session see the part too.
func (d *Channel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	session, err := d.Session(to)
	if err != nil {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "no_webhook", Err: err}
	}
	places, err := d.places(ctx, to, part.ReplyTo)
	if err != nil {
		return "", &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
	}
	if len(places) == 0 {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "no_destination", Err: fmt.Errorf("webhook %s leads nowhere", to.Chat)}
	}
	turn, _ := channels.AnsweredTurn(part.Key)
	for n, place := range places {
		out := bus.Outbound{
			ID: fmt.Sprintf("%s#to/%d", part.Key, n), To: place, Text: heading(to) + "\n\n" + part.Text, At: d.now(),
			Session: session, Turn: turn, Origin: "webhook/" + to.Chat,
			// The session at that place is told of it, so that the agent there understands replies to it.
			Told: &bus.Telling{For: bus.Person{ID: Person(to.Chat)}, At: to, Words: part.Text},
		}
		err := bus.PublishOutbound(ctx, d.Bus, out)
		switch {
		case errors.Is(err, bus.ErrInvalid):
			return "", &channels.SendError{Fault: channels.Rejected, Code: "invalid", Err: err}
		case err != nil:
			return "", &channels.SendError{Fault: channels.Retry, Code: "bus", Err: err}
		}
	}
	d.Events.Emit(bus.Event{Type: bus.Spoken, Session: session, Route: to, Turn: turn, Call: part.Key, Delta: part.Text})
	return part.Key, nil
}

// places returns where the answer to a post with the id submission goes: the places that were recorded with the
// post or, if there are none, those that the webhook has now.
func (d *Channel) places(ctx context.Context, at bus.Address, submission string) ([]bus.Address, error) {
	if submission != "" {
		p, err := d.Book.Submission(ctx, submission)
		if err != nil && !errors.Is(err, channels.ErrNoSend) {
			return nil, fmt.Errorf("look for where an answer goes: %w", err)
		}
		if err == nil && len(p.Destinations) > 1 && p.Destinations[0] == at {
			return p.Destinations[1:], nil
		}
	}
	w, _ := d.Webhooks(at.Chat)
	return w.To, nil
}

const maxHeading = 80 // the maximum number of characters of a group's name that are shown

// heading returns the first line of an agent's answer, which names the group of events that the answer is about.
func heading(at bus.Address) string {
	group := []rune(strings.Map(func(r rune) rune {
		if r == '`' || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, at.Thread))
	switch {
	case len(group) == 0:
		return "**" + at.Chat + "**"
	case len(group) > maxHeading:
		group = append(group[:maxHeading], '…')
	}
	return "**" + at.Chat + "** `" + string(group) + "`"
}

func (d *Channel) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}
