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

// originOf says where a setting's value comes from: file and line, a variable,
// or nothing where it is a default.
func originOf(cfg *config.Config, key string) string {
	for _, s := range cfg.Settings() {
		if s.Key == key && s.From != "default" {
			return s.From
		}
	}
	return ""
}

type configGroup struct {
	Check configCheck `cmd:"" help:"Read the configuration and print what is in force, and where it comes from."`
}

type configCheck struct{}

// Run checks the configuration and prints it without its secrets.
func (configCheck) Run(c *cli, tty terminal) error {
	cfg, err := config.Load(config.Options{File: c.Config, Home: c.Home, LookLocal: true})
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(tty.out).Encode(cfg)
	}
	if err := cfg.Print(tty.out); err != nil {
		return err
	}
	for _, notice := range cfg.Notices() {
		fmt.Fprintln(tty.err, "note:", notice)
	}
	if err := cfg.CheckServe(); err != nil {
		fmt.Fprintln(tty.err, "note: serve would not start:", err)
	}
	return nil
}
