package discord

import (
	"slices"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
)

// A message is a message of Discord's, as an event or history shows it. The library's
// own cannot be read where it has components of a newer kind.
type message struct {
	ID          string                         `json:"id"`
	Channel     string                         `json:"channel_id"`
	Guild       string                         `json:"guild_id"` // in events alone; "" in direct messages
	Content     string                         `json:"content"`
	At          time.Time                      `json:"timestamp"`
	Edited      *time.Time                     `json:"edited_timestamp"`
	Type        discordgo.MessageType          `json:"type"`
	Author      *user                          `json:"author"`
	Member      *member                        `json:"member"` // in events alone
	Flags       int                            `json:"flags"`
	Webhook     string                         `json:"webhook_id"`
	Mentions    []*user                        `json:"mentions"`
	Roles       []string                       `json:"mention_roles"`
	Attachments []*discordgo.MessageAttachment `json:"attachments"`
	Stickers    []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Poll *struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
	} `json:"poll"`
	Reference *struct {
		Type    int    `json:"type"`
		Message string `json:"message_id"`
		Channel string `json:"channel_id"`
	} `json:"message_reference"`
	Answers   *message `json:"referenced_message"`
	Snapshots []struct {
		Message *message `json:"message"`
	} `json:"message_snapshots"`
}

// A user is an account on Discord.
type user struct {
	ID         string  `json:"id"`
	Username   string  `json:"username"`
	GlobalName string  `json:"global_name"`
	Bot        bool    `json:"bot"`
	System     bool    `json:"system"`
	Member     *member `json:"member"` // of who is mentioned in an event
}

// A member is a user in a server.
type member struct {
	Nick string `json:"nick"`
}

// isSpeech tells whether a person says something in a message. Joins, pins and calls
// are none, nor are messages of this bot or another, or of a webhook.
func (m *message) isSpeech(me string) bool {
	switch {
	case m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply:
		return false
	case m.Author == nil || m.Author.Bot || m.Author.System || m.Author.ID == me || m.Webhook != "":
		return false
	}
	return isID(m.ID) && isID(m.Channel) && isID(m.Author.ID)
}

// mentions tells whether the message names a user, or replies to what that user said.
func (m *message) mentions(me string) bool {
	if slices.ContainsFunc(m.Mentions, func(u *user) bool { return u != nil && u.ID == me }) {
		return true
	}
	return m.Type == discordgo.MessageTypeReply && m.Answers != nil && m.Answers.Author != nil && m.Answers.Author.ID == me
}

// forwards tells whether the message passes on another.
func (m *message) forwards() bool { return len(m.Snapshots) > 0 }

// snowflake is an id as the number that it is; 0 if it is none. Numbers grow with time.
func snowflake(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// discordEpoch is where Discord's time begins, in milliseconds since 1970.
const discordEpoch = 1420070400000

// flakeAt is the lowest id of a moment.
func flakeAt(at time.Time) uint64 {
	return uint64(max(at.UnixMilli()-discordEpoch, 0)) << 22
}

// flakeBefore is the id that is so much older.
func flakeBefore(id uint64, d time.Duration) uint64 {
	before := uint64(d.Milliseconds()) << 22
	if before > id {
		return 0
	}
	return id - before
}

// momentOf is when the thing with that id was made.
func momentOf(id string) time.Time {
	n := snowflake(id)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + discordEpoch).UTC()
}

// messageID names a message for good.
func (c *Channel) messageID(me, channel, message string) string {
	return c.name + ":" + me + ":" + channel + ":" + message
}

// person is the id of one of Discord's users.
func (c *Channel) person(user string) string { return c.name + ":" + user }

// at is where the reply to what is said in a channel goes. A thread is a channel of
// its own on Discord; here it belongs to the channel that it is in.
func (c *Channel) at(p place) bus.Address {
	if p.thread() && p.Parent != "" {
		return bus.Address{Channel: c.name, Chat: p.Parent, Thread: p.ID}
	}
	return bus.Address{Channel: c.name, Chat: p.ID}
}
