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
	channel     *Channel
	me          Account
	publish     func(context.Context, bus.Inbound) error
	lanes       *lanes
	published   *cache[struct{}] // ids of messages that were published within the last hour
	spokenTo    *cache[struct{}] // chats in which people spoke to the bot within the last day
	namingPanes sync.WaitGroup   // the calls in progress that give panes a title
}

// newPublisher makes a publisher that translates with c and hands messages to publish.
func newPublisher(c *Channel, me Account, lanes *lanes, publish func(context.Context, bus.Inbound) error) *publisher {
	return &publisher{
		channel: c, me: me, publish: publish, lanes: lanes,
		published: newCache[struct{}](time.Hour), spokenTo: newCache[struct{}](24 * time.Hour),
	}
}

// noAck is the ack of a message from history: nobody waits for an acknowledgement.
func noAck() {}

// deliver publishes one message, retrying until that succeeds, and then acknowledges it. If nobody
// can say now whether its sender may talk to the bot, it moves the message to a lane (queue) of the
// sender's own. It returns false if ctx ended first.
func (p *publisher) deliver(ctx context.Context, m *message, ack func()) bool {
	if p.lanes.hasSenderLane(m) { // so it comes behind the sender's earlier messages
		p.lanes.addToSenderLane(ctx, m, ack)
		return true
	}
	wait := &retryWait{most: maxOwnWait}
	for ctx.Err() == nil { // a lane may call this for many messages of a gap after ctx ended
		err := p.publishOnce(ctx, m)
		switch {
		case err == nil:
			ack()
			return true
		case errors.Is(err, channels.ErrUnjudged) && ctx.Err() == nil:
			p.lanes.addToSenderLane(ctx, m, ack)
			return true
		}
		if !p.pauseAndLog(ctx, wait, m, err) {
			return false
		}
	}
	return false
}

// publishInSenderLane publishes a message that waits in its sender's own lane (queue), retrying until
// that succeeds.
func (p *publisher) publishInSenderLane(ctx context.Context, m *message, ack func()) {
	wait := &retryWait{most: maxSenderLaneWait, strict: true}
	for ctx.Err() == nil {
		err := p.publishOnce(ctx, m)
		if err == nil {
			ack()
			return
		}
		p.pauseAndLog(ctx, wait, m, err)
	}
}

// publishOnce makes one attempt to publish a message. A message that is published already,
// or is not meant for the bot, needs no attempt and gives nil.
func (p *publisher) publishOnce(ctx context.Context, m *message) error {
	id := p.channel.messageID(m, p.me)
	if p.isPublished(m) {
		return nil
	}
	in, concerns, err := p.channel.messageInbound(ctx, m, p.me)
	if err != nil || !concerns {
		// A message that is not meant for the bot is not recorded as published: Slack sends
		// two events for a mention, and the one that is meant for the bot may come second.
		return err
	}
	p.channel.lastSpeakers.put(threadKey(in.At.Chat, in.At.Thread), m.User)
	first := p.channel.beginsPane(ctx, m, in.At)
	if err := p.publish(ctx, in); err != nil {
		return err
	}
	if first {
		p.namingPanes.Go(func() { p.nameConversation(ctx, in) })
	}
	p.published.put(id, struct{}{})
	p.spokenTo.put(m.Channel, struct{}{})
	return nil
}

// publishChange publishes an edit or a deletion, after the messages of its chat that came before,
// retrying until that succeeds, and then acknowledges it.
func (p *publisher) publishChange(ctx context.Context, what change, ack func()) {
	wait := &retryWait{most: maxOwnWait}
	for ctx.Err() == nil {
		err := p.publish(ctx, p.channel.changeInbound(ctx, what, p.me))
		if err == nil || errors.Is(err, channels.ErrUnjudged) { // nobody waits for an answer to a change
			ack()
			return
		}
		p.pauseAndLog(ctx, wait, what.message, err)
	}
}

// beginsPane reports whether a message is the first in an assistant pane: nobody whom the gate
// admits has written there before.
func (c *Channel) beginsPane(ctx context.Context, m *message, at bus.Address) bool {
	if m.isGroup() || at.Thread == "" {
		return false
	}
	_, joined, err := c.joins.Joined(ctx, at)
	return err == nil && !joined
}

