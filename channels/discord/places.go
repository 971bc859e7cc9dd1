package discord

import "github.com/bwmarrin/discordgo"

// A place is what Discord calls a channel: a channel of a server, a thread in one, or a
// person's chat with the bot.
type place struct {
	ID     string                `json:"id"`
	Type   discordgo.ChannelType `json:"type"`
	Guild  string                `json:"guild_id"`
	Name   string                `json:"name"`
	Parent string                `json:"parent_id"`       // the channel of a thread; the category of a channel
	Last   string                `json:"last_message_id"` // id of the newest message in the place
}

// isThread reports whether the place is a thread; a post in a forum is one too.
func (p place) isThread() bool {
	switch p.Type {
	case discordgo.ChannelTypeGuildNewsThread, discordgo.ChannelTypeGuildPublicThread, discordgo.ChannelTypeGuildPrivateThread:
		return true
	}
	return false
}

// isGroup reports whether people other than one person and the bot read the place.
func (p place) isGroup() bool { return p.Type != discordgo.ChannelTypeDM }

// personal is what an address has in the place of a server where there is none.
const personal = "@me"

// linked returns what an address of a message in the place has in front of the place's id; "" if that is not known.
func (p place) linked() string {
	if p.Type == discordgo.ChannelTypeDM || p.Type == discordgo.ChannelTypeGroupDM {
		return personal
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
