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

// A place is a channel as Discord knows it: of a server, a thread in one, or that of a
// person with the bot.
type place struct {
	ID     string                `json:"id"`
	Type   discordgo.ChannelType `json:"type"`
	Guild  string                `json:"guild_id"`
	Name   string                `json:"name"`
	Parent string                `json:"parent_id"` // of a thread the channel, else a category
	Last   string                `json:"last_message_id"`
}

// thread tells whether the place is a thread, such as a post in a forum.
func (p place) thread() bool {
	switch p.Type {
	case discordgo.ChannelTypeGuildNewsThread, discordgo.ChannelTypeGuildPublicThread, discordgo.ChannelTypeGuildPrivateThread:
		return true
	}
	return false
}

// group tells whether others read along.
func (p place) group() bool { return p.Type != discordgo.ChannelTypeDM }

// A guild is a server that the bot is in, as Discord tells of it at the beginning of a
// session.
type guild struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Channels []place `json:"channels"`
	Threads  []place `json:"threads"`
	Roles    []role  `json:"roles"`
}

type role struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Tags struct {
		Bot string `json:"bot_id"`
	} `json:"tags"`
}

// A directory is what is known of the servers that the bot is in.
type directory struct {
	channel *Channel

	mu     sync.Mutex
	me     discordgo.User
	places map[string]place
	roles  map[string]string // their names, by id
	own    map[string]bool   // roles that servers gave the bot alone: to call one is to call it
	hidden map[string]bool   // channels that the bot may not read
}

func newDirectory(c *Channel) *directory {
	return &directory{channel: c, places: map[string]place{}, roles: map[string]string{}, own: map[string]bool{}, hidden: map[string]bool{}}
}

// begin begins anew, as a session does.
func (d *directory) begin(me discordgo.User) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.me = me
	clear(d.places)
	clear(d.roles)
	clear(d.own)
	clear(d.hidden)
}

// self is the bot's id; "" before the first session.
func (d *directory) self() discordgo.User {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.me
}

// noteGuild takes note of a server, and returns all places in it.
func (d *directory) noteGuild(g guild) []place {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(slices.Clone(g.Channels), g.Threads...)
	for i := range all {
		all[i].Guild = g.ID
		d.places[all[i].ID] = all[i]
	}
	for _, r := range g.Roles {
		d.setRole(r)
	}
	return all
}

// note takes note of a place.
func (d *directory) note(p place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places[p.ID] = p
	delete(d.hidden, p.ID)
}

// forget takes note that a place is gone.
func (d *directory) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.places, id)
	delete(d.hidden, id)
}

// noteRole takes note of a role.
func (d *directory) noteRole(r role) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setRole(r)
}

// setRole keeps a role. d.mu is held.
func (d *directory) setRole(r role) {
	d.roles[r.ID] = r.Name
	if r.Tags.Bot != "" && r.Tags.Bot == d.me.ID {
		d.own[r.ID] = true
	}
}

// hide takes note that the bot may not read a place.
func (d *directory) hide(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hidden[id] = true
}

func (d *directory) isHidden(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hidden[id]
}

// calls tells whether a message calls the bot.
func (d *directory) calls(m *message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return m.mentions(d.me.ID) || slices.ContainsFunc(m.Roles, func(r string) bool { return d.own[r] })
}

// isOwnRole tells whether a role is the bot's alone.
func (d *directory) isOwnRole(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.own[id]
}

// placeName and roleName are what people call these; "" where that is not known.
func (d *directory) placeName(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.places[id].Name
}

func (d *directory) roleName(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.roles[id]
}

// place is the place with that id, asked for where it is not known. One of which Discord
// does not tell is taken for a channel of a server.
func (d *directory) place(ctx context.Context, id string) (place, error) {
	d.mu.Lock()
	p, ok := d.places[id]
	d.mu.Unlock()
	if ok {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := d.channel.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointChannel(id)}, &p)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
		p, err = place{ID: id}, nil
	}
	if err != nil {
		return p, err
	}
	p.ID = id
	d.note(p)
	return p, nil
}

// observe takes note of what an event tells of servers, channels, threads and roles. It
// returns places that there are since then: nothing was said there before.
func (d *directory) observe(kind string, data json.RawMessage) (fresh []string) {
	switch kind {
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var p struct {
			place
			New bool `json:"newly_created"`
		}
		if json.Unmarshal(data, &p) != nil || p.ID == "" {
			return nil
		}
		d.note(p.place)
		if kind == "CHANNEL_CREATE" && p.group() || p.New {
			fresh = append(fresh, p.ID)
		}
	case "CHANNEL_DELETE", "THREAD_DELETE":
		var p place
		if json.Unmarshal(data, &p) == nil {
			d.forget(p.ID)
		}
	case "THREAD_LIST_SYNC":
		var list struct {
			Guild   string  `json:"guild_id"`
			Threads []place `json:"threads"`
		}
		if json.Unmarshal(data, &list) == nil {
			for _, p := range list.Threads {
				p.Guild = list.Guild
				d.note(p)
			}
		}
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE":
		var r struct {
			Role role `json:"role"`
		}
		if json.Unmarshal(data, &r) == nil {
			d.noteRole(r.Role)
		}
	}
	return fresh
}

// threads are those of a channel, the ones that were written in last first.
func (d *directory) threads(parent string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []place
	for _, p := range d.places {
		if p.thread() && p.Parent == parent {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(snowflake(b.Last), snowflake(a.Last)) })
	var ids []string
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}