// nameConversation gives the conversation in an assistant pane a title, made of its first message,
// if the gate admitted that message's sender.
func (p *publisher) nameConversation(ctx context.Context, in bus.Inbound) {
	if _, joined, err := p.channel.joins.Joined(ctx, in.At); err != nil || !joined {
		return
	}
	if err := p.channel.surfaces.SetTitle(ctx, in.At.Chat, in.At.Thread, in.Text); err != nil {
		p.channel.log.LogAttrs(ctx, slog.LevelDebug, "a pane could not be named", slog.Any("error", err))
	}
}

// isPublished reports whether a message was published within the last hour. The bus
// recognises later repetitions by the message's id.
func (p *publisher) isPublished(m *message) bool {
	_, ok := p.published.get(p.channel.messageID(m, p.me))
	return ok
}

// pauseAndLog waits before the next attempt to publish a message, and logs the failure if it is the
// first. It returns false if ctx ended first.
func (p *publisher) pauseAndLog(ctx context.Context, wait *retryWait, m *message, err error) bool {
	if !wait.series.HasWaited() && ctx.Err() == nil {
		p.channel.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
			slog.String("message", p.channel.messageID(m, p.me)), slog.Any("error", err))
	}
	return wait.pause(ctx, err)
}

// actionTimeout is how long Slack waits for the acknowledgement of an action. After it
// Slack tells the person that the action failed, and does not deliver it again.
const actionTimeout = 3 * time.Second

// actions publishes what people do other than writing messages: presses, commands, shortcuts and
// reactions. It does not wait for the lanes of messages, because Slack waits only for
// actionTimeout.
type actions struct {
	channel *Channel
	me      Account
	publish func(context.Context, bus.Inbound) error
	running sync.WaitGroup
}

// A commandReply is what Slack shows at once to a person who gives a slash command.
type commandReply struct {
	Type string `json:"response_type,omitempty"`
	Text string `json:"text,omitempty"`
}

// receiveAction publishes an action and then acknowledges it.
func (s *actions) receiveAction(ctx context.Context, d interaction.Action, ack acknowledge) {
	s.running.Go(func() {
		in, shown, err := s.publishAction(ctx, d)
		switch {
		case err == nil && shown != (commandReply{}):
			ack(shown)
		case err == nil:
			ack(nil)
		case errors.Is(err, channels.ErrNotAdmitted):
			ack(nil)
			s.tellNotAdmitted(ctx, d, in.At)
		default: // without an acknowledgement Slack tells the person that it failed
			s.channel.log.LogAttrs(ctx, slog.LevelWarn, "what somebody did was not stored in time; Slack tells them so",
				slog.String("kind", string(d.Kind)), slog.Any("error", err))
		}
	})
}

// publishAction publishes an action, retrying as long as Slack waits. It returns the published
// message, and what Slack is to show to the person.
func (s *actions) publishAction(ctx context.Context, d interaction.Action) (bus.Inbound, commandReply, error) {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	var in bus.Inbound
	var shown commandReply
	var wait backoff.Series
	for {
		var err error
		if in.ID == "" {
			in, shown, err = s.channel.actionInbound(ctx, d, s.me)
		}
		if err == nil {
			err = s.publish(ctx, in)
		}
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) || !backoff.Sleep(ctx, wait.Next(actionTimeout/4)) {
			return in, shown, err
		}
	}
}

