package discord

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
	"parley/channels/markup"
)

// The flags of an application that may read what people write.
const (
	mayReadContent      = 1 << 18
	mayReadSomeContents = 1 << 19 // in fewer than a hundred servers
)

// rights are the permissions that receiving and answering need, by their names in the
// developer portal.
func rights() []right {
	return []right{
		{"View Channels", discordgo.PermissionViewChannel, true},
		{"Send Messages", discordgo.PermissionSendMessages, true},
		{"Attach Files", discordgo.PermissionAttachFiles, true},
		{"Send Messages in Threads", discordgo.PermissionSendMessagesInThreads, false},
		{"Read Message History", discordgo.PermissionReadMessageHistory, false},
		{"Add Reactions", discordgo.PermissionAddReactions, false},
	}
}

// A right is a permission of the bot's in a server.
type right struct {
	name  string
	bit   int64
	sends bool // also a bot that only sends needs it
}

// MayReadContent tells whether the developer portal lets the bot read what people write
// in servers. Errors are as of Check.
func (c *Channel) MayReadContent(ctx context.Context) (bool, error) {
	var app struct {
		Flags int `json:"flags"`
	}
	err := c.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointAPI + "applications/@me"}, &app)
	return app.Flags&(mayReadContent|mayReadSomeContents) != 0, err
}

// A LackOfRights is what the bot may not do in a server, by the names of permissions.
type LackOfRights struct {
	Server  string // "" is not known
	Channel string // in which of its channels or threads; "" is everywhere
	Rights  []string
}

// LackingRights are the servers that do not let the bot do all that it needs. Channels
// may give or take away more: see LackingRightsIn. Errors are as of Check.
func (c *Channel) LackingRights(ctx context.Context) ([]LackOfRights, error) {
	var guilds []struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Permissions string `json:"permissions"`
	}
	if err := c.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointUser("@me") + "/guilds"}, &guilds); err != nil {
		return nil, err
	}
	var all []LackOfRights
	for _, g := range guilds {
		has, err := strconv.ParseInt(g.Permissions, 10, 64)
		if err != nil || has&discordgo.PermissionAdministrator != 0 {
			continue
		}
		lack := LackOfRights{Server: markup.OneLine(g.Name, maxName) + " (" + g.ID + ")"}
		for _, r := range rights() {
			if has&r.bit == 0 && (r.sends || !c.sendsOnly) {
				lack.Rights = append(lack.Rights, r.name)
			}
		}
		if len(lack.Rights) > 0 {
			all = append(all, lack)
		}
	}
	slices.SortFunc(all, func(a, b LackOfRights) int { return strings.Compare(a.Server, b.Server) })
	return all, nil
}

// mostExamined bounds the channels whose permissions are looked at.
const mostExamined = 100

// LackingRightsIn are those of these channels and threads in which the bot may not do all
// that it needs: a channel may take away what the server gives. Errors are as of Check.
func (c *Channel) LackingRightsIn(ctx context.Context, ids []string) (all []LackOfRights, err error) {
	me, err := c.Check(ctx)
	if err != nil {
		return nil, err
	}
	guilds := map[string]*membership{}
	for i, id := range ids[:min(len(ids), mostExamined)] {
		if !isID(id) || slices.Contains(ids[:i], id) {
			continue
		}
		lack, err := c.lackingIn(ctx, me.ID, id, guilds)
		if err != nil {
			return nil, err
		}
		if len(lack.Rights) > 0 {
			all = append(all, lack)
		}
	}
	return all, nil
}

// A membership is a server, and the bot in it.
type membership struct {
	guild discordgo.Guild
	bot   discordgo.Member
}

// lackingIn is what the bot may not do in a channel or a thread. One that it may not see
// Discord does not show, nor tell from one that is gone.
func (c *Channel) lackingIn(ctx context.Context, me, id string, guilds map[string]*membership) (LackOfRights, error) {
	var where, above discordgo.Channel
	err := c.get(ctx, discordgo.EndpointChannel(id), &where)
	if err == nil && where.IsThread() {
		err = c.get(ctx, discordgo.EndpointChannel(where.ParentID), &above)
	}
	if isRejected(err) {
		return LackOfRights{Channel: id, Rights: []string{rights()[0].name}}, nil
	}
	if err != nil || where.GuildID == "" { // a chat with one person
		return LackOfRights{}, err
	}
	in := guilds[where.GuildID]
	if in == nil {
		in = new(membership)
		if err := c.get(ctx, discordgo.EndpointGuild(where.GuildID), &in.guild); err != nil {
			return LackOfRights{}, err
		}
		if err := c.get(ctx, discordgo.EndpointGuildMember(where.GuildID, me), &in.bot); err != nil {
			return LackOfRights{}, err
		}
		guilds[where.GuildID] = in
	}
	rules := &where
	if where.IsThread() {
		rules = &above
	}
	lack := LackOfRights{
		Server:  markup.OneLine(in.guild.Name, maxName) + " (" + where.GuildID + ")",
		Channel: "#" + markup.OneLine(where.Name, maxName) + " (" + id + ")",
	}
	has := mayDo(me, &in.guild, rules, &in.bot)
	for _, r := range rights() {
		elsewhere := r.bit == discordgo.PermissionSendMessages && where.IsThread() || r.bit == discordgo.PermissionSendMessagesInThreads && !where.IsThread()
		if has&r.bit == 0 && !elsewhere && (r.sends || !c.sendsOnly || where.IsThread() && r.bit == discordgo.PermissionSendMessagesInThreads) {
			lack.Rights = append(lack.Rights, r.name)
		}
	}
	return lack, nil
}

// ThreadsAmong are those of these channels that are threads, or posts of a forum, each with
// the channel that it belongs to. What cannot be seen is none. Errors are as of Check.
func (c *Channel) ThreadsAmong(ctx context.Context, ids []string) (parents map[string]string, err error) {
	parents = map[string]string{}
	for _, id := range ids[:min(len(ids), mostExamined)] {
		if !isID(id) {
			continue
		}
		var where discordgo.Channel
		err := c.get(ctx, discordgo.EndpointChannel(id), &where)
		if err != nil && !isRejected(err) {
			return nil, err
		}
		if err == nil && where.IsThread() {
			parents[id] = where.ParentID
		}
	}
	return parents, nil
}

// isRejected tells whether Discord refuses a call for good.
func isRejected(err error) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && refusal.Fault == channels.Rejected
}

// CheckGateway asks Discord where its gateway is. Errors are as of Check.
func (c *Channel) CheckGateway(ctx context.Context) error {
	_, err := c.findGateway(ctx)
	return err
}
