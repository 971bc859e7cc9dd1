package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/cmd/parley/config"
)

// channelsByName lists the configured channels in the order of their names.
func channelsByName(cfg *config.Config) []config.Channel {
	var list []config.Channel
	for _, name := range slices.Sorted(maps.Keys(cfg.Channels)) {
		list = append(list, cfg.Channels[name])
	}
	return list
}

// load reads the configuration for a command, and says where a file lies beside
// it that is not obeyed.
func (c *cli) load(tty terminal, o config.Options) (*config.Config, error) {
	o.File, o.Home = c.Config, c.Home
	cfg, err := loadConfig(o)
	if err == nil && cfg.Sought.Unread != "" {
		fmt.Fprintf(tty.err, "note: %s was not read: only serve, doctor and config check obey a file of the folder that they stand in; to use it, add --config parley.toml\n", cfg.Sought.Unread)
	}
	return cfg, err
}

type configGroup struct {
	Check configCheck `cmd:"" help:"Read the configuration and print what is in force, and where it comes from."`
}

type configCheck struct {
	Role string `help:"What the process is to do, as with serve." default:"gateway,worker" placeholder:"ROLES"`
}

// Run checks the configuration and prints it without its secrets. It fails where
// serve would not start.
func (k configCheck) Run(c *cli, tty terminal) error {
	roles, err := rolesOf(k.Role)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	if c.JSON {
		if err := json.NewEncoder(tty.out).Encode(cfg); err != nil {
			return err
		}
		return checkRoles(cfg, roles)
	}
	if err := cfg.Print(tty.out); err != nil {
		return err
	}
	for _, notice := range cfg.Notices() {
		fmt.Fprintln(tty.err, "note:", notice)
	}
	if err := checkRoles(cfg, roles); err != nil {
		fmt.Fprintln(tty.err, "serve would not start:")
		return err
	}
	return nil
}
