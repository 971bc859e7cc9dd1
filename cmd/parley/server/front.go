package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/blocks"
	"parley/agent/metrics"
	"parley/agent/schedules"
	"parley/bus"
	"parley/bus/trace"
	"parley/channels/asks"
	"parley/channels/outbox"
	"parley/channels/web"
	"parley/cmd/parley/api"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/api/ongoing"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/sessions"
)

// front serves programs and terminals: over the HTTP server and the home's socket.
type front struct {
	foundation
	liveChannels  liveChannels
	conversations *conversations
	webhooks      *webhooks
	asks          *asks.Service
	chains        *modelChains
	costs         *costs
	audit         *auditing
	schedules     *schedules.Scheduler
	checks        []checked
	partRoutes    []exchange.Route // the routes of other parts
	fleet         *fleetMetrics
	hidden        *secrets
	subscribing   subscribing
	stopJob       func(context.Context, sessions.Job) error
	// offer shows the operator a text, which only they see if atTerminal is set.
	offer      func(text string)
	atTerminal bool

	token        string       // the token of the home's owner
	ownerMark    string       // see [api.Access]
	socket, port net.Listener // port is nil if no port is open
	// These are the APIs for requests through the home's socket and over the network; nil while they are not running.
	local, network atomic.Pointer[api.API]
}

// newFront returns the part that serves programs, and makes the metrics ask the parts for their figures.
func newFront(on foundation, c *chatSide, planning *schedules.Scheduler, hidden *secrets) *front {
	fleet := &fleetMetrics{foundation: on}
	on.metrics.LookUp(metrics.Sources{
		Fleet: fleet.shared(), Channels: c.liveChannels.ofPlatforms, Dropped: on.home.Bus.Dropped, LostWrites: on.home.LostWrites,
	})
	return &front{
		foundation: on, liveChannels: c.liveChannels, conversations: c.conversations, asks: c.asks, chains: c.chains, costs: c.costs,
		audit: c.audit, schedules: planning, fleet: fleet, hidden: hidden, subscribing: newSubscribing(on, hidden),
		webhooks: &webhooks{foundation: on, events: c.events, outbox: &outbox.Outbox{
			Bus: on.home.Bus, Book: on.home.Book, DeadLetters: on.home.Bus,
			Channels: c.liveChannels.ofPlatforms, Targets: func() map[string][]bus.Address { return on.settings.Load().Targets },
		}},
	}
}

// meet implements host.
func (f *front) meet(all []part) {
	f.checks = having[checked](all)
	for _, r := range having[routed](all) {
		f.partRoutes = append(f.partRoutes, r.Routes()...)
	}
	for _, m := range having[measured](all) {
		f.metrics.Add(m.Gauges()...)
	}
}

// Load reads the token of the home's owner, and creates one if there is none. A Reader serves only the home's
// socket, where nobody needs the token, so it makes one up. In a fleet, Load also reads or makes the owner's mark.
func (f *front) Load(ctx context.Context) (err error) {
	if f.role == Reader {
		f.token = rand.Text() + rand.Text()
		return nil
	}
	if f.role.Serves() && f.settings.Load().Store.URL != "" {
		if f.ownerMark, err = f.home.Book.SetNoteOnce(ctx, ownerMarkSubject, api.OwnerName, rand.Text()); err != nil {
			return err
		}
	}
	f.token, err = f.home.Token()
	return err
}

// ownerMarkSubject is the subject of the note that stores what api.Access.OwnerMark is in all processes of a fleet.
const ownerMarkSubject = "owner_mark"

// recheck ends the streams of callers who are no longer allowed to watch, on both APIs of this process.
func (f *front) recheck() {
	for _, a := range []*api.API{f.local.Load(), f.network.Load()} {
		if a != nil {
			a.Recheck()
		}
	}
}

// Clear implements forgetter: it removes what both APIs of this process remember of sessions.
func (f *front) Clear() {
	for _, a := range []*api.API{f.local.Load(), f.network.Load()} {
		if a != nil {
			a.Clear()
		}
	}
}

// Reload ends the streams of callers who are no longer allowed to watch, once the next settings are the current
// ones.
func (f *front) Reload(*config.Config) (apply func(), err error) {
	return func() {
		f.recheck()
	}, nil
}

// address returns where HTTP listens; "" for nowhere. chosen is the value from the command line, nil if there is
// none.
func (f *front) address(chosen *string) (string, error) {
	if chosen == nil {
		if f.role.Receives() {
			return f.settings.Load().HTTP.Listen, nil
		}
		return "", nil // a process that is only a worker listens only if it is told to
	}
	for _, l := range f.liveChannels {
		if *chosen == "" && l.receive && f.role.Receives() && l.config.ByHTTP() {
			return "", fmt.Errorf("the requests from %s have nowhere to go: [channels.%[1]s] receive is \"http\", and --listen turns HTTP off: leave --listen out", l.name)
		}
	}
	return *chosen, nil
}

// listen opens the home's socket, and the HTTP port if address is not empty. Run serves them.
func (f *front) listen(address string) (err error) {
	if f.socket, err = home.ListenSocket(f.home.Dir, f.log); err != nil {
		return err
	}
	if address == "" {
		return nil
	}
	var lc net.ListenConfig
	f.port, err = lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return errors.Join(home.CannotListen(f.settings.Load(), err), f.socket.Close())
	}
	return nil
}

