package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"parley/bus"
	"parley/channels/web"
	"parley/cmd/parley/api"
	"parley/cmd/parley/backup"
	"parley/cmd/parley/config"
	"parley/cmd/parley/erase"
	"parley/cmd/parley/home"
	"parley/cmd/parley/outbox"
	"parley/cmd/parley/undo"
	"parley/cmd/parley/webhook"
)

// An httpAccess serves programs and terminals: by the HTTP server and by the home's
// socket.
type httpAccess struct {
	*Server
	outbox     *outbox.Outbox
	hooks      atomic.Pointer[map[string]*webhook.Handler]
	networkAPI atomic.Pointer[api.API] // the API for requests over the network; nil while it does not run
	token      string
}

// newHTTPAccess makes what serves HTTP. The server's channels must have been made before.
func (s *Server) newHTTPAccess() (*httpAccess, error) {
	token := rand.Text() + rand.Text() // a Reader serves its socket alone, so its token need not be kept
	if s.role != Reader {
		var err error
		if token, err = s.home.Token(); err != nil {
			return nil, err
		}
	}
	f := &httpAccess{Server: s, token: token}
	f.outbox = &outbox.Outbox{
		Bus: s.home.Bus, Book: s.home.Book, Dead: s.home.Bus,
		Channels: s.platformChannels, Targets: func() map[string][]bus.Address { return s.settings.Load().Targets },
	}
	f.setHooks()
	return f, nil
}

// setHooks makes the webhooks by the settings in force. A webhook that existed before still knows
// what it has sent already.
func (f *httpAccess) setHooks() {
	hooks := map[string]*webhook.Handler{}
	for name, w := range f.settings.Load().Webhooks {
		var routes []webhook.Route
		for _, r := range w.Routes {
			routes = append(routes, webhook.Route{Match: r.Match, To: r.To})
		}
		prepare := webhook.New
		if old := f.webhook(name); old != nil {
			prepare = old.With
		}
		c := webhook.Config{
			Name: name, Kind: w.Kind, Token: string(w.Token), Secret: string(w.Secret), Routes: routes, To: w.To,
			Template: w.Template, Group: w.Group, Outbox: f.outbox, Log: f.log, Point: f.point,
		}
		if w.Agent != "" {
			c.Agent, c.Resolve = f.events, f.outbox.Resolve
		}
		h, err := prepare(c)
		if err != nil { // the configuration was checked
			f.log.Error("webhook cannot be served", slog.String("webhook", name), slog.Any("error", err))
			continue
		}
		hooks[name] = h
	}
	f.hooks.Store(&hooks)
}

// applySettings applies new settings to webhooks, and ends the streams of callers who may
// not watch any more.
func (f *httpAccess) applySettings() {
	f.setHooks()
	if open := f.networkAPI.Load(); open != nil {
		open.Recheck()
	}
}

// webhook returns a webhook in force by its name; nil if there is none.
func (f *httpAccess) webhook(name string) *webhook.Handler {
	if hooks := f.hooks.Load(); hooks != nil {
		return (*hooks)[name]
	}
	return nil
}

// webhooks returns the handlers of the webhooks in force by name.
func (f *httpAccess) webhooks() map[string]http.Handler {
	all := map[string]http.Handler{}
	for name, h := range *f.hooks.Load() {
		all[name] = h
	}
	return all
}

// newAPI makes the API: if local is true for the home's socket, otherwise for the network.
func (f *httpAccess) newAPI(local bool) *api.API {
	s := f.Server
	agent := api.Agent{Name: config.MainAgent, Models: s.answeringAgents, Say: s.publishUserMessage, Event: s.eventSession}
	return api.New(api.Config{
		Outbox: f.outbox, Sessions: s.home.Store, Events: s.home.Bus, Mail: s.home.Bus, People: s.home.Book, Forget: s.eraser(),
		MCP:  s.mcp,
		Asks: api.Asks{Open: s.home.Book.OpenAsks, Lookup: s.home.Book.LookupAsk, Answer: s.asks.Answer}, Schedules: s.home.Store.Schedules(),
		Access: api.Access{Local: local, Owner: f.token, Tokens: s.tokens, Hosts: func() []string { return s.settings.Load().HTTP.Hosts }, Public: s.publicHosts},
		Agent:  agent, Channels: s.configuredChannels,
		Health:  api.Health{Version: s.version, Role: string(s.role), Started: s.started, Ready: s.checkReady, Channels: s.connectionStates, Trouble: s.lastWarning, Tools: s.toolCounts},
		Metrics: s.metrics.Handler(), Usage: api.Usage{Sums: s.home.Store.Bill().Usage, Prices: s.billing.Prices}, Audit: s.auditAccess(), Webhooks: f.webhooks, Receivers: s.receivers, Log: s.log,
	})
}

