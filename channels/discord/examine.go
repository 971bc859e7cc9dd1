package discord

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/channels/markup"
)

// Each of these flags of an application says that the bot may read what people write.
const (
	flagReadContent        = 1 << 18
	flagReadContentLimited = 1 << 19 // for a bot in fewer than a hundred servers
)

// neededRights returns the permissions that the bot needs for receiving and answering, with their names in the
// developer portal.
func neededRights() []neededRight {
	return []neededRight{
		{"View Channels", discordgo.PermissionViewChannel, true},
		{"Send Messages", discordgo.PermissionSendMessages, true},
		{"Attach Files", discordgo.PermissionAttachFiles, true},
		{textSendInThreads, discordgo.PermissionSendMessagesInThreads, false},
		{textReadHistory, discordgo.PermissionReadMessageHistory, false},
		{"Add Reactions", discordgo.PermissionAddReactions, false},
	}
}

// A neededRight is a permission that the bot needs in a server.
type neededRight struct {
	name       string
	bit        int64
	forSending bool // whether a bot that only sends needs it too
}

// An examiner finds out what the bot may do.
type examiner struct {
	*api
	onlySends bool
}

// MayReadContent reports whether the developer portal allows the bot to read what people write in servers. It fails
// as Check does.
func (e *examiner) MayReadContent(ctx context.Context) (bool, error) {
	var app struct {
		Flags int `json:"flags"`
	}
	err := e.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointAPI + "applications/@me"}, &app)
	return app.Flags&(flagReadContent|flagReadContentLimited) != 0, err
}

// Invitation returns the link with which people add the bot to their servers, with the permissions that it needs.
// It fails as Check does.
func (e *examiner) Invitation(ctx context.Context) (string, error) {
	var app struct {
		ID string `json:"id"`
	}
	if err := e.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointAPI + "applications/@me"}, &app); err != nil {
		return "", err
	}
	var rights int64
	for _, r := range neededRights() {
		rights |= r.bit
	}
	return "https://discord.com/oauth2/authorize?" + url.Values{
		"client_id": {app.ID}, "scope": {"bot applications.commands"}, "permissions": {strconv.FormatInt(rights, 10)},
	}.Encode(), nil
}

// MissingRights lists the permissions that the bot needs but does not have in a server, by their names in the
// developer portal.
type MissingRights struct {
	Server  string // the server as NAME (ID); "" if it is not known
	Channel string // the channel or thread as #NAME (ID), or its id if the bot can't see it; "" means the whole server
	Rights  []string
}

// FindMissingRights returns the servers that withhold a permission that the bot needs. A single channel may grant or
// withhold more: see FindMissingRightsIn. It fails as Check does.
func (e *examiner) FindMissingRights(ctx context.Context) ([]MissingRights, error) {
	var guilds []struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Permissions string `json:"permissions"`
	}
	if err := e.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointUser("@me") + "/guilds"}, &guilds); err != nil {
		return nil, err
	}
	var all []MissingRights
	for _, g := range guilds {
		has, err := strconv.ParseInt(g.Permissions, 10, 64)
		if err != nil || has&discordgo.PermissionAdministrator != 0 {
			continue
		}
		lack := MissingRights{Server: markup.OneLine(g.Name, maxName) + " (" + g.ID + ")"}
		for _, r := range neededRights() {
			if has&r.bit == 0 && (r.forSending || !e.onlySends) {
				lack.Rights = append(lack.Rights, r.name)
			}
		}
		if len(lack.Rights) > 0 {
			all = append(all, lack)
		}
	}
	slices.SortFunc(all, func(a, b MissingRights) int { return strings.Compare(a.Server, b.Server) })
	return all, nil
}

// maxExamined is the maximum number of channels that one call asks Discord about.
const maxExamined = 100

