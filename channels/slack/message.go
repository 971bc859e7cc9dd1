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

// A message is a Slack message, as an event or history shows it.
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
	Now         *message        `json:"message"`          // of an edit
	Before      *message        `json:"previous_message"` // of an edit or a deletion
	Files       []files.File    `json:"files"`
	Attachments []attachment    `json:"attachments"`
}

// fromHistory makes a message of one from history.
func fromHistory(chat string, m slackgo.Message) message {
	made := message{
		Type: "message", Subtype: m.SubType, Channel: chat, User: m.User, BotID: m.BotID,
		Text: m.Text, TS: m.Timestamp, ThreadTS: m.ThreadTimestamp, Hidden: m.Hidden,
	}
	for _, f := range m.Files {
		made.Files = append(made.Files, fileOf(f))
	}
	for _, a := range m.Attachments {
		made.Attachments = append(made.Attachments, sharedIn(a))
	}
	return made
}

func fileOf(f slackgo.File) files.File {
	return files.File{Name: f.Name, Title: f.Title, Type: f.Mimetype, Mode: f.Mode, Size: int64(f.Size), URL: f.URLPrivate, Download: f.URLPrivateDownload}
}

// isSpeech reports whether a person says something in a message. Joins, topics and
// edits are none, nor are messages of this bot or another.
func (m *message) isSpeech(me Account) bool {
	switch m.Type {
	case "message":
	case "app_mention":
		if len(m.Edited) > 0 && string(m.Edited) != "null" {
			return false // the mention was added later
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

// isWritten reports whether somebody, or some app, has written a message: joins and topics
// are none.
func (m *message) isWritten() bool {
	switch m.Subtype {
	case "", "file_share", "thread_broadcast", "me_message", "bot_message":
		return !m.Hidden && (m.Text != "" || len(m.Files) > 0 || m.shares())
	}
	return false
}

// A change is what became of a message.
type change struct {
	kind string   // bus.Edited or bus.Deleted
	of   *message // as it is now, or as it was
	id   string   // of the event
}

// change is what a message tells of an earlier one; false if it tells nothing of the
// kind, or a person has not done it: a link that shows what is behind it changes a
// message too.
func (m *message) change(me Account) (change, bool) {
	c := change{id: m.EventTS}
	switch {
	case m.Subtype == "message_changed" && m.Now != nil && m.Now.Subtype == "tombstone", m.Subtype == "message_deleted":
		c.kind, c.of = bus.Deleted, m.Before
	case m.Subtype == "message_changed" && m.Now != nil && m.Before != nil && m.Now.Text != m.Before.Text && len(m.Now.Edited) > 0 && string(m.Now.Edited) != "null":
		c.kind, c.of = bus.Edited, m.Now
	}
	if c.of == nil || c.id == "" {
		return c, false
	}
	of := *c.of
	of.Type, of.Channel, of.ChannelType, of.Hidden = "message", m.Channel, m.ChannelType, false
	c.of = &of
	return c, of.isSpeech(me)
}

// isGroup reports whether a message was said where others read it too.
func (m *message) isGroup() bool {
	return m.ChannelType != "im" && !strings.HasPrefix(m.Channel, "D")
}

// isReply reports whether a message was said in a thread. The message that began a
// thread bears its ts in history too, but was not said in it.
func (m *message) isReply() bool { return m.ThreadTS != "" && m.ThreadTS != m.TS }

// mentions reports whether the text names a user.
func (m *message) mentions(user string) bool {
	return strings.Contains(m.Text, "<@"+user+">") || strings.Contains(m.Text, "<@"+user+"|")
}

// mayConcern reports whether a message can be meant for the bot, where that mention
// holds. It asks neither Slack nor the book; inbound judges the rest.
func (m *message) mayConcern(me Account, holds channels.MentionIn) bool {
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

// An attachment is what Slack shows below a message. Only forwarded messages are
// used.
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

// sharedIn makes an attachment of one from history, which does not name the chat.
func sharedIn(a slackgo.Attachment) attachment {
	made := attachment{
		IsShare: a.IsShare, IsMsgUnfurl: a.IsMsgUnfurl, AuthorID: a.AuthorID, AuthorName: cmp.Or(a.AuthorName, a.AuthorSubname),
		Text: a.Text, Fallback: a.Fallback, TS: a.Ts.String(),
	}
	for _, f := range a.Files {
		made.Files = append(made.Files, fileOf(f))
	}
	return made
}

func (a attachment) isMessage() bool { return a.IsShare || a.IsMsgUnfurl }

// shares reports whether a message forwards others.
func (m *message) shares() bool {
	for _, a := range m.Attachments {
		if a.isMessage() {
			return true
		}
	}
	return false
}

// stamp writes a time as Slack's ts.
func stamp(at time.Time) string {
	return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
}

// moment reads a ts; a string that is none gives the zero time.
func moment(ts string) time.Time {
	var seconds, micros int64
	if n, err := fmt.Sscanf(ts, "%d.%06d", &seconds, &micros); err != nil || n != 2 {
		return time.Time{}
	}
	return time.Unix(seconds, micros*1000).UTC()
}
