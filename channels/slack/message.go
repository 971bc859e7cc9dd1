package slack

import (
	slackgo "github.com/slack-go/slack"

	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/files"
)

// A message is a Slack message, as an event or the history contains it.
type message struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	User        string          `json:"user"`
	BotID       string          `json:"bot_id"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	Hidden      bool            `json:"hidden"`
	Edited      json.RawMessage `json:"edited"`
	EventTS     string          `json:"event_ts"`
	NewVersion  *message        `json:"message"`          // in an edit: the message as it is now
	OldVersion  *message        `json:"previous_message"` // in an edit or a deletion: the message as it was
	Files       []files.File    `json:"files"`
	Attachments []attachment    `json:"attachments"`
}

// fromHistory converts a message from a chat's history.
func fromHistory(chat string, m slackgo.Message) message {
	made := message{
		Type: "message", Subtype: m.SubType, Channel: chat, User: m.User, BotID: m.BotID,
		Text: m.Text, TS: m.Timestamp, ThreadTS: m.ThreadTimestamp, Hidden: m.Hidden,
	}
	for _, f := range m.Files {
		made.Files = append(made.Files, convertFile(f))
	}
	for _, a := range m.Attachments {
		made.Attachments = append(made.Attachments, convertAttachment(a))
	}
	return made
}

// convertFile converts one of slack-go's files into the type of package files.
func convertFile(f slackgo.File) files.File {
	return files.File{Name: f.Name, Title: f.Title, Type: f.Mimetype, Mode: f.Mode, Size: int64(f.Size), URL: f.URLPrivate, Download: f.URLPrivateDownload}
}

// isSpeech reports whether a message is something that a person says. Joins, topics and edits are not, nor are
// messages from this bot (the account me) or from other bots.
func (m *message) isSpeech(me Account) bool {
	switch m.Type {
	case "message":
	case "app_mention":
		if len(m.Edited) > 0 && string(m.Edited) != "null" {
			return false // the mention was added by an edit
		}
	default:
		return false
	}
	switch m.Subtype {
	case "", "file_share", "thread_broadcast", "me_message":
	default:
		return false
	}
	return !m.Hidden && m.BotID == "" && m.User != "" && m.User != me.User && m.User != slackbot && m.TS != "" && m.Channel != ""
}

// isWritten reports whether a person or an app wrote the message; nobody writes the messages that report joins and
// topics.
func (m *message) isWritten() bool {
	switch m.Subtype {
	case "", "file_share", "thread_broadcast", "me_message", "bot_message":
		return !m.Hidden && (m.Text != "" || len(m.Files) > 0 || m.forwardsMessages())
	}
	return false
}

// A change is a person's edit or deletion of a message.
type change struct {
	kind    string   // bus.Edited or bus.Deleted
	message *message // the message as it is now, or as it was before it was deleted
	eventID string   // Slack's ts of the change
}

// readChange returns the edit or deletion that an event reports; false if it reports none, or one that no person
// made: when a link unfolds, that changes its message too.
func (m *message) readChange(me Account) (change, bool) {
	c := change{eventID: m.EventTS}
	switch {
	case m.Subtype == "message_changed" && m.NewVersion != nil && m.NewVersion.Subtype == "tombstone", m.Subtype == "message_deleted":
		c.kind, c.message = bus.Deleted, m.OldVersion
	case m.Subtype == "message_changed" && m.NewVersion != nil && m.OldVersion != nil && m.NewVersion.Text != m.OldVersion.Text && len(m.NewVersion.Edited) > 0 && string(m.NewVersion.Edited) != "null":
		c.kind, c.message = bus.Edited, m.NewVersion
	}
	if c.message == nil || c.eventID == "" {
		return c, false
	}
	of := *c.message
	of.Type, of.Channel, of.ChannelType, of.Hidden = "message", m.Channel, m.ChannelType, false
	c.message = &of
	return c, of.isSpeech(me)
}

// isGroup reports whether a message was written where anybody besides one person and the bot can read it.
func (m *message) isGroup() bool {
	return m.ChannelType != "im" && !strings.HasPrefix(m.Channel, "D")
}

// isReply reports whether a message was written in a thread. In history, the message that began a thread also has a
// thread_ts, but was not written in the thread.
func (m *message) isReply() bool { return m.ThreadTS != "" && m.ThreadTS != m.TS }

// mentions reports whether the text mentions a user.
func (m *message) mentions(user string) bool {
	return strings.Contains(m.Text, "<@"+user+">") || strings.Contains(m.Text, "<@"+user+"|")
}

// mayConcernBot reports whether a message may be meant for the bot (the account me), given the rule for mentions in
// the message's chat. It asks neither Slack nor the book; messageInbound decides the rest.
func (m *message) mayConcernBot(me Account, holds channels.MentionIn) bool {
	if !m.isSpeech(me) || !m.isGroup() {
		return m.isSpeech(me)
	}
	switch holds.In(m.Channel) {
	case channels.MentionNowhere:
		return false
	case channels.MentionNever:
		return true
	}
	return m.isReply() || m.mentions(me.User)
}

// An attachment is content that Slack shows below a message. The bot reads only attachments that are forwarded
// messages.
type attachment struct {
	IsShare     bool         `json:"is_share"`
	IsMsgUnfurl bool         `json:"is_msg_unfurl"`
	AuthorID    string       `json:"author_id"`
	AuthorName  string       `json:"author_name"`
	ChannelID   string       `json:"channel_id"`
	ChannelName string       `json:"channel_name"`
	Text        string       `json:"text"`
	Fallback    string       `json:"fallback"`
	TS          string       `json:"ts"`
	Files       []files.File `json:"files"`
}

// convertAttachment converts one of slack-go's attachments, which does not name the chat.
func convertAttachment(a slackgo.Attachment) attachment {
	made := attachment{
		IsShare: a.IsShare, IsMsgUnfurl: a.IsMsgUnfurl, AuthorID: a.AuthorID, AuthorName: cmp.Or(a.AuthorName, a.AuthorSubname),
		Text: a.Text, Fallback: a.Fallback, TS: a.Ts.String(),
	}
	for _, f := range a.Files {
		made.Files = append(made.Files, convertFile(f))
	}
	return made
}

// isMessage reports whether an attachment is a forwarded message.
func (a attachment) isMessage() bool { return a.IsShare || a.IsMsgUnfurl }

// forwardsMessages reports whether a message forwards others.
func (m *message) forwardsMessages() bool {
	for _, a := range m.Attachments {
		if a.isMessage() {
			return true
		}
	}
	return false
}

// formatTS formats a time as a Slack ts.
func formatTS(at time.Time) string {
	return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
}
