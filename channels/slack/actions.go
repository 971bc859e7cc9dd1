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

// actionTimeout is how long Slack waits for an action to be acknowledged. After that, Slack tells the person that
// the action failed, and does not deliver it again.
const actionTimeout = 3 * time.Second

// actions publishes what people do other than writing messages: button presses, commands, shortcuts and reactions.
// These don't go through the lanes that messages wait in, because Slack waits no longer than actionTimeout.
type actions struct {
	me            Account
	translator    *translator
	conversations *conversations
	sender        *sender
	publish       func(context.Context, bus.Inbound) error
	log           *slog.Logger
	running       sync.WaitGroup
}

// A commandReply is what Slack immediately shows to a person who gives a slash command.
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
		default: // without an acknowledgement, Slack tells the person that the action failed
			s.log.LogAttrs(ctx, slog.LevelWarn, "what somebody did was not stored in time; Slack tells them so",
				slog.String("kind", string(d.Kind)), slog.Any("error", err))
		}
	})
}

// publishAction publishes an action, retrying as long as Slack waits. It returns the published message, and what
// Slack should show to the person.
func (s *actions) publishAction(ctx context.Context, d interaction.Action) (bus.Inbound, commandReply, error) {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	var in bus.Inbound
	var shown commandReply
	var wait backoff.Series
	for {
		var err error
		if in.ID == "" {
			in, shown, err = s.actionInbound(ctx, d)
		}
		if err == nil {
			err = s.publish(ctx, in)
		}
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) || !backoff.Sleep(ctx, wait.Next(actionTimeout/4)) {
			return in, shown, err
		}
	}
}

// publishReaction publishes a person's reaction to one of the bot's messages, then acknowledges it. If it can't be
// published in time, Slack delivers it again.
func (s *actions) publishReaction(ctx context.Context, one interaction.Reaction, ack acknowledge) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		emoji, ok := markup.EmojiNamed(one.Name)
		if !ok {
			emoji = ":" + one.Name + ":"
		}
		in := bus.Inbound{
			ID: s.translator.name + ":" + s.me.Team + ":" + one.Chat + ":" + one.ID, Kind: bus.Reacted, Mentioned: true,
			Of: s.translator.messageID(&message{Channel: one.Chat, TS: one.Message}, s.me), Reaction: emoji, Removed: one.Removed, SentAt: one.At,
			From:  bus.Person{ID: s.translator.name + ":" + one.User, Name: cmp.Or(s.translator.people.name(ctx, one.User), one.User)},
			At:    bus.Address{Channel: s.translator.name, Chat: one.Chat},
			Group: (&message{Channel: one.Chat}).isGroup(),
		}
		if err := s.publish(ctx, in); err != nil {
			s.log.LogAttrs(ctx, slog.LevelDebug, "a reaction is not stored yet; Slack brings it again", slog.Any("error", err))
			return
		}
		ack(nil)
	})
}

// publishOpened publishes that a person has opened the app's home or an assistant pane. It does not retry: the
// person can open it again.
func (s *actions) publishOpened(ctx context.Context, o interaction.SurfaceOpened) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		err := s.publish(ctx, bus.Inbound{
			ID: s.translator.name + ":" + s.me.Team + ":" + o.Chat + ":" + o.ID, Kind: channels.Opened, Mentioned: true, Args: o.Beside,
			From: bus.Person{ID: s.translator.name + ":" + o.User}, At: bus.Address{Channel: s.translator.name, Chat: o.Chat, Thread: o.Thread},
		})
		if err != nil {
			s.log.LogAttrs(ctx, slog.LevelDebug, "who has opened a place of the bot's is not welcomed", slog.Any("error", err))
		}
	})
}

// tellNotAdmitted tells the person who performed an action, and nobody else, that the action has no effect because
// they are not admitted.
func (s *actions) tellNotAdmitted(ctx context.Context, d interaction.Action, at bus.Address) {
	err := s.sender.Whisper(ctx, at, d.User, channels.Part{Text: channels.TextNotAdmitted})
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "who has pressed a button could not be told that it counts for nothing", slog.Any("error", err))
	}
}

// askAboutText is the question that the message shortcut asks. answeredPrivatelyText is what Slack shows for a command that is
// answered in the person's own chat with the bot.
const (
	askAboutText          = textAbout
	answeredPrivatelyText = textElsewhere
)

// actionInbound translates an action into what the agent gets, and returns what Slack should show. A press, and a
// question about a message, belong to the message's thread; a slash command belongs to its chat, because Slack has
// no commands in threads. Where the bot is not a member, or must not listen, the answer goes to the person's own
// chat with the bot.
func (s *actions) actionInbound(ctx context.Context, d interaction.Action) (bus.Inbound, commandReply, error) {
	in := bus.Inbound{
		ID: s.translator.name + ":" + s.me.Team + ":" + d.Chat + ":" + d.ID, Kind: bus.Said, Mentioned: true, SentAt: d.At,
		From:  bus.Person{ID: s.translator.name + ":" + d.User, Name: cmp.Or(s.translator.people.name(ctx, d.User), d.Username, d.User)},
		At:    bus.Address{Channel: s.translator.name, Chat: d.Chat, Thread: d.Thread},
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
	if !in.Group || s.translator.mentionRule.In(d.Chat) != channels.MentionNowhere {
		_, takesPart, err = s.conversations.describeChat(ctx, d.Chat)
	}
	if err != nil {
		return bus.Inbound{}, commandReply{}, err
	}
	if !takesPart {
		if in.At, err = s.conversations.PrivateChat(ctx, in.From.ID); err != nil {
			return bus.Inbound{}, commandReply{}, err
		}
		in.Group = false
	}
	if d.Kind == interaction.Asked {
		in.Text = askAboutText
		if takesPart && in.Group {
			in.At.Thread = cmp.Or(d.Thread, d.Message)
		}
		if in.Quotes, err = s.quoteAskedMessage(ctx, d); err != nil {
			return bus.Inbound{}, commandReply{}, err
		}
		return in, commandReply{}, nil
	}
	in.Text = slashText(s.translator.resolveReferences(ctx, d.Says, s.me))
	in.Called = true // the command's name is the bot's
	switch {
	case !takesPart:
		return in, commandReply{Text: answeredPrivatelyText}, nil
	case strings.HasPrefix(in.Text, "/"):
		return in, commandReply{}, nil
	}
	return in, commandReply{Type: "in_channel"}, nil // so that people who read the answer also see the question
}

// quoteAskedMessage returns the message that a person asks about, and the messages that it
// forwards, as quotes.
func (s *actions) quoteAskedMessage(ctx context.Context, d interaction.Action) ([]bus.Quote, error) {
	m := new(message)
	if err := json.Unmarshal(d.About, m); err != nil {
		return nil, fmt.Errorf("read the message that is asked about: %w", err)
	}
	q := bus.Quote{Kind: bus.Answered, From: s.translator.authorOf(ctx, m), At: interaction.ParseTS(m.TS), Text: s.translator.typedText(ctx, m, s.me, false)}
	return append([]bus.Quote{q}, s.translator.quotes(ctx, m, s.me)...), nil
}

// slashText translates the words after the app's slash command: "stop" becomes the "/stop" that the gateway reads,
// other words are said to the agent, and no words ask for help. A command followed by more words, such as "status
// of the build?", counts as a command only with commandPrefix, unless it answers a request by its id, contains an
// owner's code, or confirms with "yes" a command about the person's own data.
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
