package main

import (
	"context"
	"log/slog"
	"maps"
	"os"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/onboard"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/terminal"
	"parley/tools/process"
)

type serveCmd struct {
	Role   string  `help:"The role of this process: gateway, worker, or both." default:"gateway,worker" placeholder:"ROLES"`
	Listen *string `help:"The address for the HTTP server, instead of the configured one, or \"none\" to turn it off." placeholder:"ADDR"`

	Install   bool `help:"Write a systemd unit that starts Parley and keeps it running, instead of serving now."`
	Uninstall bool `help:"Stop the service that --install set up, and remove its unit."`
	Start     bool `help:"With --install: start it now without asking."`
	Yes       bool `help:"With --install: replace an existing unit."`
}

// Help shows examples.
func (serveCmd) Help() string {
	return examples("parley serve", "parley serve --config /etc/parley/parley.toml", "parley serve --role worker", "parley serve --install", "parley serve --uninstall")
}

// Run serves the configured channels until SIGINT or SIGTERM. With --install or --uninstall, it sets up or removes the
// systemd service instead.
func (c serveCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	role, err := parseRole(c.Role)
	if err != nil {
		return err
	}
	if c.Install {
		return c.install(ctx, flags, tty)
	}
	if c.Uninstall {
		return uninstallService(ctx, flags, onboard.Service{}, tty)
	}
	load := func() (*config.Config, error) {
		return loadConfig(config.Options{File: flags.Config, Home: flags.Home, LookLocal: true})
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	if err := role.Check(cfg); err != nil {
		return err
	}
	log := newLogger(cfg, tty.Err)
	for _, notice := range cfg.Notices() {
		log.Warn("setting", slog.String("notice", notice))
	}
	answerers, err := serveModels(ctx, cfg, log)
	if err != nil {
		return err
	}
	if len(cfg.Channels) == 0 && role.Receives() {
		tellOperator(cfg, tty.Err, textNothingToServe+home.DescribeConfig(cfg))
	}
	s, err := server.Open(ctx, server.Config{Settings: cfg, Models: answerers, Role: role, Commands: true, Doctor: examineWhileServing, Build: thisBuild(), Log: log, Reload: load, Offer: func(text string) { tellOperator(cfg, tty.Err, text) }, AtTerminal: terminal.IsTerminal(tty.Err)})
	if err != nil && ctx.Err() != nil {
		log.Info("told to end before serving began", slog.Any("error", err))
		return nil
	}
	if err != nil {
		return err
	}
	defer process.Adapt()()
	if c.Listen != nil && *c.Listen == "none" {
		*c.Listen = ""
	}
	err = s.Serve(ctx, c.Listen)
	if closed := s.Close(); err == nil {
		err = closed
	}
	return err
}

// install writes the systemd unit that starts "parley serve" with this configuration, and starts the service if the
// person wants that.
func (c serveCmd) install(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	// The files with the secrets may be readable only for the service, not for the person who installs it.
	cfg, err := loadConfig(config.Options{File: flags.Config, Home: flags.Home, LookLocal: true, WithoutSecrets: true})
	if err != nil {
		return err
	}
	s, path, err := serviceFor(flags, onboard.Service{Config: cfg.File})
	if err != nil {
		return err
	}
	return installService(ctx, s, path, tty, c.Start, c.Yes)
}

// parseRole parses the value of --role; its error is a usageError.
func parseRole(list string) (server.Role, error) {
	role, err := server.ParseRole(list)
	if err != nil {
		return "", &usageError{err.Error()}
	}
	return role, nil
}

// serveModels returns the models for a server; an agent for which none is configured has none. If no agent has any,
// the server only sends messages and answers none.
func serveModels(ctx context.Context, cfg *config.Config, log *slog.Logger) (models.Lists, error) {
	if !cfg.AnyModel() {
		if note := onboard.UnusedKey(os.LookupEnv); note != "" {
			log.Warn("no model is configured, so nobody is answered", slog.String("notice", note))
		}
		return nil, nil
	}
	lists, err := models.New(ctx, cfg, log)
	maps.DeleteFunc(lists, func(agent string, _ []models.Model) bool { return !cfg.HasModel(agent) })
	return lists, err
}
