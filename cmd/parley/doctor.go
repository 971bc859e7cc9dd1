package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"parley/cmd/parley/platforms"
	"parley/cmd/parley/report"
	"parley/cmd/parley/server"
	"parley/cmd/parley/webhook"

	"parley/cmd/parley/config"
	"parley/cmd/parley/doctor"
	"parley/cmd/parley/terminal"
)

type doctorCmd struct{}

// Help shows examples.
func (doctorCmd) Help() string {
	return examples("parley doctor", "parley --config /etc/parley/parley.toml doctor")
}

// Run checks everything that can be checked and says what to change. It fails
// if something is wrong.
func (doctorCmd) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	cfg, err := loadConfig(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	found := doctor.Examine(ctx, cfg)
	if c.JSON {
		err = json.NewEncoder(tty.Out).Encode(found)
	} else {
		err = report.Findings(tty.Out, found)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, doctor.Finding.NeedsChange) {
		return errors.New("something is wrong, see above")
	}
	return nil
}

// loadConfig reads the configuration, and checks it against the platforms and tools that this
// program has.
func loadConfig(o config.Options) (*config.Config, error) {
	o.Platforms, o.CheckTemplate = platforms.Settings(), webhook.Check
	o.Tools, o.CheckHook = sync.OnceValue(server.ToolNames), server.CheckHook // making all tools takes longer than the rest
	o.CheckRule = func(text string) (string, error) { return server.CheckRule(text, o.Tools) }
	return config.Load(o)
}

// load reads the configuration for a command. If there is a ./parley.toml that this command
// ignores, though others read it, load prints a note that says so.
func (c *cli) load(tty terminal.Terminal, o config.Options) (*config.Config, error) {
	o.File, o.Home = c.Config, c.Home
	cfg, err := loadConfig(o)
	if err == nil && cfg.FileSearch.Unread != "" {
		fmt.Fprintf(tty.Err, "note: %s was not read: only serve, doctor and config check obey a file of the folder that they stand in; to use it, add --config parley.toml\n", cfg.FileSearch.Unread)
	}
	return cfg, err
}

type configGroup struct {
	Check configCheck `cmd:"" help:"Read the configuration and print what is in force, and where it comes from."`
}

type configCheck struct {
	Role string `help:"What the process is to do, as with serve." default:"gateway,worker" placeholder:"ROLES"`
}

// Help shows examples.
func (configCheck) Help() string {
	return examples("parley config check", "parley --config parley.toml config check")
}

// Run checks the configuration and prints it without its secrets. It fails where
// serve would not start.
func (k configCheck) Run(c *cli, tty terminal.Terminal) error {
	role, err := parseRole(k.Role)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	if c.JSON {
		if err := json.NewEncoder(tty.Out).Encode(cfg); err != nil {
			return err
		}
		return role.Check(cfg)
	}
	if err := cfg.Print(tty.Out); err != nil {
		return err
	}
	for _, notice := range cfg.Notices() {
		fmt.Fprintln(tty.Err, "note:", notice)
	}
	if err := role.Check(cfg); err != nil {
		fmt.Fprintln(tty.Err, "serve would not start:")
		return err
	}
	return nil
}
