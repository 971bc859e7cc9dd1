package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/backoff"
	"parley/channels/markup"
	"parley/channels/slack/interaction"
)

// A publisher publishes the messages of one Receive, each once.
type publisher struct {
	channel   *Channel
	me        Account
	publish   func(context.Context, bus.Inbound) error
	lanes     *lanes
	published *cache[struct{}] // ids of what was published lately
	spokenTo  *cache[struct{}] // chats in which the bot was spoken to lately
	naming    sync.WaitGroup   // of panes
}

func newPublisher(c *Channel, me Account, lanes *lanes, publish func(context.Context, bus.Inbound) error) *publisher {
	return &publisher{
		channel: c, me: me, publish: publish, lanes: lanes,
		published: newCache[struct{}](time.Hour), spokenTo: newCache[struct{}](24 * time.Hour),
	}
}

// noAck is the ack of a message from history: no socket waits for one.
func noAck() {}

// deliver publishes one message, trying until it is done, and acknowledges it.
// Where nobody can tell now whether its sender may talk, the message moves to the
// sender's own lane. It is false if ctx ended first.
func (p *publisher) deliver(ctx context.Context, m *message, ack func()) bool {
	if p.lanes.isAside(m) { // behind the sender's earlier messages
		p.lanes.setAside(ctx, m, ack)
		return true
	}
	wait := &retryWait{most: ownWait}
	for ctx.Err() == nil { // a lane may call this for many messages of a gap after ctx ended
		err := p.try(ctx, m)
		switch {
		case err == nil:
			ack()
			return true
		case errors.Is(err, channels.ErrUnjudged) && ctx.Err() == nil:
			p.lanes.setAside(ctx, m, ack)
			return true
		}
		if !p.pause(ctx, wait, m, err) {
			return false
		}
	}
	return false
}

// retryAside publishes a message of a sender's own lane, trying until it is done.
func (p *publisher) retryAside(ctx context.Context, m *message, ack func()) {
	wait := &retryWait{most: asideWait, firm: true}
	for ctx.Err() == nil {
		err := p.try(ctx, m)
		if err == nil {
			ack()
			return
		}
		p.pause(ctx, wait, m, err)
	}
}

// try publishes a message, unless that was done already or it is not for the bot.
func (p *publisher) try(ctx context.Context, m *message) error {
	id := p.channel.id(m, p.me)
	if p.isPublished(m) {
		return nil
	}
	in, concerns, err := p.channel.inbound(ctx, m, p.me)
	if err != nil || !concerns {
		// Such a message is not noted as published: Slack sends two events for a
		// mention, and the one that is for the bot may come second.
		return err
	}
	p.channel.speakers.put(threadKey(in.At.Chat, in.At.Thread), m.User)
	first := p.channel.beginsPane(ctx, m, in.At)
	if err := p.publish(ctx, in); err != nil {
		return err
	}
	if first {
		p.naming.Go(func() { p.name(ctx, in) })
	}
	p.published.put(id, struct{}{})
	p.spokenTo.put(m.Channel, struct{}{})
	return nil
}

// tell publishes what became of a message, behind what its chat says, trying until it is
// done, and acknowledges it.
func (p *publisher) tell(ctx context.Context, what change, ack func()) {
	wait := &retryWait{most: ownWait}
	for ctx.Err() == nil {
		err := p.publish(ctx, p.channel.changed(ctx, what, p.me))
		if err == nil || errors.Is(err, channels.ErrUnjudged) { // nobody waits for an answer to it
			ack()
			return
		}
		p.pause(ctx, wait, what.of, err)
	}
}

// beginsPane tells of a message whether it is the first in a pane: nobody who may talk
// to the bot has said anything there before.
func (c *Channel) beginsPane(ctx context.Context, m *message, at bus.Address) bool {
	if m.isGroup() || at.Thread == "" {
		return false
	}
	_, joined, err := c.joins.Joined(ctx, at)
	return err == nil && !joined
}

// name names a pane by the first thing that was said in it, if that was taken from
// somebody who may talk to the bot.
func (p *publisher) name(ctx context.Context, in bus.Inbound) {
	if _, joined, err := p.channel.joins.Joined(ctx, in.At); err != nil || !joined {
		return
	}
	if err := p.channel.desk.Name(ctx, in.At.Chat, in.At.Thread, in.Text); err != nil {
		p.channel.log.LogAttrs(ctx, slog.LevelDebug, "a pane could not be named", slog.Any("error", err))
	}
}

