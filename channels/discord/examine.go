package discord

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

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
	Server string
	Rights []string
}

// LackingRights are the servers that do not let the bot do all that it needs. Channels
// may give or take away more. Errors are as of Check.
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

// CheckGateway asks Discord where its gateway is. Errors are as of Check.
func (c *Channel) CheckGateway(ctx context.Context) error {
	_, err := c.enter(ctx)
	return err
}