// publishReaction publishes a person's reaction to one of the bot's messages, and then
// acknowledges it. If it cannot be published in time, Slack delivers it again.
func (s *actions) publishReaction(ctx context.Context, one interaction.Reaction, ack acknowledge) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		emoji, ok := markup.Emoji(one.Name)
		if !ok {
			emoji = ":" + one.Name + ":"
		}
		in := bus.Inbound{
			ID: s.channel.name + ":" + s.me.Team + ":" + one.Chat + ":" + one.ID, Kind: bus.Reacted, Mentioned: true,
			Of: s.channel.messageID(&message{Channel: one.Chat, TS: one.Message}, s.me), Reaction: emoji, Removed: one.Removed, SentAt: one.At,
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

// publishOpened publishes that a person has opened the app's home or an assistant pane. It is not
// retried: the person can open it again.
func (s *actions) publishOpened(ctx context.Context, o interaction.AppOpened) {
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

// tellNotAdmitted tells the person who made an action, and nobody else, that the action
// has no effect because they are not admitted.
func (s *actions) tellNotAdmitted(ctx context.Context, d interaction.Action, at bus.Address) {
	err := s.channel.Whisper(ctx, at, d.User, channels.Part{Text: channels.NotAdmitted})
	if err != nil {
		s.channel.log.LogAttrs(ctx, slog.LevelDebug, "who has pressed a button could not be told that it counts for nothing", slog.Any("error", err))
	}
}

// askAboutText is the question that the shortcut at a message asks. aloneText is what Slack
// shows for a command that is answered in the person's own chat with the bot.
const (
	askAboutText = "Look at this message and tell me what it is about, and what I should know or do."
	aloneText    = "I do not take part in this conversation, so my answer comes in our own chat."
)

// actionInbound translates an action into what the agent gets, and returns what Slack is
// to show. A press and a question about a message belong to the message's thread, a slash
// command to its chat, because Slack has no commands in threads. Where the bot is not a
// member, or must not listen, the answer goes to the person's own chat with the bot.
func (c *Channel) actionInbound(ctx context.Context, d interaction.Action, me Account) (bus.Inbound, commandReply, error) {
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
		return in, commandReply{}, nil
	}
	takesPart, err := false, error(nil)
	if !in.Group || c.mention.In(d.Chat) != channels.MentionNowhere {
		_, takesPart, err = c.describeChat(ctx, d.Chat)
	}
	if err != nil {
		return bus.Inbound{}, commandReply{}, err
	}
	if !takesPart {
		if in.At, err = c.Alone(ctx, in.From.ID); err != nil {
			return bus.Inbound{}, commandReply{}, err
		}
		in.Group = false
	}
	if d.Kind == interaction.Asked {
		in.Text = askAboutText
		if takesPart && in.Group {
			in.At.Thread = cmp.Or(d.Thread, d.Message)
		}
		if in.Quotes, err = c.quoteAskedMessage(ctx, d, me); err != nil {
			return bus.Inbound{}, commandReply{}, err
		}
		return in, commandReply{}, nil
	}
	in.Text = slashText(c.resolveReferences(ctx, d.Says, me))
	in.Called = true // the command's name is the bot's
	switch {
	case !takesPart:
		return in, commandReply{Text: aloneText}, nil
	case strings.HasPrefix(in.Text, "/"):
		return in, commandReply{}, nil
	}
	return in, commandReply{Type: "in_channel"}, nil // so that people who read the answer see the question
}

// quoteAskedMessage returns the message that a person asks about, and the messages that it
// forwards, as quotes.
func (c *Channel) quoteAskedMessage(ctx context.Context, d interaction.Action, me Account) ([]bus.Quote, error) {
	m := new(message)
	if err := json.Unmarshal(d.About, m); err != nil {
		return nil, fmt.Errorf("read the message that is asked about: %w", err)
	}
	q := bus.Quote{Kind: bus.Answered, From: c.authorOf(ctx, m), At: parseTS(m.TS), Text: c.typedText(ctx, m, me, false)}
	return append([]bus.Quote{q}, c.quotes(ctx, m, me)...), nil
}

// slashText translates the words after the app's slash command: "stop" becomes the "/stop"
// that the gateway reads, other words are said to the agent, and no words ask for help. A
// command with more words behind it, such as "status of the build?", counts as a command
// only with commandPrefix, unless it answers a request by its id or contains an owner's
// code.
func slashText(words string) string {
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
	case bare != words, said.Args == "", channels.AnswersAsk(said), channels.IsOwnData(said) && strings.EqualFold(said.Args, "yes"), len(first) == 2 && strings.EqualFold(first[0], "start"):
		return "/" + bare
	}
	return words
}
