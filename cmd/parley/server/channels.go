package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/dispatch"
	"parley/channels/gateway"
	"parley/cmd/parley/config"
	"parley/cmd/parley/platforms"
	"parley/cmd/parley/routing"
	"parley/cmd/parley/welcome"
	"parley/sessions"
)

// An endpoint is one channel of this process: its adapter, its settings, its state, and the gate
// that decides who may talk to the bot there.
type endpoint struct {
	name        string
	channel     channels.Channel
	gate        *gateway.Gate
	receive     bool // whether it receives; else it only sends
	config      config.Channel
	held        atomic.Bool                         // whether this process, and no other, receives for it
	down        atomic.Bool                         // whether its platform refuses the account
	lastWarning *atomic.Pointer[string]             // the adapter's latest warning
	dispatcher  atomic.Pointer[dispatch.Dispatcher] // nil until it is made
}

// openEndpoints makes the channels that are configured; with the role Reader none. The book b, in
// which they store what they must remember, need not be open yet. The channels of a single command
// send only: the command sends what its person wants sent, while receiving is left to "parley serve".
func openEndpoints(as Config, b platforms.Book) ([]*endpoint, error) {
	if as.Role == Reader {
		return nil, nil
	}
	var opened []*endpoint
	cfg, log := as.Settings, as.Log
	for _, c := range cfg.ChannelsByName() {
		trouble := &atomic.Pointer[string]{}
		gate := &gateway.Gate{}
		gate.Set(accessOf(c))
		ch, err := platforms.Open(c, platforms.AdapterParts{Book: b, Mention: gate.Mention, Log: recordWarnings(log, trouble)})
		if err != nil {
			key, wrong := platforms.SettingAtFault(c.Name, err)
			return nil, &config.SettingError{Where: cfg.Origin(key), Key: key, Remedy: wrong}
		}
		if err := gateway.CheckAccess(ch, accessOf(c)); err != nil && c.Mode == "chat" {
			key := "channels." + c.Name + ".access"
			return nil, &config.SettingError{Where: cfg.Origin(key), Key: key, Remedy: err.Error()}
		}
		opened = append(opened, &endpoint{name: c.Name, channel: ch, gate: gate, receive: c.Mode == "chat" && as.Role.Serves(), config: c, lastWarning: trouble})
	}
	return opened, nil
}

// prefetch begins to ask the platforms for messages, while the home is being opened, where this
// process alone will receive for the bot. Nothing that arrives is confirmed before it is stored.
func prefetch(ctx context.Context, as Role, opened []*endpoint, asking *sync.WaitGroup) {
	for _, l := range opened {
		if p, ok := channels.AsPrefetcher(l.channel); ok && l.receive && as.Receives() {
			asking.Go(func() { p.Prefetch(ctx) })
		}
	}
}

// accessOf returns a channel's settings for who may talk to the bot.
func accessOf(c config.Channel) gateway.Access {
	a := gateway.Access{
		Policy: c.Access.Policy, AllowFrom: c.Access.AllowFrom, Owners: c.Access.Owners, Approvers: c.Access.Approvers,
		Mention: channels.Mention(c.Access.Mention),
	}
	for _, chat := range c.Access.Chats {
		a.Chats = append(a.Chats, gateway.Chat{ID: chat.Chat, Mention: channels.Mention(chat.Mention)})
	}
	return a
}

// runGateways runs, for each channel that receives, the gateway that publishes what people say.
// One process of the fleet does so for a channel; if the platform sends HTTP requests, every
// process does.
func (s *Server) runGateways(ctx context.Context) error {
	return forEach(ctx, s.channels, func(ctx context.Context, l *endpoint) error {
		if !l.receive {
			<-ctx.Done()
			return nil
		}
		router := s.router(l)
		gw := &gateway.Gateway{
			Name: l.name, Channel: l.channel, Bus: s.home.Bus, Events: s.home.Bus, Gate: l.gate, Route: router.Route,
			Chats: s.home.Book, Pairings: s.home.Book, WorksBeside: s.worksBeside, Knows: s.hasMessage, Whose: router.Whose, Log: s.log,
			Introduction: s.introduction(l), Notes: s.home.Book, About: s.capabilitiesText(l),
			History:      func() int { return s.settings.Load().Channels[l.name].History },
			AllReactions: func() bool { return s.settings.Load().Channels[l.name].Reactions == config.ReactionsAll },
			Ratings:      s.home.Book, Rated: s.metrics.RatingCounter(l.name), OwnData: s.handleOwnData,
			Owned: s.auditOwner,
		}
		if _, ok := channels.AsHTTPReceiver(l.channel); ok {
			return s.rerunAfterRefusal(ctx, l, gw.Run) // the platform's requests may reach any process
		}
		return s.rerunAfterRefusal(ctx, l, func(ctx context.Context) error { return s.receiveWhileHeld(ctx, l, gw) })
	})
}

