package slack

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf16"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

const (
	// What Slack takes of buttons: how many in a row of them, and of what each
	// brings back when it is pressed, in bytes.
	mostButtons   = 25
	mostPressData = 2000
	// mostSection is what it takes in a section, in UTF-16 units.
	mostSection = 3000
)

// MostButtons implements channels.ButtonShower. Who does not receive hears of no press.
func (c *Channel) MostButtons() (count, bytes int) {
	if !c.receives() {
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

// isAboutBlocks reports whether a refusal may be of what is shown beside the text.
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

// use reports whether a message is to be sent as one.
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