// FindMissingRightsIn returns those of the first maxExamined channels and threads that withhold a permission that the
// bot needs; a channel may withhold what its server grants. It fails as Check does.
func (e *examiner) FindMissingRightsIn(ctx context.Context, ids []string) (all []MissingRights, err error) {
	me, err := e.Check(ctx)
	if err != nil {
		return nil, err
	}
	guilds := map[string]*membership{}
	for i, id := range ids[:min(len(ids), maxExamined)] {
		if !isID(id) || slices.Contains(ids[:i], id) {
			continue
		}
		lack, err := e.findMissingRightsInOne(ctx, me.ID, id, guilds)
		if err != nil {
			return nil, err
		}
		if len(lack.Rights) > 0 {
			all = append(all, lack)
		}
	}
	return all, nil
}

// A membership is a server together with the bot's membership in it.
type membership struct {
	guild discordgo.Guild
	bot   discordgo.Member
}

// findMissingRightsInOne returns the permissions that the bot lacks in one channel or thread. Discord gives the same
// answer for a channel that the bot may not see and for one that is gone: in both cases the bot lacks the
// permission to view it.
func (e *examiner) findMissingRightsInOne(ctx context.Context, me, id string, guilds map[string]*membership) (MissingRights, error) {
	var where, above discordgo.Channel
	err := e.get(ctx, discordgo.EndpointChannel(id), &where)
	if err == nil && where.IsThread() {
		err = e.get(ctx, discordgo.EndpointChannel(where.ParentID), &above)
	}
	if isRejected(err) {
		return MissingRights{Channel: id, Rights: []string{neededRights()[0].name}}, nil
	}
	if err != nil || where.GuildID == "" { // a direct message chat
		return MissingRights{}, err
	}
	in := guilds[where.GuildID]
	if in == nil {
		in = new(membership)
		if err := e.get(ctx, discordgo.EndpointGuild(where.GuildID), &in.guild); err != nil {
			return MissingRights{}, err
		}
		if err := e.get(ctx, discordgo.EndpointGuildMember(where.GuildID, me), &in.bot); err != nil {
			return MissingRights{}, err
		}
		guilds[where.GuildID] = in
	}
	rules := &where
	if where.IsThread() {
		rules = &above
	}
	lack := MissingRights{
		Server:  markup.OneLine(in.guild.Name, maxName) + " (" + where.GuildID + ")",
		Channel: "#" + markup.OneLine(where.Name, maxName) + " (" + id + ")",
	}
	has := permissionsOf(me, &in.guild, rules, &in.bot)
	for _, r := range neededRights() {
		elsewhere := r.bit == discordgo.PermissionSendMessages && where.IsThread() || r.bit == discordgo.PermissionSendMessagesInThreads && !where.IsThread()
		if has&r.bit == 0 && !elsewhere && (r.forSending || !e.onlySends || where.IsThread() && r.bit == discordgo.PermissionSendMessagesInThreads) {
			lack.Rights = append(lack.Rights, r.name)
		}
	}
	return lack, nil
}

// ThreadsAmong returns those of the first maxExamined channels that are threads or posts in a forum, each with the
// id of the channel that it belongs to. It leaves out channels that the bot can't see. It fails as Check does.
func (e *examiner) ThreadsAmong(ctx context.Context, ids []string) (parents map[string]string, err error) {
	parents = map[string]string{}
	for _, id := range ids[:min(len(ids), maxExamined)] {
		if !isID(id) {
			continue
		}
		var where discordgo.Channel
		err := e.get(ctx, discordgo.EndpointChannel(id), &where)
		if err != nil && !isRejected(err) {
			return nil, err
		}
		if err == nil && where.IsThread() {
			parents[id] = where.ParentID
		}
	}
	return parents, nil
}

// CheckGateway asks Discord for the gateway's address, to find out whether a connection can be opened. It fails as
// Check does.
func (e *examiner) CheckGateway(ctx context.Context) error {
	_, err := e.findGateway(ctx)
	return err
}
