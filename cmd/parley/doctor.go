package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"parley/cmd/parley/terminal/report"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/doctor"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/tools/plainjson"
)

type doctorCmd struct{}

// Help shows examples.
func (doctorCmd) Help() string {
	return examples("parley doctor", "parley --config /etc/parley/parley.toml doctor")
}

// Run checks everything that can be checked and says what to change. It fails
// if something is wrong.
func (doctorCmd) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	cfg, err := loadConfig(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	found := doctor.Examine(ctx, cfg)
	if c.JSON {
		err = plainjson.NewEncoder(tty.Out).Encode(found)
	} else {
		err = report.Findings(tty.Out, found)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, doctor.Finding.NeedsChange) {
		return errors.New("something is wrong; see above")
	}
	return nil
}

// examineWhileServing makes the part of a server that tells programs what "parley doctor" finds.
func examineWhileServing(settings func() *config.Config, plain func(text string) string, log *slog.Logger) any {
	return doctor.NewDesk(doctor.DeskConfig{Settings: settings, Plain: plain, Examine: doctor.Examine, Log: log})
}

type configGroup struct {
	Check configCheck `cmd:"" help:"Read the configuration and print the settings in effect, and where each comes from."`
}

type configCheck struct {
	Role string `help:"The process's role, as in serve --role." default:"gateway,worker" placeholder:"ROLES"`
}

// Help shows examples.
func (configCheck) Help() string {
	return examples("parley config check", "parley --config parley.toml config check")
}

// Run checks the configuration and prints it without its secrets. It fails if serve would refuse to
// start with it.
func (k configCheck) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	role, err := parseRole(k.Role)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	if c.JSON {
		if err := plainjson.NewEncoder(tty.Out).Encode(cfg); err != nil {
			return err
		}
		return server.CheckStart(role, cfg)
	}
	if err := cfg.Print(tty.Out); err != nil {
		return err
	}
	for _, notice := range cfg.Notices() {
		fmt.Fprintln(tty.Err, "note:", notice)
	}
	if err := server.CheckStart(role, cfg); err != nil {
		fmt.Fprintln(tty.Err, "parley serve wouldn't start:")
		return err
	}
	if err := home.CheckPort(ctx, cfg); err != nil { // only a note, because the settings are right even if another program has the port
		fmt.Fprintf(tty.Err, textWouldNotStart, err)
		return nil
	}
	fmt.Fprintln(tty.Err, textWouldStart)
	return nil
}
