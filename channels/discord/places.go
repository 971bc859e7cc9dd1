package discord

import "github.com/bwmarrin/discordgo"

// A place is what Discord calls a channel: a server's channel, a thread in one, or a person's private chat with the
// bot.
type place struct {
	ID            string                `json:"id"`
	Type          discordgo.ChannelType `json:"type"`
	Guild         string                `json:"guild_id"`
	Name          string                `json:"name"`
	Parent        string                `json:"parent_id"`       // the channel of a thread; the category of a channel
	NewestMessage string                `json:"last_message_id"` // id of the newest message in the place
}

// isThread reports whether the place is a thread; a post in a forum is one too.
func (p place) isThread() bool {
	switch p.Type {
	case discordgo.ChannelTypeGuildNewsThread, discordgo.ChannelTypeGuildPublicThread, discordgo.ChannelTypeGuildPrivateThread:
		return true
	}
	return false
}

// isGroup reports whether anybody besides one person and the bot reads the place.
func (p place) isGroup() bool { return p.Type != discordgo.ChannelTypeDM }

// noServerID takes the place of the server's id in a web address if there is no server.
const noServerID = "@me"

// linkPrefix returns what precedes the place's id in the web address of one of its messages; "" if that isn't known.
func (p place) linkPrefix() string {
	if p.Type == discordgo.ChannelTypeDM || p.Type == discordgo.ChannelTypeGroupDM {
		return noServerID
	}
	return p.Guild
}

// A guild is a server that the bot is in, as Discord's event GUILD_CREATE describes it.
type guild struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Channels []place `json:"channels"`
	Threads  []place `json:"threads"`
	Roles    []role  `json:"roles"`
}

// A role is a named group of a server's members.
type role struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Tags struct {
		Bot string `json:"bot_id"`
	} `json:"tags"`
}