// receivers returns the handlers of the platforms' HTTP requests by channel. A process without
// the role of a gateway has none.
func (s *Server) receivers() map[string]http.Handler {
	all := map[string]http.Handler{}
	for _, l := range s.channels {
		if h, ok := channels.AsHTTPReceiver(l.channel); ok && l.receive && s.role.Receives() {
			all[l.name] = h
		}
	}
	return all
}

// publicHosts returns the host names by which platforms, and the browsers of people who
// sign in to an MCP server, reach this server.
func (s *Server) publicHosts() []string {
	var names []string
	if u, err := url.Parse(s.settings.Load().HTTP.PublicURL); err == nil && u.Host != "" {
		names = append(names, u.Host)
	}
	for _, l := range s.channels {
		if u, err := url.Parse(l.config.PublicURL); err == nil && l.config.ByHTTP() {
			names = append(names, u.Host)
		}
	}
	return names
}

// capabilitiesText returns a function that tells the sender of a message what the agent of a
// session may do for them.
func (s *Server) capabilitiesText(l *endpoint) func(session string, opened bus.Inbound) string {
	return func(session string, opened bus.Inbound) string {
		return welcome.Text(welcome.Facts{
			Owner: opened.From.Owner, Approver: opened.From.Approver,
			Capabilities: s.capabilities(session), Prefix: channels.CommandPrefix(l.channel),
		})
	}
}

