package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"parley/agent/metrics"
	"parley/channels"
	"parley/channels/connections"
	"parley/channels/console"
	"parley/channels/dispatch"
	"parley/channels/gateway"
	"parley/channels/heartbeat"
	"parley/channels/web"
	"parley/channels/webhook/events"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/platforms"
)

// A liveChannel is one configured channel in this process: its adapter, its settings, its state,
// and the gate that decides who may talk to the bot there.
type liveChannel struct {
	name        string
	channel     channels.Channel
	gate        *gateway.Gate
	receive     bool // whether it receives; otherwise it only sends
	config      config.Channel
	held        atomic.Bool                         // whether this process receives for it
	refused     atomic.Bool                         // whether its platform refuses the account
	lastWarning *atomic.Pointer[string]             // the latest warning or error about it
	traffic     connections.Traffic                 // when this process last received or sent a message there
	dispatcher  atomic.Pointer[dispatch.Dispatcher] // nil until it is made
}

// liveChannels are all channels in this process.
type liveChannels []*liveChannel

// openLiveChannels makes the configured channels; none for the role Reader. The book b, in which
// they store what they must remember, need not be open yet. In a single command, channels only
// send: the command sends what its user wants sent, and leaves receiving to "parley serve".
func openLiveChannels(as Config, b platforms.Book) (liveChannels, error) {
	if as.Role == Reader {
		return nil, nil
	}
	var opened liveChannels
	cfg, log := as.Settings, as.Log
	for _, c := range cfg.ChannelsByName() {
		trouble := &atomic.Pointer[string]{}
		gate := &gateway.Gate{}
		gate.Set(accessOf(c))
		ch, err := platforms.Open(c, platforms.AdapterParts{Book: b, Mention: gate.Mention, Log: platforms.RecordWarnings(log, trouble)})
		if err != nil {
			key, wrong := platforms.SettingAtFault(c.Name, err)
			return nil, &config.SettingError{Where: cfg.Origin(key), Key: key, Remedy: wrong}
		}
		if err := gateway.CheckAccess(ch, accessOf(c)); err != nil && c.Mode == "chat" {
			key := "channels." + c.Name + ".access"
			return nil, &config.SettingError{Where: cfg.Origin(key), Key: key, Remedy: err.Error()}
		}
		opened = append(opened, &liveChannel{name: c.Name, channel: ch, gate: gate, receive: c.Mode == "chat" && as.Role.Serves(), config: c, lastWarning: trouble})
	}
	return opened, nil
}

// platformless returns the channels without a platform: those for terminals, for programs that talk
// to the agent, for webhooks that post events to it, and for the heartbeat.
func platformless(on foundation, posted *events.Channel, beat *heartbeat.Service) liveChannels {
	var all liveChannels
	add := func(name string, channel channels.Channel) {
		l := &liveChannel{name: name, channel: channel, gate: &gateway.Gate{}, lastWarning: &atomic.Pointer[string]{}}
		l.config.Name, l.config.Agent = name, config.MainAgent
		all = append(all, l)
	}
	for _, name := range []string{console.Name, web.Name} {
		add(name, web.New(on.home.Bus, config.MainAgent))
	}
	add(events.Name, posted)
	add(heartbeat.Name, beat)
	return all
}

// Reload implements reloader: applying it makes the gates admit the people in the next settings.
func (all liveChannels) Reload(next *config.Config) (apply func(), err error) {
	return func() {
		for _, l := range all {
			l.gate.Set(accessOf(next.Channels[l.name]))
		}
	}, nil
}

// accessOf returns a channel's settings that say who may talk to the bot.
func accessOf(c config.Channel) gateway.Access {
	a := gateway.Access{
		Policy: c.Access.Policy, AllowFrom: c.Access.AllowFrom, Owners: c.Access.Owners, Approvers: c.Access.Approvers,
		Mention: channels.Mention(c.Access.Mention),
	}
	for _, chat := range c.Access.Chats {
		a.Chats = append(a.Chats, gateway.ListenedGroup{ID: chat.Chat, Mention: channels.Mention(chat.Mention)})
	}
	return a
}

// receivers returns the handlers for the platforms' HTTP requests, by channel. A process without
// the role of a gateway has none.
func (all liveChannels) receivers(r Role) map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for _, l := range all {
		if h, ok := channels.AsHTTPReceiver(l.channel); ok && l.receive && r.Receives() {
			handlers[l.name] = h
		}
	}
	return handlers
}

// each calls run for all channels at the same time, and returns when all calls have returned. If
// one fails, it cancels the others.
func (all liveChannels) each(ctx context.Context, run func(context.Context, *liveChannel) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	errs := make([]error, len(all))
	for i, l := range all {
		running.Go(func() {
			if errs[i] = run(ctx, l); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// named returns the channel with that name; nil if there is none.
func (all liveChannels) named(name string) *liveChannel {
	for _, l := range all {
		if l.name == name {
			return l
		}
	}
	return nil
}

// prefix returns the prefix of commands on a channel; "/" if this process doesn't have the channel.
func (all liveChannels) prefix(channel string) string {
	if l := all.named(channel); l != nil {
		return channels.CommandPrefix(l.channel)
	}
	return "/"
}

// hasButtons reports whether people on a channel can press buttons.
func (all liveChannels) hasButtons(channel string) bool {
	l := all.named(channel)
	if l == nil {
		return false
	}
	_, can := channels.AsButtonShower(l.channel)
	return can
}

// ofPlatforms returns the names of the channels that messages may be sent to: those on a chat
// platform.
func (all liveChannels) ofPlatforms() []string {
	var names []string
	for _, l := range all {
		if l.config.Platform != "" {
			names = append(names, l.name)
		}
	}
	return names
}

// isPlatform reports whether a channel is on a chat platform.
func (all liveChannels) isPlatform(channel string) bool {
	return slices.Contains(all.ofPlatforms(), channel)
}

// states returns, for each channel with a platform, by name, whether it is connected; see isConnected.
func (all liveChannels) states() map[string]bool {
	up := map[string]bool{}
	for _, l := range all {
		if l.config.Platform != "" {
			up[l.name] = l.isConnected()
		}
	}
	return up
}

// Gauges implements measured.
func (all liveChannels) Gauges() []metrics.Gauge {
	return []metrics.Gauge{{Name: "channel_up", Help: textChannelConnected, Label: "channel", Values: func() map[string]float64 {
		return metrics.UpValues(all.states())
	}}}
}

// Ready implements checked: a process is ready when its channels are connected.
func (all liveChannels) Ready(context.Context) map[string]error {
	found := map[string]error{}
	for name, up := range all.states() {
		found["channel "+name] = nil
		if !up {
			found["channel "+name] = errors.New("not connected")
		}
	}
	return found
}

// isOurs reports whether this process receives for a channel, or would receive if the platform didn't refuse the
// bot's account.
func (l *liveChannel) isOurs() bool { return l.held.Load() || l.refused.Load() }

// isConnected reports whether a channel is connected to its platform. A channel that cannot tell counts as connected,
// unless the platform refuses the bot's account.
func (l *liveChannel) isConnected() bool { return !l.refused.Load() && channels.Connected(l.channel) }

// lastWarning returns the latest warning or error about a channel, which probably says why the channel is not
// connected; "" if there was none.
func (all liveChannels) lastWarning(channel string) string {
	if l := all.named(channel); l != nil {
		if said := l.lastWarning.Load(); said != nil {
			return *said
		}
	}
	return ""
}
