package main

import (
	"context"
	"fmt"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/tools/plainjson"
)

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