// eraser returns what erases the words of people from everywhere: the home, the servers that are
// used in its place, and this process's memory.
func (s *Server) eraser() *erase.Eraser {
	return erase.New(erase.Config{
		Bus: s.home.Bus, Store: s.home.Store, Book: s.home.Book, Workspaces: undo.Dirs{Workspaces: s.home.Workspaces, Store: s.home.Snapshots},
		Files: undo.Files{Files: s.outgoing(), Store: s.home.Snapshots}, Audit: s.auditFiles(), Rewriter: s.rewriter, Before: s.home.RemoveBefore, Memory: s.clearMemory, SubAgents: s.handover.SessionsFor, Kept: s.beyondErasing(), Log: s.log,
	})
}

// clearMemory forgets what this process remembers of conversations and people.
func (s *Server) clearMemory() {
	s.warm.Clear()
	s.prompts.Clear()
	s.memories.Clear()
}

// beyondErasing returns the data that no erasure reaches, such as backups, and for each what the
// operator can do about it.
func (s *Server) beyondErasing() []erase.NotErased {
	var kept []erase.NotErased
	asides, err := backup.OldDataDirs(s.home.Dir)
	if err != nil {
		s.log.Warn("old homes cannot be looked for", slog.Any("error", err))
	}
	for _, dir := range asides {
		kept = append(kept, erase.NotErased{What: dir, Why: "a restore has put it aside; delete it by hand"})
	}
	if c := s.settings.Load(); c.Store.URL != "" {
		if c.Audit.File != "" {
			kept = append(kept, erase.NotErased{What: "the audit's files of other processes", Why: "each process has its own; forget there too"})
		}
		kept = append(kept, erase.NotErased{What: "the database server's own files and logs, and Redis's", Why: "they are the operator's to keep or to turn over"})
	}
	return kept
}

// answeringAgents returns all agents by name, and for each whether a model is configured that
// answers for it.
func (s *Server) answeringAgents() map[string]bool {
	all := map[string]bool{}
	for name := range s.settings.Load().Agents {
		all[name] = s.models[name] != nil
	}
	return all
}

func (s *Server) tokens() []api.Token {
	var list []api.Token
	for _, t := range s.settings.Load().Tokens {
		list = append(list, api.Token{Name: t.Name, Secret: string(t.Token), May: t.May})
	}
	return list
}

// publishUserMessage publishes a message that a program sends to the agent over HTTP.
func (s *Server) publishUserMessage(ctx context.Context, session string, in bus.Inbound) error {
	return web.New(s.home.Bus).Say(ctx, session, in)
}

// listen opens the home's socket, and the HTTP port if address is not empty.
func (f *httpAccess) listen(address string) (socket, port net.Listener, err error) {
	if socket, err = home.ListenSocket(f.home.Dir, f.log); err != nil {
		return nil, nil, err
	}
	if address == "" {
		return socket, nil, nil
	}
	var lc net.ListenConfig
	port, err = lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, nil, errors.Join(&config.SettingError{
			Where: f.settings.Load().Origin("http.listen"), Key: "http.listen",
			Remedy: fmt.Sprintf("cannot listen there (%v): set another address, or \"\" for none", err),
		}, socket.Close())
	}
	return socket, port, nil
}

// serve answers on both listeners until ctx is done; port may be nil.
func (f *httpAccess) serve(ctx context.Context, socket, port net.Listener) error {
	var serving sync.WaitGroup
	errs := make([]error, 2)
	serving.Go(func() { errs[0] = f.newAPI(true).Serve(ctx, socket) })
	if port != nil {
		open := f.newAPI(false)
		f.networkAPI.Store(open)
		serving.Go(func() { errs[1] = open.Serve(ctx, port) })
		serving.Go(func() { f.includeFleetMetrics(ctx) })
	}
	serving.Wait()
	return errors.Join(errs...)
}
