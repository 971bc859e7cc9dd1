package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
)

// A directory remembers the servers that the bot is in, with their places and roles, as
// the gateway's events describe them.
type directory struct {
	api *api

	mu     sync.Mutex
	me     discordgo.User
	places map[string]place
	roles  map[string]string // the names of roles, by their ids
	// Roles that a server has given to the bot alone: mentioning one mentions the bot.
	botRoles   map[string]bool
	unreadable map[string]bool // channels whose history the bot may not read
}

// newDirectory makes an empty directory, which asks Discord through c about places that it does not know.
func newDirectory(c *api) *directory {
	return &directory{api: c, places: map[string]place{}, roles: map[string]string{}, botRoles: map[string]bool{}, unreadable: map[string]bool{}}
}

// reset forgets everything except the bot's user, me. It is called for each new session, because Discord then
// describes all servers again.
func (d *directory) reset(me discordgo.User) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.me = me
	clear(d.places)
	clear(d.roles)
	clear(d.botRoles)
	clear(d.unreadable)
}

// botUser returns the bot's own user; its ID is "" before the first session.
func (d *directory) botUser() discordgo.User {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.me
}

// setGuild stores a server's places and roles, and returns all of its places.
func (d *directory) setGuild(g guild) []place {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(slices.Clone(g.Channels), g.Threads...)
	for i := range all {
		all[i].Guild = g.ID
		d.places[all[i].ID] = all[i]
	}
	for _, r := range g.Roles {
		d.setRoleLocked(r)
	}
	return all
}

// setPlace stores a place, replacing what was known about it. From then on, the bot is assumed to be able to read
// its history again.
func (d *directory) setPlace(p place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places[p.ID] = p
	delete(d.unreadable, p.ID)
}

// removePlace forgets a place that was deleted.
func (d *directory) removePlace(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.places, id)
	delete(d.unreadable, id)
}

// setRole stores a role.
func (d *directory) setRole(r role) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setRoleLocked(r)
}

// setRoleLocked does what setRole does, for callers that hold d.mu.
func (d *directory) setRoleLocked(r role) {
	d.roles[r.ID] = r.Name
	if r.Tags.Bot != "" && r.Tags.Bot == d.me.ID {
		d.botRoles[r.ID] = true
	}
}

// markUnreadable records that the bot may not read a place's history.
func (d *directory) markUnreadable(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unreadable[id] = true
}

// isUnreadable reports whether the bot may not read a place's history.
func (d *directory) isUnreadable(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unreadable[id]
}

// mentionsBot reports whether a message mentions the bot or one of its own roles, or replies to one of its
// messages.
func (d *directory) mentionsBot(m *message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return m.mentions(d.me.ID) || slices.ContainsFunc(m.Roles, func(r string) bool { return d.botRoles[r] })
}

// isBotRole reports whether a server has given the role to the bot alone.
func (d *directory) isBotRole(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.botRoles[id]
}

// placeName returns the name that people see for a place; "" if it isn't known.
func (d *directory) placeName(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.places[id].Name
}

// roleName returns the name that people see for a role; "" if it isn't known.
func (d *directory) roleName(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.roles[id]
}

// findPlace returns the place with that id; if it does not know the place, it asks Discord. If Discord refuses to
// describe the place, findPlace assumes that it is a server's channel.
func (d *directory) findPlace(ctx context.Context, id string) (place, error) {
	d.mu.Lock()
	p, ok := d.places[id]
	d.mu.Unlock()
	if ok {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := d.api.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointChannel(id)}, &p)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
		p, err = place{ID: id}, nil
	}
	if err != nil {
		return p, err
	}
	p.ID = id
	d.setPlace(p)
	return p, nil
}

// applyEvent updates the directory from an event about channels, threads or roles; kind is the event's name. It
// returns the ids of places that have just been created, in which nothing has been said yet.
func (d *directory) applyEvent(kind string, data json.RawMessage) (fresh []string) {
	switch kind {
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var p struct {
			place
			New bool `json:"newly_created"`
		}
		if json.Unmarshal(data, &p) != nil || p.ID == "" {
			return nil
		}
		d.setPlace(p.place)
		if kind == "CHANNEL_CREATE" && p.isGroup() || p.New {
			fresh = append(fresh, p.ID)
		}
	case "CHANNEL_DELETE", "THREAD_DELETE":
		var p place
		if json.Unmarshal(data, &p) == nil {
			d.removePlace(p.ID)
		}
	case "THREAD_LIST_SYNC":
		var list struct {
			Guild   string  `json:"guild_id"`
			Threads []place `json:"threads"`
		}
		if json.Unmarshal(data, &list) == nil {
			for _, p := range list.Threads {
				p.Guild = list.Guild
				d.setPlace(p)
			}
		}
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE":
		var r struct {
			Role role `json:"role"`
		}
		if json.Unmarshal(data, &r) == nil {
			d.setRole(r.Role)
		}
	}
	return fresh
}

// openThreadsOf returns the ids of those known threads in a channel that all of the channel's members may read,
// those with the newest messages first.
func (d *directory) openThreadsOf(parent string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []place
	for _, p := range d.places {
		if p.isThread() && p.Type != discordgo.ChannelTypeGuildPrivateThread && p.Parent == parent {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(snowflake(b.NewestMessage), snowflake(a.NewestMessage)) })
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}
