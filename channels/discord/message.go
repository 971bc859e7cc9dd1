package discord

import (
	"slices"
	"time"

	"github.com/bwmarrin/discordgo"
)

// maxName is the maximum length, in characters, of the name of a person, channel or file that the model is shown.
const maxName = 64

// A message is a Discord message, as an event or the history contains it. discordgo's own type can't decode
// messages with newer kinds of components.
type message struct {
	ID          string                         `json:"id"`
	Channel     string                         `json:"channel_id"`
	Guild       string                         `json:"guild_id"` // the server's id, in events only; "" in direct messages
	Content     string                         `json:"content"`
	At          time.Time                      `json:"timestamp"`
	Edited      *time.Time                     `json:"edited_timestamp"`
	Type        discordgo.MessageType          `json:"type"`
	Author      *user                          `json:"author"`
	Member      *member                        `json:"member"` // the author's membership in the server, in events only
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
	RepliedTo *message `json:"referenced_message"` // the message that this one replies to
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
	Member     *member `json:"member"` // the server membership of a user who is mentioned, in events only
}

// A member is what a server adds to a user, such as a nickname.
type member struct {
	Nick string `json:"nick"`
}

// isSpeech reports whether a message is something that a person says. Joins, pins and calls are not, nor are
// messages from this bot (the user me), from other bots or from webhooks.
func (m *message) isSpeech(me string) bool {
	switch {
	case m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply:
		return false
	case m.Author == nil || m.Author.Bot || m.Author.System || m.Author.ID == me || m.Webhook != "":
		return false
	}
	return isID(m.ID) && isID(m.Channel) && isID(m.Author.ID)
}

// mentions reports whether the message mentions the user me, or replies to one of that user's messages.
func (m *message) mentions(me string) bool {
	if slices.ContainsFunc(m.Mentions, func(u *user) bool { return u != nil && u.ID == me }) {
		return true
	}
	return m.Type == discordgo.MessageTypeReply && m.RepliedTo != nil && m.RepliedTo.Author != nil && m.RepliedTo.Author.ID == me
}

// isForward reports whether the message forwards another.
func (m *message) isForward() bool { return len(m.Snapshots) > 0 }
