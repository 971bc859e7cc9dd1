package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"
	"unicode/utf16"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
	"parley/channels/backoff"
)

const (
	// What Slack takes of buttons: how many in a row of them, and of what each
	// brings back when it is pressed, in bytes.
	mostButtons   = 25
	mostPressData = 2000
	// mostSection is what it takes in a section, in UTF-16 units.
	mostSection = 3000
	// pressTime is how long Slack waits for the acknowledgement of a press. It then
	// tells who has pressed that it failed, and does not bring the press again.
	pressTime = 3 * time.Second
)

// MostButtons implements channels.ButtonShower. Who does not receive hears of no press.
func (c *Channel) MostButtons() (count, bytes int) {
	if !c.app {
		return 0, 0
	}
	return mostButtons, mostPressData
}

// buttons makes the options by which a message shows its buttons. Blocks take the place
// of its text, which is then in notifications alone: so the text is a block too, and
// where it is too long for one, the buttons are attached to the message.
func buttons(part channels.Part) []slackgo.MsgOption {
	if len(part.Buttons) == 0 {
		return nil
	}
	row := make([]slackgo.BlockElement, len(part.Buttons))
	for i, b := range part.Buttons {
		label := slackgo.NewTextBlockObject(slackgo.PlainTextType, b.Label, false, false)
		row[i] = slackgo.NewButtonBlockElement("say-"+strconv.Itoa(i), b.Says, label)
	}
	actions := slackgo.NewActionBlock("", row...)
	if n := len(utf16.Encode([]rune(part.Text))); n == 0 || n > mostSection {
		return []slackgo.MsgOption{slackgo.MsgOptionAttachments(slackgo.Attachment{Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{actions}}})}
	}
	text := slackgo.NewTextBlockObject(slackgo.MarkdownType, part.Text, false, true)
	return []slackgo.MsgOption{slackgo.MsgOptionBlocks(slackgo.NewSectionBlock(text, nil, nil, slackgo.SectionBlockOptionExpand(true)), actions)}
}

// editedButtons does so for an edit, which leaves what it does not name as it was: blocks
// that cover the new text, and buttons that are to go.
func editedButtons(part channels.Part) []slackgo.MsgOption {
	none := []slackgo.MsgOption{
		slackgo.MsgOptionBlocks([]slackgo.Block{}...), slackgo.MsgOptionAttachments([]slackgo.Attachment{}...),
	}
	return append(none, buttons(part)...)
}

// A press is what Slack tells of a button that somebody has pressed.
type press struct {
	Type string `json:"type"`
	User struct {
		ID   string `json:"id"`
		Name string `json:"username"`
	} `json:"user"`
	Container struct {
		Channel string `json:"channel_id"`
		TS      string `json:"message_ts"`
	} `json:"container"`
	Message struct {
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		Value string `json:"value"`
		At    string `json:"action_ts"`
	} `json:"actions"`
}

// isOurs tells whether a press is of a button below one of the bot's messages.
func (p *press) isOurs() bool {
	return p.Type == "block_actions" && len(p.Actions) > 0 && p.Actions[0].Value != "" &&
		p.User.ID != "" && p.Container.Channel != "" && isTS(p.Container.TS)
}

// pressedAt is where the message with the button stands.
func (c *Channel) pressedAt(p *press) bus.Address {
	at := bus.Address{Channel: c.name, Chat: p.Container.Channel}
	if p.Message.ThreadTS != p.Container.TS { // else the message only began a thread
		at.Thread = p.Message.ThreadTS
	}
	return at
}

// pressed is what a press says to the agent.
func (c *Channel) pressed(ctx context.Context, p *press, me Account) bus.Inbound {
	action := p.Actions[0]
	return bus.Inbound{
		ID:   c.name + ":" + me.Team + ":" + p.Container.Channel + ":press:" + p.User.ID + ":" + action.At,
		Kind: bus.Said, Text: action.Value, Pressed: true, Mentioned: true,
		From:  bus.Person{ID: c.name + ":" + p.User.ID, Name: cmp.Or(c.people.name(ctx, p.User.ID), p.User.Name, p.User.ID)},
		At:    c.pressedAt(p),
		Group: (&message{Channel: p.Container.Channel}).isGroup(), ReplyTo: p.Container.TS, SentAt: moment(action.At),
	}
}

// presses publishes what people press, beside what they say: Slack waits no longer for
// a press than for pressTime.
type presses struct {
	channel *Channel
	me      Account
	publish func(context.Context, bus.Inbound) error
	running sync.WaitGroup
}

// take publishes a press and acknowledges it then. What is no press of one of our buttons
// is only acknowledged.
func (s *presses) take(ctx context.Context, p *press, ack func()) {
	if !p.isOurs() {
		ack()
		return
	}
	s.running.Go(func() {
		err := s.deliver(ctx, p)
		switch {
		case err == nil:
			ack()
		case errors.Is(err, channels.ErrNotAdmitted):
			ack()
			s.refuse(ctx, p)
		default: // Slack tells who has pressed that it failed, as there is no acknowledgement
			s.channel.log.LogAttrs(ctx, slog.LevelWarn, "a press was not stored in time; who has pressed is told so by Slack", slog.Any("error", err))
		}
	})
}

// deliver publishes a press, trying as long as Slack waits.
func (s *presses) deliver(ctx context.Context, p *press) error {
	ctx, cancel := context.WithTimeout(ctx, pressTime)
	defer cancel()
	in := s.channel.pressed(ctx, p, s.me)
	var wait backoff.Series
	for {
		err := s.publish(ctx, in)
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) || !backoff.Sleep(ctx, wait.Next(pressTime/4)) {
			return err
		}
	}
}

// refuse tells who has pressed, and nobody else, that it counts for nothing.
func (s *presses) refuse(ctx context.Context, p *press) {
	err := s.channel.Whisper(ctx, s.channel.pressedAt(p), p.User.ID, channels.Part{Text: channels.NotAdmitted})
	if err != nil {
		s.channel.log.LogAttrs(ctx, slog.LevelDebug, "who has pressed a button could not be told that it counts for nothing", slog.Any("error", err))
	}
}