// Run serves what listen has opened until ctx is done.
func (f *front) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	errs := make([]error, 2)
	f.local.Store(f.newAPI(true))
	serving.Go(func() { errs[0] = f.local.Load().Serve(ctx, f.socket) })
	if f.port != nil {
		open := f.newAPI(false)
		f.network.Store(open)
		serving.Go(func() { errs[1] = open.Serve(ctx, f.port) })
		serving.Go(func() { f.fleet.Run(ctx) })
		serving.Go(func() { f.showPage(ctx) })
	}
	serving.Wait()
	return errors.Join(errs...)
}

// newAPI returns the API: for the home's socket if local is true, otherwise for the network.
func (f *front) newAPI(local bool) *api.API {
	return api.New(api.Config{
		Outbox: f.webhooks.outbox, Sessions: f.home.Store, Words: f.liveChannels.linked(f.foundation), Activity: f.home.Store.Activity(), Redact: func() blocks.Redactor { return f.hidden.Load() }, Events: f.home.Bus, Mail: f.subscribing.Letters(), People: f.home.Book, Links: f.home.Book, Further: f.partRoutes, Files: f.home.WorkspaceFiles, Canvas: canvasReader(f.foundation),
		Asks: api.Asks{Open: f.home.Book.OpenAsks, Lookup: f.home.Book.LookupAsk, Answer: f.asks.Answer}, Jobs: ongoing.Jobs{Kept: f.home.Store, Stop: f.stopJob}, Tasks: ongoing.Tasks{Kept: f.home.Store.SubAgents(), Turns: f.home.Store},
		Schedules: api.Schedules{Kept: f.home.Store.Schedules(), Maker: f.schedules, Runs: f.home.Store.ScheduleRuns},
		Access:    api.Access{Local: local, Owner: f.token, Tokens: f.tokens, Hosts: f.hosts, Public: f.publicHosts, Encrypted: f.encryptedHosts, SignIns: f.home.Book, OwnerMark: f.ownerMark},
		Agent:     api.Agent{Name: config.MainAgent, Models: f.chains.answering, Say: f.publishUserMessage, Keep: f.keepUploads, Event: f.conversations.eventSession}, Channels: f.configuredChannels,
		Health: api.Health{
			Version: f.version, Role: string(f.role), Started: f.started, Ready: f.ready, Channels: f.liveChannels.states, Trouble: f.liveChannels.lastWarning, Facts: f.channelFacts,
			Tools: f.toolCounts, LeftTools: f.chains.leftTools, Subscriptions: f.home.Store.Subscriptions(),
			Work:  api.Work{Turns: f.home.Store, Jobs: f.home.Store, Asks: f.home.Book.OldestAsks, Schedules: f.home.Store.Schedules().NextDue},
			Fleet: f.processes(),
		},
		Metrics: f.metrics.Handler(), Usage: api.Usage{Sums: f.home.Store.Bill().Usage, Caps: f.costs.CapStates, Prices: f.costs.Prices}, Audit: f.audit.forAPI(), ServerLog: f.recent,
		Pages: f.pages, Recheck: f.recheck,
		Webhooks: f.webhooks.handlers, Receivers: func() map[string]http.Handler { return f.liveChannels.receivers(f.role) }, Log: f.log,
	})
}

// ready checks whether this process is ready to serve.
func (f *front) ready(ctx context.Context) map[string]error {
	all := map[string]error{}
	for _, c := range f.checks {
		maps.Copy(all, c.Ready(ctx))
	}
	return all
}

// tokens returns the configured tokens of programs, as the API checks them.
func (f *front) tokens() []api.Token {
	var list []api.Token
	for _, t := range f.settings.Load().Tokens {
		list = append(list, api.Token{Name: t.Name, Secret: string(t.Token), May: t.May})
	}
	return list
}

// publicHosts returns the host names by which platforms, and the browsers of people who sign in to an MCP server,
// reach this server.
func (f *front) publicHosts() []string {
	var names []string
	if u, err := url.Parse(f.settings.Load().HTTP.PublicURL); err == nil && u.Host != "" {
		names = append(names, u.Host)
	}
	for _, l := range f.liveChannels {
		if u, err := url.Parse(l.config.PublicURL); err == nil && l.config.ByHTTP() {
			names = append(names, u.Host)
		}
	}
	return names
}

// configuredChannels returns the names of all channels in the configuration, even if this process has connected
// none, for example with the role Reader.
func (f *front) configuredChannels() []string {
	return slices.Sorted(maps.Keys(f.settings.Load().Channels))
}

// toolCounts returns how often each tool was called, and how often it failed, in this process.
func (f *front) toolCounts() []api.ToolCount {
	list := []api.ToolCount{}
	for _, t := range f.metrics.Tools() {
		list = append(list, api.ToolCount(t))
	}
	return list
}

// publishUserMessage publishes a message that a program sends to the agent over HTTP.
func (f *front) publishUserMessage(ctx context.Context, session string, in bus.Inbound) error {
	if trace.IsOn(f.traces) {
		in.Received = time.Now().UTC()
	}
	if err := web.New(f.home.Bus, config.MainAgent).Say(ctx, session, in); err != nil {
		return err
	}
	if !in.Received.IsZero() {
		f.traces.Record(trace.Received(in, session, time.Now()))
	}
	return nil
}
