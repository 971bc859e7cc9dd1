package server

import (
	"context"
	"log/slog"

	"parley/cmd/parley/config"
)

// Serve runs the server until ctx is done, reads the configuration again at SIGHUP, and, while the bot has no
// owner, prints how to become its owner. listen is the address for HTTP, which replaces the configured one; ""
// means none. It is nil to use the configured one.
func (s *Server) Serve(ctx context.Context, listen *string) error {
	address, err := s.front.address(listen)
	if err != nil {
		return err
	}
	if err := s.front.listen(address); err != nil {
		return err
	}
	name := "none"
	if main := s.chats.chains.byAgent[config.MainAgent]; main != nil {
		name = main.Info().Name
	}
	s.log.Info("serving", slog.String("role", string(s.role)), slog.Int("channels", len(s.chats.liveChannels.ofPlatforms())), slog.String("model", name), slog.String("http", address), slog.String("home", s.home.Dir))
	return s.run(ctx)
}

// run runs the parts until ctx is done, and ends them in the order of the stop.
func (s *Server) run(ctx context.Context) error {
	return runParts(ctx, s.parts, func() {
		s.log.Info("shutting down", slog.Duration("drain", s.settings.Load().Serve.Drain))
	})
}