// isPublished reports whether a message was published within the last hour. What is
// delivered again after that the bus drops by its id.
func (p *publisher) isPublished(m *message) bool {
	_, ok := p.published.get(p.channel.id(m, p.me))
	return ok
}

// pause waits before a message is tried again, and logs the first failure.
func (p *publisher) pause(ctx context.Context, wait *retryWait, m *message, err error) bool {
	if !wait.series.Began() && ctx.Err() == nil {
		p.channel.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
			slog.String("message", p.channel.id(m, p.me)), slog.Any("error", err))
	}
	return wait.pause(ctx, err)
}

// actionTime is how long Slack waits for the acknowledgement of what somebody did. It then
// tells them that it failed, and does not bring it again.
const actionTime = 3 * time.Second

// actions publishes what people do otherwise than by messages, beside what they say: Slack
// waits no longer for it than for actionTime.
type actions struct {
	channel *Channel
	me      Account
	publish func(context.Context, bus.Inbound) error
	running sync.WaitGroup
}

// An answer is what Slack shows at once to who has given a slash command.
type answer struct {
	Type string `json:"response_type,omitempty"`
	Text string `json:"text,omitempty"`
}

// take publishes an action and acknowledges it then.
func (s *actions) take(ctx context.Context, d interaction.Action, ack acknowledge) {
	s.running.Go(func() {
		in, shown, err := s.deliver(ctx, d)
		switch {
		case err == nil && shown != (answer{}):
			ack(shown)
		case err == nil:
			ack(nil)
		case errors.Is(err, channels.ErrNotAdmitted):
			ack(nil)
			s.refuse(ctx, d, in.At)
		default: // Slack tells them that it failed, as there is no acknowledgement
			s.channel.log.LogAttrs(ctx, slog.LevelWarn, "what somebody did was not stored in time; Slack tells them so",
				slog.String("kind", string(d.Kind)), slog.Any("error", err))
		}
	})
}

// deliver publishes an action, trying as long as Slack waits.
func (s *actions) deliver(ctx context.Context, d interaction.Action) (bus.Inbound, answer, error) {
	ctx, cancel := context.WithTimeout(ctx, actionTime)
	defer cancel()
	var in bus.Inbound
	var shown answer
	var wait backoff.Series
	for {
		var err error
		if in.ID == "" {
			in, shown, err = s.channel.action(ctx, d, s.me)
		}
		if err == nil {
			err = s.publish(ctx, in)
		}
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) || !backoff.Sleep(ctx, wait.Next(actionTime/4)) {
			return in, shown, err
		}
	}
}

// reacted publishes that somebody has reacted to one of the bot's messages, and
// acknowledges it then. What cannot be published in time Slack brings again.
func (s *actions) reacted(ctx context.Context, one interaction.Reaction, ack acknowledge) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, actionTime)
		defer cancel()
		emoji, ok := markup.Emoji(one.Name)
		if !ok {
			emoji = ":" + one.Name + ":"
		}
		in := bus.Inbound{
			ID: s.channel.name + ":" + s.me.Team + ":" + one.Chat + ":" + one.ID, Kind: bus.Reacted, Mentioned: true,
			Of: s.channel.id(&message{Channel: one.Chat, TS: one.Message}, s.me), Reaction: emoji, Removed: one.Removed, SentAt: one.At,
			From:  bus.Person{ID: s.channel.name + ":" + one.User, Name: cmp.Or(s.channel.people.name(ctx, one.User), one.User)},
			At:    bus.Address{Channel: s.channel.name, Chat: one.Chat},
			Group: (&message{Channel: one.Chat}).isGroup(),
		}
		if err := s.publish(ctx, in); err != nil {
			s.channel.log.LogAttrs(ctx, slog.LevelDebug, "a reaction is not stored yet; Slack brings it again", slog.Any("error", err))
			return
		}
		ack(nil)
	})
}

// opened hands on that somebody has opened a place of the bot's. It is not tried again:
// they can open it again.
func (s *actions) opened(ctx context.Context, o interaction.Opened) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		err := s.publish(ctx, bus.Inbound{
			ID: s.channel.name + ":" + s.me.Team + ":" + o.Chat + ":" + o.ID, Kind: channels.Opened, Mentioned: true, Args: o.Beside,
			From: bus.Person{ID: s.channel.name + ":" + o.User}, At: bus.Address{Channel: s.channel.name, Chat: o.Chat, Thread: o.Thread},
		})
		if err != nil {
			s.channel.log.LogAttrs(ctx, slog.LevelDebug, "who has opened a place of the bot's is not welcomed", slog.Any("error", err))
		}
	})
}

