package server

import (
	"context"
	"slices"

	"parley/bus"
	"parley/channels"
	"parley/channels/heartbeat"
	"parley/channels/routing"
	"parley/channels/webhook/events"
)

// conversations determines which session a message belongs to, by where it was said.
type conversations struct {
	foundation
	liveChannels liveChannels
	events       *events.Channel
	answersHere  bool // whether agents of this process answer
}

// router returns the router that decides which sessions a channel's messages belong to.
func (c *conversations) router(l *liveChannel) *routing.Router {
	return &routing.Router{
		Agent: l.config.Agent, Scope: l.config.Session, Prefix: channels.CommandPrefix(l.channel), Book: c.home.Book, Store: c.home.Store, MaySplitByPerson: c.home.MaySplitByPerson, Log: c.log,
		Routes: func() []routing.Route {
			var routes []routing.Route
			for _, r := range c.settings.Load().Channels[l.name].Routes {
				routes = append(routes, routing.Route{Chat: r.Chat, User: r.User, Mention: r.Mention, Agent: r.Agent})
			}
			return routes
		},
	}
}

// sessionOf returns the session that a message belongs to, or "" if this process doesn't have its channel.
func (c *conversations) sessionOf(ctx context.Context, in bus.Inbound) (string, error) {
	i := slices.IndexFunc(c.liveChannels, func(l *liveChannel) bool { return l.name == in.At.Channel })
	if i < 0 {
		return "", nil
	}
	to, err := c.router(c.liveChannels[i]).Route(ctx, in)
	return to.Session, err
}

// replySession returns the session that a reply at an address would belong to; "" if no agent
// listens there, or if that depends on who replies.
func (c *conversations) replySession(ctx context.Context, at bus.Address) (session string, err error) {
	if !c.answersHere && c.settings.Load().Bus.URL == "" { // in a fleet the workers have the model
		return "", nil
	}
	if at.Channel == events.Name {
		session, _ = c.events.Session(at) // an address that no webhook has
		return session, nil
	}
	if at.Channel == heartbeat.Name {
		session, _ = heartbeat.Session(at)
		return session, nil
	}
	for _, l := range c.liveChannels {
		if l.name != at.Channel || !l.receive && l.config.Platform != "" {
			continue
		}
		return c.router(l).ReplySession(ctx, at)
	}
	return "", nil
}

// eventSession returns the session in which an agent answers what was posted to the webhook at
// this address; false if the address is not a webhook's.
func (c *conversations) eventSession(at bus.Address) (string, bool) {
	if at.Channel != events.Name {
		return "", false
	}
	key, err := c.events.Session(at)
	return key, err == nil
}
