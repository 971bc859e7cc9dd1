package slack

import (
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf16"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

const (
	// maxButtons is how many buttons Slack accepts in one row, and maxButtonData how many bytes of data each button
	// can carry; Slack sends the data back when the button is pressed.
	maxButtons    = 25
	maxButtonData = 2000
	// maxSectionUnits is the length of the longest text in a section, in UTF-16 units.
	maxSectionUnits = 3000
)

// isAboutBlocks reports whether an error code may mean that Slack refused a message because of its blocks, and not
// because of its text.
func isAboutBlocks(code string) bool {
	return slices.Contains([]string{"invalid_blocks", "invalid_blocks_format", "invalid_attachments", "msg_blocks_too_long", "msg_too_long"}, code)
}

// blockOptions returns the options for what a message shows in addition to its text: Markdown as Slack renders it,
// and buttons. Blocks replace the text, which then appears only in notifications. So in a message with buttons, the
// text becomes a block too; if it is too long for one, the buttons are added as an attachment instead.
func blockOptions(part channels.Part, markdown bool) []slackgo.MsgOption {
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
		if n := len(utf16.Encode([]rune(part.Text))); n == 0 || n > maxSectionUnits {
			return []slackgo.MsgOption{slackgo.MsgOptionAttachments(slackgo.Attachment{Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{actions}}})}
		}
		text := slackgo.NewTextBlockObject(slackgo.MarkdownType, part.Text, false, true)
		all = append(all, slackgo.NewSectionBlock(text, nil, nil, slackgo.SectionBlockOptionExpand(true)))
	}
	return []slackgo.MsgOption{slackgo.MsgOptionBlocks(append(all, actions)...)}
}

// clearBlocks returns options that remove a message's blocks and attachments. An edit keeps whatever it does not
// name, so old blocks would cover the new text, and old buttons would stay.
func clearBlocks() []slackgo.MsgOption {
	return []slackgo.MsgOption{
		slackgo.MsgOptionBlocks([]slackgo.Block{}...), slackgo.MsgOptionAttachments([]slackgo.Attachment{}...),
	}
}

// retryRefusedAfter is how long no markdown block is sent to a workspace that has refused one.
const retryRefusedAfter = 6 * time.Hour

// markdownBlocks remembers whether the workspace accepts markdown blocks.
type markdownBlocks struct {
	mu           sync.Mutex
	accepted     bool      // whether the workspace has accepted one
	refusedSince time.Time // since when the workspace refuses them; zero if it does not
}

// shouldTry reports whether a message should be sent with a markdown block.
func (m *markdownBlocks) shouldTry() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refusedSince.IsZero() || time.Since(m.refusedSince) > retryRefusedAfter
}

// recordOutcome records whether Slack accepted or refused a markdown block. If the workspace has accepted one
// before, it supports them: the refusal then concerns only this message's block.
func (m *markdownBlocks) recordOutcome(taken, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accepted = m.accepted || taken
	switch {
	case taken:
		m.refusedSince = time.Time{}
	case refused && !m.accepted:
		m.refusedSince = time.Now()
	}
}
