package server

import (
	"cmp"
	"context"

	"parley/channels"
	"parley/channels/connections"
	"parley/cmd/parley/api"
)

// newChannelNews returns the part that tells watchers when a platform's channel goes up or down.
func newChannelNews(on foundation, all liveChannels) *connections.Watch {
	w := &connections.Watch{Events: on.home.Bus, Notes: on.home.Book, Record: on.home.Store.Subscriptions().RecordChannel, Log: on.log}
	for _, l := range all {
		if l.config.Platform != "" {
			w.Channels = append(w.Channels, connections.Channel{
				Name: l.name, Known: l.isKnownHere, Up: l.isConnected, Bot: func() string { return channels.BotName(l.channel) }, Traffic: &l.traffic,
			})
		}
	}
	return w
}

// isKnownHere reports whether this process knows the state of a channel: it receives for the channel, or any
// process can tell, because the channel receives by HTTP or only sends.
func (l *liveChannel) isKnownHere() bool {
	_, byHTTP := channels.AsHTTPReceiver(l.channel)
	return !l.receive || byHTTP || l.isOurs()
}

// channelFacts returns what the fleet knows about the channels.
func (f *front) channelFacts(ctx context.Context) (map[string]api.ChannelFacts, error) {
	noted, err := connections.Read(ctx, f.home.Book)
	if err != nil {
		return nil, err
	}
	all := map[string]api.ChannelFacts{}
	for _, l := range f.liveChannels {
		n := l.traffic.AddTo(noted[l.name])
		one := api.ChannelFacts{Platform: l.config.Platform, Bot: cmp.Or(channels.BotName(l.channel), n.Bot), Since: n.Since, LastIn: n.LastIn, LastOut: n.LastOut}
		if !l.isKnownHere() && !n.Since.IsZero() {
			one.Up = &n.Up
		}
		all[l.name] = one
	}
	return all, nil
}