// refuse tells who has pressed, and nobody else, that it counts for nothing.
func (s *actions) refuse(ctx context.Context, d interaction.Action, at bus.Address) {
	err := s.channel.Whisper(ctx, at, d.User, channels.Part{Text: channels.NotAdmitted})
	if err != nil {
		s.channel.log.LogAttrs(ctx, slog.LevelDebug, "who has pressed a button could not be told that it counts for nothing", slog.Any("error", err))
	}
}

// askAbout is what the shortcut at a message says, and alone is what Slack shows of a
// command whose answer comes elsewhere.
const (
	askAbout = "Look at this message and tell me what it is about, and what I should know or do."
	alone    = "I do not take part in this conversation, so my answer comes in our own chat."
)

// action is what an action says to the agent, and what Slack is to show of it. A press and a
// question about a message belong to the message's thread, a slash command to its chat:
// Slack takes none in threads. Where the bot takes no part, or is not to listen, it
// answers the person alone.
func (c *Channel) action(ctx context.Context, d interaction.Action, me Account) (bus.Inbound, answer, error) {
	in := bus.Inbound{
		ID: c.name + ":" + me.Team + ":" + d.Chat + ":" + d.ID, Kind: bus.Said, Mentioned: true, SentAt: d.At,
		From:  bus.Person{ID: c.name + ":" + d.User, Name: cmp.Or(c.people.name(ctx, d.User), d.Username, d.User)},
		At:    bus.Address{Channel: c.name, Chat: d.Chat, Thread: d.Thread},
		Group: (&message{Channel: d.Chat}).isGroup(),
	}
	if in.SentAt.IsZero() {
		in.SentAt = time.Now().UTC()
	}
	if d.Kind == interaction.Pressed {
		in.Text, in.Pressed, in.ReplyTo = d.Says, true, d.Message
		return in, answer{}, nil
	}
	takesPart, err := false, error(nil)
	if !in.Group || c.mention.In(d.Chat) != channels.MentionNowhere {
		_, takesPart, err = c.conversation(ctx, d.Chat)
	}
	if err != nil {
		return bus.Inbound{}, answer{}, err
	}
	if !takesPart {
		if in.At, err = c.Alone(ctx, in.From.ID); err != nil {
			return bus.Inbound{}, answer{}, err
		}
		in.Group = false
	}
	if d.Kind == interaction.Asked {
		in.Text = askAbout
		if takesPart && in.Group {
			in.At.Thread = cmp.Or(d.Thread, d.Message)
		}
		if in.Quotes, err = c.about(ctx, d, me); err != nil {
			return bus.Inbound{}, answer{}, err
		}
		return in, answer{}, nil
	}
	in.Text = commanded(c.plain(ctx, d.Says, me))
	switch {
	case !takesPart:
		return in, answer{Text: alone}, nil
	case strings.HasPrefix(in.Text, "/"):
		return in, answer{}, nil
	}
	return in, answer{Type: "in_channel"}, nil // who reads the answer reads what was asked
}

// about is the message that somebody asks about, as a quote.
func (c *Channel) about(ctx context.Context, d interaction.Action, me Account) ([]bus.Quote, error) {
	m := new(message)
	if err := json.Unmarshal(d.About, m); err != nil {
		return nil, fmt.Errorf("read the message that is asked about: %w", err)
	}
	q := bus.Quote{Kind: bus.Answered, From: c.author(ctx, m), At: moment(m.TS), Text: c.words(ctx, m, me, false)}
	return append([]bus.Quote{q}, c.quotes(ctx, m, me)...), nil
}

// commanded is what the words behind the slash command say: "stop" is the /stop that the
// Gateway reads, and what is no command is said to the agent. Without words it asks for
// help. A command with more behind it, such as "status of the build?", needs a mark,
// unless it answers a request by its id or brings an owner's code.
func commanded(words string) string {
	words = strings.TrimSpace(words)
	if words == "" {
		return "/help"
	}
	bare := strings.TrimPrefix(words, commandPrefix)
	said, _ := channels.AsCommand(bus.Inbound{Text: "/" + bare})
	first := strings.Fields(bare)
	switch {
	case said.Kind != bus.Command:
		return words
	case bare != words, said.Args == "", channels.Answers(said), channels.IsOwnData(said) && strings.EqualFold(said.Args, "yes"), len(first) == 2 && strings.EqualFold(first[0], "start"):
		return "/" + bare
	}
	return words
}
