package discord

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
)

// IsIn implements channels.Roster: a person is in a channel of a server if they may see the channel and read its
// history. It returns false for a chat that is in no server.
func (h *historian) IsIn(ctx context.Context, chat, person string) (bool, error) {
	_, user, _ := strings.Cut(person, ":")
	var where discordgo.Channel
	var guild discordgo.Guild
	var who discordgo.Member
	if err := h.get(ctx, discordgo.EndpointChannel(chat), &where); err != nil || where.GuildID == "" {
		return false, err
	}
	if err := h.get(ctx, discordgo.EndpointGuild(where.GuildID), &guild); err != nil {
		return false, err
	}
	err := h.get(ctx, discordgo.EndpointGuildMember(where.GuildID, user), &who)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
		return false, nil
	}
	const needed = discordgo.PermissionViewChannel | discordgo.PermissionReadMessageHistory
	return err == nil && permissionsOf(user, &guild, &where, &who)&needed == needed, err
}

// IsClosed implements channels.ThreadAccess: it reports whether only invited people can read a thread. A thread
// that isn't known to be public counts as closed.
func (h *historian) IsClosed(ctx context.Context, at bus.Address) (bool, error) {
	p, err := h.directory.findPlace(ctx, at.Thread)
	return p.Type != discordgo.ChannelTypeGuildPublicThread && p.Type != discordgo.ChannelTypeGuildNewsThread, err
}

// permissionsOf returns the permissions that a server's member has in one of its channels.
func permissionsOf(user string, guild *discordgo.Guild, where *discordgo.Channel, who *discordgo.Member) int64 {
	var may int64
	for _, r := range guild.Roles {
		if r.ID == guild.ID || slices.Contains(who.Roles, r.ID) {
			may |= r.Permissions
		}
	}
	if guild.OwnerID == user || may&discordgo.PermissionAdministrator != 0 {
		return discordgo.PermissionAll
	}
	// The rules for everybody apply first, then those for roles, then those for the person.
	for _, concerns := range []func(o *discordgo.PermissionOverwrite) bool{
		func(o *discordgo.PermissionOverwrite) bool { return o.ID == guild.ID },
		func(o *discordgo.PermissionOverwrite) bool {
			return o.ID != guild.ID && slices.Contains(who.Roles, o.ID)
		},
		func(o *discordgo.PermissionOverwrite) bool { return o.ID == user },
	} {
		var deny, allow int64
		for _, o := range where.PermissionOverwrites {
			if concerns(o) {
				deny, allow = deny|o.Deny, allow|o.Allow
			}
		}
		may = may&^deny | allow
	}
	return may
}
