package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/channels"
	"parley/channels/dispatch"
	"parley/channels/gateway"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
	"parley/cmd/parley/metrics"
	"parley/sessions"
	"parley/tools"
)

// The roles of a process. One alone has them all; in a fleet they may be parted.
const (
	roleGateway = "gateway" // holds platform connections, dispatches, serves HTTP
	roleWorker  = "worker"  // leases sessions and runs turns
)

// A server is everything wired together: one home, one worker, and the channels.
type server struct {
	home     *home.Home
	log      *slog.Logger
	settings atomic.Pointer[config.Config] // replaced by SIGHUP
	model    llm.Model                     // nil: nobody answers
	tools    *tools.Set
	channels []*endpoint
	metrics  *metrics.Metrics
	roles    map[string]bool
	started  time.Time
	point    func(string) // kill points, in chaos builds alone

	readiness readiness
	tells     atomic.Bool // what the whole fleet shares, in its metrics

	lastPrompt atomic.Pointer[string]
	grants     sync.Map // of tool sets, by capabilities
}

// An endpoint is one channel with what stands before and behind it.
type endpoint struct {
	name    string
	channel channels.Channel
	gate    *gateway.Gate
	receive bool // else it only sends
	config  config.Channel
	down    atomic.Bool             // its platform refuses the account
	trouble *atomic.Pointer[string] // what its adapter last warned of
}

// newServer wires a server over an open home, with the channels of lines and
// those that have no platform.
func newServer(h *home.Home, c *config.Config, model llm.Model, lines []*endpoint, log *slog.Logger) *server {
	s := &server{
		home: h, log: log, model: model, started: time.Now(), point: killPoint(),
		roles: map[string]bool{roleGateway: true, roleWorker: true},
	}
	s.settings.Store(c)
	s.channels = append(lines, s.streamOnlyEndpoints()...)
	s.tools = s.newTools()
	s.metrics = metrics.New(metrics.Config{
		Build: metrics.Build(thisBuild()), Fleet: metrics.Fleet{Holder: s.tells.Load, Bus: h.Bus, Book: h.Book},
		Channels: s.connected, Dropped: h.Bus.Dropped, Log: log,
	})
	return s
}

// stages are what a server runs, in the order in which it is shut down: it
// takes no more in, ends the turns in flight, and sends what they said.
func (s *server) stages(front func(context.Context) error) []func(context.Context) error {
	var all []func(context.Context) error
	if front != nil {
		all = append(all, front)
	}
	if s.roles[roleGateway] {
		all = append(all, s.receive)
	}
	if s.roles[roleWorker] && s.model != nil {
		all = append(all, s.work)
	}
	if s.roles[roleGateway] {
		all = append(all, s.dispatch)
	}
	if days := s.settings.Load().Retention.Days; days > 0 {
		all = append(all, func(ctx context.Context) error { return s.eraser().Run(ctx, s.home.Bus, days) })
	}
	return all
}

