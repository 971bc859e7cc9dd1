package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
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

// showing makes a call that shows a part: as a markdown block, if it has one and the
// workspace takes it, or else as its text. A call that Slack refuses for its blocks has
// said nothing, and is made once more without.
func (c *Channel) showing(part channels.Part, call func(shown []slackgo.MsgOption) error) error {
	if part.Markdown == "" || !c.markdown.use() {
		return call(blocks(part, false))
	}
	err := call(blocks(part, true))
	refusal, ok := errors.AsType[slackgo.SlackErrorResponse](err)
	if !ok || !isAboutBlocks(refusal.Err) {
		c.markdown.note(err == nil, false)
		return err
	}
	c.markdown.note(false, refusal.Err == "invalid_blocks")
	return call(blocks(part, false))
}

// isAboutBlocks tells whether a refusal may be of what is shown beside the text.
func isAboutBlocks(code string) bool {
	return slices.Contains([]string{"invalid_blocks", "invalid_blocks_format", "invalid_attachments", "msg_blocks_too_long", "msg_too_long"}, code)
}

// blocks makes the options by which a message shows more than its text: Markdown as Slack
// renders it, and buttons. Blocks take the place of the text, which is then in
// notifications alone: so beside buttons the text is a block too, and where it is too
// long for one, the buttons are attached to the message.
func blocks(part channels.Part, markdown bool) []slackgo.MsgOption {
	var all []slackgo.Block
	if markdown {
		all = append(all, slackgo.NewMarkdownBlock("", part.Markdown))
	}
	if len(part.Buttons) == 0 {
		if all == nil {
			return nil
		}
		return []slackgo.MsgOption{slackgo.MsgOptionBlocks(all...)}
	}
	row := make([]slackgo.BlockElement, len(part.Buttons))
	for i, b := range part.Buttons {
		label := slackgo.NewTextBlockObject(slackgo.PlainTextType, b.Label, false, false)
		row[i] = slackgo.NewButtonBlockElement("say-"+strconv.Itoa(i), b.Says, label)
	}
	actions := slackgo.NewActionBlock("", row...)
	if all == nil {
		if n := len(utf16.Encode([]rune(part.Text))); n == 0 || n > mostSection {
			return []slackgo.MsgOption{slackgo.MsgOptionAttachments(slackgo.Attachment{Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{actions}}})}
		}
		text := slackgo.NewTextBlockObject(slackgo.MarkdownType, part.Text, false, true)
		all = append(all, slackgo.NewSectionBlock(text, nil, nil, slackgo.SectionBlockOptionExpand(true)))
	}
	return []slackgo.MsgOption{slackgo.MsgOptionBlocks(append(all, actions)...)}
}

// nothingShown takes away what a message shows beside its text. An edit leaves what it
// does not name as it was: blocks that cover the new text, and buttons that are to go.
func nothingShown() []slackgo.MsgOption {
	return []slackgo.MsgOption{
		slackgo.MsgOptionBlocks([]slackgo.Block{}...), slackgo.MsgOptionAttachments([]slackgo.Attachment{}...),
	}
}

// askAgain is how long a workspace that has refused markdown blocks is not asked again.
const askAgain = 6 * time.Hour

// markdownBlocks is what is known of whether a workspace takes them.
type markdownBlocks struct {
	mu      sync.Mutex
	taken   bool      // it has taken one
	refused time.Time // since when it refuses them; zero if it is not known to
}

// use tells whether a message is to be sent as one.
func (m *markdownBlocks) use() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused.IsZero() || time.Since(m.refused) > askAgain
}

// note takes down what became of one. A workspace that has taken one before does not
// refuse them; it has refused this message's.
func (m *markdownBlocks) note(taken, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = m.taken || taken
	switch {
	case taken:
		m.refused = time.Time{}
	case refused && !m.taken:
		m.refused = time.Now()
	}
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