// hasMessage reports whether a session's log has the message with this id.
func (s *Server) hasMessage(ctx context.Context, session, message string) (bool, error) {
	_, err := s.home.Store.Find(ctx, session, message)
	if errors.Is(err, sessions.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// receiveWhileHeld runs a channel's gateway for as long as this process holds the channel's name
// on the bus, which only one process can do at a time.
func (s *Server) receiveWhileHeld(ctx context.Context, l *endpoint, gw *gateway.Gateway) error {
	return bus.WhileHeld(ctx, s.home.Bus, "receive/"+gw.Name, func(held context.Context) error {
		l.held.Store(true)
		defer l.held.Store(false)
		err := gw.Run(held)
		if err == nil && ctx.Err() == nil {
			s.log.Warn("the connection was lost to another process and is waited for", slog.String("channel", gw.Name))
		}
		return err
	})
}

// runDispatchers runs the dispatchers of all channels.
func (s *Server) runDispatchers(ctx context.Context) error {
	return forEach(ctx, s.channels, func(ctx context.Context, l *endpoint) error {
		d := &dispatch.Dispatcher{
			Name: l.name, Channel: l.channel, Bus: s.home.Bus, Book: s.home.Book, Subjects: s.home.Book, Drafts: s.home.Book,
			Files: s.outgoing(), MayShorten: s.mayShorten, MayGrow: s.mayGrow,
			Policy: dispatch.Policy{OnUnknown: l.config.OnUnknown, Stream: l.config.Stream, Drain: s.settings.Load().Serve.Drain},
			Notify: dispatch.TellSession(s.home.Bus), SessionAt: s.replySession, Log: s.log, Observe: s.metrics.Send(l.name), Point: s.point,
		}
		l.dispatcher.Store(d)
		return s.rerunAfterRefusal(ctx, l, d.Run)
	})
}

// planReply plans the sending of an answer that is being published; see dispatch.Dispatcher.PlanReply.
func (s *Server) planReply(topic, id string, body []byte) (channels.Send, bool) {
	for _, l := range s.channels {
		if d := l.dispatcher.Load(); d != nil && topic == string(bus.OutboundTopic(l.name)) {
			return d.PlanReply(id, body)
		}
	}
	return channels.Send{}, false
}

// forEach calls run for all endpoints side by side, and returns when all calls have ended. If one
// fails, the others are ended.
func forEach(ctx context.Context, endpoints []*endpoint, run func(context.Context, *endpoint) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	errs := make([]error, len(endpoints))
	for i, l := range endpoints {
		running.Go(func() {
			if errs[i] = run(ctx, l); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// router returns what decides to which sessions a channel's messages belong.
func (s *Server) router(l *endpoint) *routing.Router {
	return &routing.Router{
		Agent: l.config.Agent, Scope: l.config.Session, Prefix: channels.CommandPrefix(l.channel), Book: s.home.Book, Store: s.home.Store, MayPart: s.home.MayPart, Log: s.log,
		Routes: func() []routing.Route {
			var routes []routing.Route
			for _, r := range s.settings.Load().Channels[l.name].Routes {
				routes = append(routes, routing.Route{Chat: r.Chat, User: r.User, Mention: r.Mention, Agent: r.Agent})
			}
			return routes
		},
	}
}

// warnOfScopeChange warns at the start if a channel's conversations are divided into
// sessions in another way than when it was served last. It delays nothing.
func (s *Server) warnOfScopeChange(ctx context.Context, l *endpoint) {
	const subject = "session_scope"
	was, err := s.home.Book.Noted(ctx, subject, l.name)
	if err == nil && was.Value != l.config.Session {
		if was.Value != "" || l.config.Session != config.SessionThread {
			s.log.Warn("conversations on this channel begin anew: what was said before stays in the sessions in which it was said",
				slog.String("key", "channels."+l.name+".session"), slog.String("was", cmp.Or(was.Value, config.SessionThread)), slog.String("is", l.config.Session))
		}
		err = s.home.Book.SetNote(ctx, subject, l.name, l.config.Session)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("it is not known whether conversations begin anew", slog.String("channel", l.name), slog.Any("error", err))
	}
}

// sessionKey returns the key of an agent's session at an address.
func sessionKey(agent string, at bus.Address) (string, error) {
	return sessions.Key(agent, at.Channel, at.Chat, at.Thread)
}

const (
	// startGrace is how long after the start a refused token of a channel that receives
	// ends the server. Later, or if the channel only sends, a refused token is an outage
	// of that channel alone.
	startGrace = time.Minute
	// refusedWait is how long the server waits before it tries a refused account again.
	refusedWait = time.Minute
)

// rerunAfterRefusal runs a channel's gateway or dispatcher until ctx is done, and runs it again
// after the platform has refused the bot's account, which while the server runs is no reason to
// end it.
func (s *Server) rerunAfterRefusal(ctx context.Context, l *endpoint, run func(context.Context) error) error {
	for {
		err := run(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		refused, ok := errors.AsType[*channels.SendError](err)
		if !ok || refused.Fault != channels.Stop {
			return err
		}
		if l.receive && time.Since(s.started) < startGrace {
			return s.refusedAccountError(l, refused)
		}
		s.log.Error("the platform refuses this account; trying again", slog.String("channel", l.name), slog.String("code", refused.Code),
			slog.String("key", platforms.RefusedSetting(l.name, refused)), slog.String("remedy", remedyOf(l.config.Platform, refused)), slog.Duration("wait", refusedWait))
		said := remedyOf(l.config.Platform, refused)
		l.lastWarning.Store(&said)
		l.down.Store(true)
		select {
		case <-time.After(refusedWait):
			l.down.Store(false)
		case <-ctx.Done():
			return nil
		}
	}
}

// probeEvery is the interval at which a platform that was not reached is tried again.
const probeEvery = 30 * time.Second

// probeAccount asks the platform of a channel that only sends for the bot's account: at
// the start, so that a refused token is reported before the first alert is sent, and
// again while the platform is not reached, since otherwise only a message would find out
// that it is back.
func (s *Server) probeAccount(ctx context.Context, l *endpoint) {
	for told := false; ; {
		if !told || !channels.Connected(l.channel) {
			_, err := platforms.Account(ctx, l.config.Platform, l.channel)
			refused, ok := errors.AsType[*channels.SendError](err)
			if ok && refused.Fault == channels.Stop && !told {
				s.log.Error("the platform refuses this account; the other channels go on", slog.String("channel", l.name),
					slog.String("code", refused.Code), slog.String("key", platforms.RefusedSetting(l.name, refused)))
			}
			if err != nil {
				said := err.Error()
				l.lastWarning.Store(&said)
			}
			told = true
		}
		select {
		case <-time.After(probeEvery):
		case <-ctx.Done():
			return
		}
	}
}

// refusedAccountError turns a platform's refusal of the bot's account into an error that names
// the setting to change.
func (s *Server) refusedAccountError(l *endpoint, refused *channels.SendError) error {
	key := platforms.RefusedSetting(l.name, refused)
	return &config.SettingError{Where: s.settings.Load().Origin(key), Key: key, Remedy: remedyOf(l.config.Platform, refused)}
}

// remedyOf says what the operator can do about a platform's refusal.
func remedyOf(platform string, refused *channels.SendError) string {
	return fmt.Sprintf("%s refuses this token (%s): %s", platform, refused.Code,
		platforms.RefusalRemedy(refused))
}

// commandPrefix returns what commands begin with on a channel.
func (s *Server) commandPrefix(channel string) string {
	for _, l := range s.channels {
		if l.name == channel {
			return channels.CommandPrefix(l.channel)
		}
	}
	return "/"
}

// platformChannels returns the names of the channels to which messages may be sent: those that
// are on a chat platform.
func (s *Server) platformChannels() []string {
	var names []string
	for _, l := range s.channels {
		if l.config.Platform != "" {
			names = append(names, l.name)
		}
	}
	return names
}

// configuredChannels returns the names of all channels in the configuration, also where this
// process has connected none, as with the role Reader.
func (s *Server) configuredChannels() []string {
	return slices.Sorted(maps.Keys(s.settings.Load().Channels))
}

// connectionStates returns for each channel with a platform, by name, whether it is connected. A
// channel that cannot tell counts as connected unless it has ended.
func (s *Server) connectionStates() map[string]bool {
	up := map[string]bool{}
	for _, l := range s.channels {
		if l.config.Platform != "" {
			up[l.name] = l.isConnected()
		}
	}
	return up
}

// isOurs reports whether this process knows how a channel does: it receives for the channel, or
// the platform refused the bot's account when it tried to.
func (l *endpoint) isOurs() bool { return l.held.Load() || l.down.Load() }

// isConnected reports whether a channel is connected to its platform, as far as it can
// tell.
func (l *endpoint) isConnected() bool { return !l.down.Load() && channels.Connected(l.channel) }
