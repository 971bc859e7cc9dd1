package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"parley/cmd/parley/config"
)

// Options hold how Serve runs a server.
type Options struct {
	// Listen is the address for HTTP, in place of the configured one.
	Listen string
	// Reload reads the configuration again.
	Reload func() (*config.Config, error)
	// Offers is where invitations are printed to become the owner of a bot that has none.
	Offers io.Writer
}

// Serve runs the server until ctx is done, reads the configuration again at SIGHUP, and, while
// the bot has no owner, prints how to become its owner.
func (s *Server) Serve(ctx context.Context, o Options) error {
	f, err := s.newHTTPAccess()
	if err != nil {
		return err
	}
	address := o.Listen // a process that only works listens on HTTP only if --listen says so
	if s.role.Receives() {
		address = cmp.Or(o.Listen, s.settings.Load().HTTP.Listen)
	}
	socket, port, err := f.listen(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() { s.watchConcerns(ctx) })
	beside.Go(func() {
		if err := s.announceDefaultCaps(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("nobody may have been told which caps on models hold", slog.Any("error", err))
		}
	})
	beside.Go(func() { s.reloadOnHangup(ctx, o.Reload, f.applySettings) })
	for _, l := range s.channels {
		switch {
		case !s.role.Receives() || l.config.Platform == "":
		case l.receive:
			beside.Go(func() { s.warnOfScopeChange(ctx, l) })
			beside.Go(func() { s.offerOwnership(ctx, l, o.Offers) })
		default:
			beside.Go(func() { s.probeAccount(ctx, l) })
		}
	}
	name := "none"
	if main := s.models[config.MainAgent]; main != nil {
		name = main.Info().Name
	}
	s.log.Info("serving", slog.String("role", string(s.role)), slog.Int("channels", len(s.platformChannels())), slog.String("model", name), slog.String("http", address), slog.String("home", s.home.Dir))
	return s.runStages(ctx, s.stages(func(ctx context.Context) error { return f.serve(ctx, socket, port) })...)
}

// reloadOnHangup reads the configuration again at each SIGHUP: load reads it, and reloaded is
// called once it is applied.
func (s *Server) reloadOnHangup(ctx context.Context, load func() (*config.Config, error), reloaded func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-hup:
			s.reload(load, reloaded)
		case <-ctx.Done():
			return
		}
	}
}

// stages returns the parts of a server in the order in which they are shut down: first it accepts
// nothing more, then the turns in flight end, then what they said is sent. front is the stage
// that serves HTTP and the home's socket.
func (s *Server) stages(front func(context.Context) error) []func(context.Context) error {
	all := []func(context.Context) error{front}
	if s.role.Receives() {
		all = append(all, s.runGateways, s.ownData.Run)
	}
	if s.role.Works() {
		all = append(all, s.prepareTools)
	}
	if s.role.Works() && len(s.models) > 0 {
		all = append(all, s.runWorkerAndTimers)
	}
	if s.role.Works() { // after the turns that may start some
		all = append(all, s.jobs.Run, s.mcp.Run)
	}
	if s.role.Dispatches() {
		all = append(all, s.runDispatchers)
	}
	if s.role.Serves() && s.role.Dispatches() {
		all = append(all, func(ctx context.Context) error { return s.sweeper().Run(ctx, s.home.Bus) })
	}
	if s.role.Serves() && s.role.Works() {
		all = append(all, func(ctx context.Context) error { return s.history.Run(ctx, s.home.Bus) })
	}
	if s.role.Serves() {
		all = append(all, s.trail.Run)
	}
	if s.role.Works() || s.role.Receives() { // both erase what people ask them to
		all = append(all, s.rewriter.Run)
	}
	if days := s.settings.Load().Retention.Days; days > 0 && s.role.Serves() {
		all = append(all, func(ctx context.Context) error { return s.eraser().Run(ctx, s.home.Bus, days) })
	}
	return all
}

// prepareTools makes the tools before anybody asks for them. It returns an error, which
// ends the server, if it cannot be found out which sandbox commands run in.
func (s *Server) prepareTools(ctx context.Context) error {
	if _, err := s.tools(); err != nil && !errors.Is(err, context.Canceled) { // that is a shutdown
		return err
	}
	<-ctx.Done()
	return nil
}

// runStages runs the stages until ctx is done and then shuts them down one after the
// other. It closes nothing, since the caller owns the home. It returns early with the
// error of a stage that cannot go on.
func (s *Server) runStages(ctx context.Context, stages ...func(context.Context) error) error {
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

// warnOfUnknownPrices warns the operator if the next settings bound what models may cost but the
// prices of some are not known, so that these are not bounded.
func (s *Server) warnOfUnknownPrices(next *config.Config) {
	for name, model := range s.models {
		if next.Budget.Written && !model.Info().Priced && !next.ModelsOf(name)[0].Demo {
			s.log.Warn("[budget] does not hold for a model of no known price, and the next start is refused: set price_input beside the model's name", slog.String("model", model.Info().Name))
		}
	}
}

// reload reads the configuration again and applies what can be changed while serving: who
// may talk, what may be messaged, and limits. A wrong file changes nothing.
func (s *Server) reload(load func() (*config.Config, error), reloaded func()) {
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
	if err := s.setGuard(next); err != nil {
		s.log.Error("the new rules cannot be read; the old configuration stays in force", slog.Any("error", err))
		return
	}
	for _, l := range s.channels {
		l.gate.Set(accessOf(next.Channels[l.name]))
	}
	if err := s.readSkills(next); err != nil {
		s.log.Error("the skills cannot be read again; the old ones stay in force", slog.Any("error", err))
	}
	s.settings.Store(next)
	reloaded()
	s.log.Info("configuration read again", slog.Int("changed", len(changes.Live)), slog.Int("need_restart", len(changes.Restart)))
	s.warnOfUnknownPrices(next)
	for _, key := range changes.Restart {
		s.log.Warn("this setting takes effect at the next start", slog.String("key", key))
	}
}