// run works until ctx is done and then shuts the stages down one after the
// other. It closes nothing: that is for the owner of the home. It returns early
// with the error of a stage that cannot go on.
func (s *server) run(ctx context.Context, stages ...func(context.Context) error) error {
	failed := make(chan error, len(stages))
	stops := make([]context.CancelFunc, len(stages))
	ended := make([]sync.WaitGroup, len(stages))
	for i, stage := range stages {
		sctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		stops[i] = stop
		ended[i].Go(func() {
			if err := stage(sctx); err != nil {
				failed <- err
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.log.Info("shutting down", slog.Duration("drain", s.settings.Load().Serve.Drain))
	for i := range stages {
		stops[i]()
		ended[i].Wait()
	}
	return err
}

// receive runs the gateways of the channels that receive, each in one process
// of the fleet.
func (s *server) receive(ctx context.Context) error {
	return side(ctx, s.channels, func(ctx context.Context, l *endpoint) error {
		if !l.receive {
			<-ctx.Done()
			return nil
		}
		gw := &gateway.Gateway{
			Name: l.name, Channel: l.channel, Bus: s.home.Bus, Events: s.home.Bus, Gate: l.gate, Route: s.route(l),
			Chats: s.home.Book, Pairings: s.home.Book, Log: s.log,
		}
		return s.persist(ctx, l, func(ctx context.Context) error { return s.connect(ctx, gw) })
	})
}

// connect runs a gateway while its name is held.
func (s *server) connect(ctx context.Context, gw *gateway.Gateway) error {
	for {
		held, release, err := s.home.Bus.Hold(ctx, "receive/"+gw.Name)
		if err != nil {
			return fmt.Errorf("hold the connection of %s: %w", gw.Name, err)
		}
		err = gw.Run(held)
		release()
		if err != nil || ctx.Err() != nil {
			return err
		}
		s.log.Warn("the connection was lost to another process and is waited for", slog.String("channel", gw.Name))
	}
}

// dispatch runs the dispatchers of all channels.
func (s *server) dispatch(ctx context.Context) error {
	return side(ctx, s.channels, func(ctx context.Context, l *endpoint) error {
		d := &dispatch.Dispatcher{
			Name: l.name, Channel: l.channel, Bus: s.home.Bus, Book: s.home.Book, Subjects: s.home.Book, Drafts: s.home.Book,
			Policy: dispatch.Policy{OnUnknown: l.config.OnUnknown, Drain: s.settings.Load().Serve.Drain},
			Notify: dispatch.TellSession(s.home.Bus), SessionAt: s.hears, Log: s.log, Observe: s.metrics.Send(l.name), Point: s.point,
		}
		return s.persist(ctx, l, d.Run)
	})
}

// work runs the worker.
func (s *server) work(ctx context.Context) error {
	c := s.settings.Load()
	return agent.New(agent.Config{
		Bus: s.home.Bus, Events: s.home.Bus, Store: s.home.Store, Budget: s.home.Store,
		Agents: s.agent, Limits: s.limits, Healthy: s.healthy, Prefix: s.commandPrefix,
		MaxInFlight: c.Serve.MaxInFlight, Drain: c.Serve.Drain, Log: s.log, Observer: s.metrics, Point: s.point,
	}).Run(ctx)
}

// side runs something for each line at the same time, and ends all when one fails.
func side(ctx context.Context, lines []*endpoint, run func(context.Context, *endpoint) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	errs := make([]error, len(lines))
	for i, l := range lines {
		running.Go(func() {
			if errs[i] = run(ctx, l); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// route gives a message its session: the channel's agent, and where it was said.
func (s *server) route(l *endpoint) func(bus.Inbound) (string, error) {
	return func(in bus.Inbound) (string, error) { return sessionKey(l.config.Agent, in.At) }
}

func sessionKey(agent string, at bus.Address) (string, error) {
	return sessions.Key(agent, at.Channel, at.Chat, at.Thread)
}

// healthy tells whether sessions have what they need: the store, and the files.
// It reads before it writes, because only the reading ends with ctx.
func (s *server) healthy(ctx context.Context) error {
	if _, err := s.home.Store.List(ctx, "", 1); err != nil {
		return err
	}
	if err := s.home.Store.Writable(ctx); err != nil {
		return err
	}
	if root := s.settings.Load().Workspace.Root; s.settings.Load().Store.URL != "" {
		_, err := os.Stat(root)
		return err
	}
	return nil
}

func (s *server) limits() agent.Limits {
	l := s.settings.Load().Limits
	return agent.Limits{Turns: l.UserTurns, TurnsHour: l.UserTurnsHour, TokensDay: l.UserTokensDay, MaxWaiting: l.Waiting}
}

// reload reads the configuration again and puts into force what can be changed
// while serving: who may talk, what may be messaged, and limits. A file that is
// wrong changes nothing.
func (s *server) reload(load func() (*config.Config, error), reloaded func()) {
	read, err := load()
	if err != nil {
		s.log.Error("the new configuration is not good; the old one stays in force", slog.Any("error", err))
		return
	}
	next, changes, err := config.Reload(s.settings.Load(), read)
	if err != nil {
		s.log.Error("the new configuration cannot be taken over; the old one stays in force", slog.Any("error", err))
		return
	}
	for _, l := range s.channels {
		l.gate.Set(accessOf(next.Channels[l.name]))
	}
	s.settings.Store(next)
	if reloaded != nil {
		reloaded()
	}
	s.log.Info("configuration read again", slog.Int("changed", len(changes.Live)), slog.Int("need_restart", len(changes.Restart)))
	for _, key := range changes.Restart {
		s.log.Warn("this setting takes effect at the next start", slog.String("key", key))
	}
}

func accessOf(c config.Channel) gateway.Access {
	return gateway.Access{Policy: c.Access.Policy, AllowFrom: c.Access.AllowFrom, Owners: c.Access.Owners}
}

// hasOwner tells whether somebody owns the bot on a channel.
func (s *server) hasOwner(ctx context.Context, l *endpoint) (bool, error) {
	if len(s.settings.Load().Channels[l.name].Access.Owners) > 0 {
		return true, nil
	}
	pairings, err := s.home.Book.Pairings(ctx)
	if err != nil {
		return false, fmt.Errorf("look for an owner: %w", err)
	}
	for _, p := range pairings {
		if p.Owner && channelOf(p.Person) == l.name {
			return true, nil
		}
	}
	return false, nil
}
