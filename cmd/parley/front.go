package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/gateway"
	"parley/channels/web"
	"parley/cmd/parley/api"
	"parley/cmd/parley/backup"
	"parley/cmd/parley/erase"
	"parley/cmd/parley/post"
	"parley/cmd/parley/webhook"
)

// A front is what programs and terminals reach: the HTTP server and the home's socket.
type front struct {
	*server
	office *post.Office
	hooks  atomic.Pointer[map[string]*webhook.Handler]
	open   atomic.Pointer[api.API] // the network's, while it is served
	token  string
}

// newFront makes the front of a server whose lines are set.
func (s *server) newFront() (*front, error) {
	token := rand.Text() + rand.Text() // a reader's is asked for over its socket alone
	if !s.roles[roleReader] {
		var err error
		if token, err = s.home.token(); err != nil {
			return nil, err
		}
	}
	f := &front{server: s, token: token}
	f.office = &post.Office{
		Bus: s.home.bus, Book: s.home.book, Dead: s.home.bus,
		Channels: s.platforms, Targets: func() map[string][]bus.Address { return s.settings.Load().Targets },
	}
	f.setHooks()
	return f, nil
}

// platforms names the channels that may be sent to.
func (s *server) platforms() []string {
	var names []string
	for _, l := range s.channels {
		if l.config.Platform != "" {
			names = append(names, l.name)
		}
	}
	return names
}

// setHooks makes the webhooks of the settings in force. Those that were there
// before remember what they have sent.
func (f *front) setHooks() {
	hooks := map[string]*webhook.Handler{}
	for name, w := range f.settings.Load().Webhooks {
		var routes []webhook.Route
		for _, r := range w.Routes {
			routes = append(routes, webhook.Route{Match: r.Match, To: r.To})
		}
		prepare := webhook.New
		if old := f.hook(name); old != nil {
			prepare = old.With
		}
		h, err := prepare(webhook.Config{
			Name: name, Kind: w.Kind, Token: string(w.Token), Secret: string(w.Secret), Routes: routes, To: w.To,
			Template: w.Template, Office: f.office, Log: f.log,
		})
		if err != nil { // the configuration was checked
			f.log.Error("webhook cannot be served", slog.String("webhook", name), slog.Any("error", err))
			continue
		}
		hooks[name] = h
	}
	f.hooks.Store(&hooks)
}

// reloaded puts into force what the new settings say of those who come in.
func (f *front) reloaded() {
	f.setHooks()
	if open := f.open.Load(); open != nil {
		open.Recheck()
	}
}

// hook is a webhook in force; nil if there is none of that name.
func (f *front) hook(name string) *webhook.Handler {
	if hooks := f.hooks.Load(); hooks != nil {
		return (*hooks)[name]
	}
	return nil
}

// webhooks are those in force.
func (f *front) webhooks() map[string]http.Handler {
	all := map[string]http.Handler{}
	for name, h := range *f.hooks.Load() {
		all[name] = h
	}
	return all
}

// api makes the API: for the network, or for the home's socket.
func (f *front) api(local bool) *api.API {
	s := f.server
	agent := api.Agent{Name: mainAgent}
	if s.model != nil {
		agent.Say = s.say
	}
	return api.New(api.Config{
		Office: f.office, Sessions: s.home.store, Events: s.home.bus, Mail: s.home.bus, People: s.home.book, Forget: s.eraser(),
		Access:  api.Access{Local: local, Owner: f.token, Tokens: s.tokens, Hosts: func() []string { return s.settings.Load().HTTP.Hosts }},
		Agent:   agent,
		Health:  api.Health{Version: thisBuild().Version, Role: s.role(), Started: s.started, Ready: s.ready, Channels: s.connected, Trouble: s.trouble},
		Metrics: s.metrics.Handler(), Webhooks: f.webhooks, Log: s.log,
	})
}

// eraser forgets what people said, here and wherever the home keeps it.
func (s *server) eraser() *erase.Eraser {
	return erase.New(erase.Config{
		Bus: s.home.bus, Store: s.home.store, Book: s.home.book, Workspaces: s.home.workspaces, Kept: s.beyondErasing(), Log: s.log,
	})
}

// beyondErasing is what no erasure reaches here.
func (s *server) beyondErasing() []erase.Kept {
	var kept []erase.Kept
	asides, err := backup.Asides(s.home.dir)
	if err != nil {
		s.log.Warn("old homes cannot be looked for", slog.Any("error", err))
	}
	for _, dir := range asides {
		kept = append(kept, erase.Kept{What: dir, Why: "a restore has put it aside; delete it by hand"})
	}
	if c := s.settings.Load(); c.Store.URL != "" {
		kept = append(kept, erase.Kept{What: "the database server's own files and logs, and Redis's", Why: "they are the operator's to keep or to turn over"})
	}
	return kept
}

func (s *server) tokens() []api.Token {
	var list []api.Token
	for _, t := range s.settings.Load().Tokens {
		list = append(list, api.Token{Name: t.Name, Secret: string(t.Token), May: t.May})
	}
	return list
}

// say publishes what somebody says to the agent over HTTP.
func (s *server) say(ctx context.Context, session string, in bus.Inbound) error {
	return web.New(s.home.bus).Say(ctx, session, in)
}

// connected tells which channels are in touch with their platforms, as far as
// they can tell.
func (s *server) connected() map[string]bool {
	up := map[string]bool{}
	for _, l := range s.channels {
		if l.config.Platform != "" {
			up[l.name] = !l.down.Load() && channels.Connected(l.channel)
		}
	}
	return up
}

// watchedLines are the channels without a platform: terminals, and programs
// that talk to the agent.
func (s *server) watchedLines() []*line {
	var lines []*line
	for _, name := range []string{console.Name, web.Name} {
		l := &line{name: name, channel: watched{name: name, agent: mainAgent, events: s.home.bus}, gate: &gateway.Gate{}, trouble: &atomic.Pointer[string]{}}
		l.config.Name, l.config.Agent = name, mainAgent
		lines = append(lines, l)
	}
	return lines
}

// listen opens the socket, and the HTTP port if address is not empty.
func (f *front) listen(address string) (socket, port net.Listener, err error) {
	if socket, err = listenSocket(f.home.dir, f.log); err != nil {
		return nil, nil, err
	}
	if address == "" {
		return socket, nil, nil
	}
	var lc net.ListenConfig
	port, err = lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, nil, errors.Join(&settingError{
			where: originOf(f.settings.Load(), "http.listen"), key: "http.listen",
			remedy: fmt.Sprintf("cannot listen there (%v): set another address, or \"\" for none", err),
		}, socket.Close())
	}
	return socket, port, nil
}

// serve answers on both listeners until ctx is done.
func (f *front) serve(ctx context.Context, socket, port net.Listener) error {
	var serving sync.WaitGroup
	errs := make([]error, 2)
	serving.Go(func() { errs[0] = f.api(true).Serve(ctx, socket) })
	if port != nil {
		open := f.api(false)
		f.open.Store(open)
		serving.Go(func() { errs[1] = open.Serve(ctx, port) })
		serving.Go(func() { f.tellFleet(ctx) })
	}
	serving.Wait()
	return errors.Join(errs...)
}

// role is what this process does.
func (s *server) role() string {
	roles := slices.Sorted(maps.Keys(s.roles))
	if len(roles) == 1 {
		return roles[0]
	}
	return "all"
}
