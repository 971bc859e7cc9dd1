package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent"
	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/config"
	"parley/sessions"
	"parley/tools"
)

// A server is everything wired together: one home, one worker, and the channels.
type server struct {
	home     *home
	log      *slog.Logger
	settings atomic.Pointer[config.Config] // replaced by SIGHUP
	model    agent.Model
	tools    *tools.Set
	channels []*line
	point    func(string) // kill points, in chaos builds alone
}

// A line is one channel with what stands before and behind it.
type line struct {
	name    string
	channel channels.Channel
	gate    *channels.Gate
	receive bool // else it only sends
	config  config.Channel
}

// newServer wires a server over an open home. Channels are added before run.
func newServer(h *home, c *config.Config, model agent.Model, log *slog.Logger) *server {
	s := &server{home: h, log: log, model: model, point: killPoint()}
	s.settings.Store(c)
	s.tools = s.newTools()
	return s
}

// run works until ctx is done and then shuts down in order: it takes no more
// in, ends the turns in flight, sends what they said, and closes nothing: that
// is the owner of the home's. It returns early with the error of a part that
// cannot go on.
func (s *server) run(ctx context.Context) error {
	failed := make(chan error, 2*len(s.channels)+1)
	stages := []func(context.Context) error{s.receive, s.work, s.dispatch}
	stops := make([]context.CancelFunc, len(stages))
	var ended []*sync.WaitGroup
	for i, stage := range stages {
		sctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		stops[i] = stop
		wg := &sync.WaitGroup{}
		ended = append(ended, wg)
		wg.Go(func() {
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

// receive runs the gateways of the channels that receive.
func (s *server) receive(ctx context.Context) error {
	return side(ctx, s.channels, func(ctx context.Context, l *line) error {
		if !l.receive {
			<-ctx.Done()
			return nil
		}
		gw := &channels.Gateway{
			Name: l.name, Channel: l.channel, Bus: s.home.bus, Gate: l.gate, Route: s.route(l),
			Chats: s.home.book, Pairings: s.home.book, Log: s.log,
		}
		return s.refused(l, gw.Run(ctx))
	})
}

// dispatch runs the dispatchers of all channels.
func (s *server) dispatch(ctx context.Context) error {
	return side(ctx, s.channels, func(ctx context.Context, l *line) error {
		d := &channels.Dispatcher{
			Name: l.name, Channel: l.channel, Bus: s.home.bus, Book: s.home.book,
			Delivery: channels.Delivery{OnUnknown: l.config.OnUnknown, Drain: s.settings.Load().Serve.Drain},
			Notify:   channels.TellSession(s.home.bus), Log: s.log, Point: s.point,
		}
		return s.refused(l, d.Run(ctx))
	})
}

// work runs the worker.
func (s *server) work(ctx context.Context) error {
	c := s.settings.Load()
	return agent.New(agent.Config{
		Bus: s.home.bus, Events: s.home.bus, Store: s.home.store, Budget: s.home.store,
		Agents: s.agent, Limits: s.limits,
		MaxInFlight: c.Serve.MaxInFlight, Drain: c.Serve.Drain, Log: s.log, Point: s.point,
	}).Run(ctx)
}

// side runs something for each line at the same time, and ends all when one fails.
func side(ctx context.Context, lines []*line, run func(context.Context, *line) error) error {
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

// refused makes of a platform's refusal an error that names the setting.
func (s *server) refused(l *line, err error) error {
	send, ok := errors.AsType[*channels.SendError](err)
	if !ok || send.Fault != channels.Stop {
		return err
	}
	key := "channels." + l.name + ".bot_token"
	return &settingError{
		where: originOf(s.settings.Load(), key), key: key,
		remedy: fmt.Sprintf("%s refuses this token (%s): set the one that the platform gave you", l.config.Platform, send.Code),
	}
}

// route gives a message its session: the channel's agent, and where it was said.
func (s *server) route(l *line) func(bus.Inbound) (string, error) {
	return func(in bus.Inbound) (string, error) {
		return sessions.Key(l.config.Agent, in.At.Channel, in.At.Chat, in.At.Thread)
	}
}

func (s *server) limits() agent.Limits {
	l := s.settings.Load().Limits
	return agent.Limits{Turns: l.UserTurns, TurnsHour: l.UserTurnsHour, TokensDay: l.UserTokensDay, MaxWaiting: l.Waiting}
}

// reload reads the configuration again and puts into force what can be changed
// while serving: who may talk, what may be messaged, and limits. A file that is
// wrong changes nothing.
func (s *server) reload(load func() (*config.Config, error)) {
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
	s.log.Info("configuration read again", slog.Int("changed", len(changes.Live)), slog.Int("need_restart", len(changes.Restart)))
	for _, key := range changes.Restart {
		s.log.Warn("this setting takes effect at the next start", slog.String("key", key))
	}
}

func accessOf(c config.Channel) channels.Access {
	return channels.Access{Policy: c.Access.Policy, AllowFrom: c.Access.AllowFrom, Owners: c.Access.Owners}
}

// hasOwner tells whether somebody owns the bot on a channel.
func (s *server) hasOwner(ctx context.Context, l *line) (bool, error) {
	if len(l.config.Access.Owners) > 0 {
		return true, nil
	}
	pairings, err := s.home.book.Pairings(ctx)
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

const checkTimeout = 20 * time.Second
