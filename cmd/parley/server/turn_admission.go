package server

import (
	"context"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/heartbeat"
	"parley/channels/web"
	"parley/channels/webhook/events"
	"parley/cmd/parley/api"
	"parley/cmd/parley/api/exchange"
)

// turnAdmission decides on whose behalf a turn may begin.
type turnAdmission struct {
	foundation
	liveChannels  liveChannels
	conversations *conversations
}

// admit reports whether a turn may begin now on somebody's behalf at an address although they say nothing, for
// example because a schedule of theirs is due, and returns the caller for whom it runs. The same rules apply as to
// their messages there. Webhooks and the heartbeat may begin turns only in their own sessions.
func (c *turnAdmission) admit(ctx context.Context, who bus.Person, at bus.Address) (bus.Caller, bool, error) {
	channel, user, _ := strings.Cut(who.ID, ":")
	switch channel {
	case console.Name:
		who.Owner = true
		return bus.Caller{Person: who, Private: true}, true, nil
	case web.Name:
		if user == api.OwnerName { // no token can have this name
			who.Owner = true
			return bus.Caller{Person: who, Private: true}, true, nil
		}
		token, ok := c.settings.Load().Tokens[user]
		return bus.Caller{Person: who, Private: true}, ok && exchange.Caller{Scopes: token.May}.MayTalkToAgent(), nil
	case events.Name, heartbeat.Name:
		session, err := c.conversations.replySession(ctx, at)
		return bus.Program(who.ID), session != "" && at.Channel == channel && at.Chat == user, err
	}
	i := slices.IndexFunc(c.liveChannels, func(l *liveChannel) bool { return l.name == channel && l.config.Platform != "" && l.receive })
	if i < 0 || at.Channel != channel {
		return bus.Caller{}, false, nil // the channel no longer receives, or is another channel now
	}
	l := c.liveChannels[i]
	_, private, err := c.home.Book.PrivateChatAt(ctx, at)
	if err != nil {
		return bus.Caller{}, false, err
	}
	if !private && l.gate.Mention(at.Chat) == channels.MentionNowhere {
		return bus.Caller{}, false, nil
	}
	judged, ok, err := l.gate.Judge(ctx, l.channel, c.home.Book, who)
	return bus.Caller{Person: judged, Private: private}, ok, err
}
