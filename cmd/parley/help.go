package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"parley/cmd/parley/config"
	"parley/cmd/parley/terminal"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command to explain. If omitted, lists all commands."`
}

// Help shows examples.
func (helpCmd) Help() string { return examples("parley help", "parley help pairing approve") }

// Run prints what --help prints; it returns a usageError if there is no such command.
func (h helpCmd) Run(tty terminal.Terminal) error {
	args := append(append([]string{}, h.Command...), "--help")
	if code := run(args, terminal.Terminal{In: tty.In, Out: tty.Out, Err: io.Discard}); code != exitDone {
		return &usageError{"there's no command " + strings.Join(h.Command, " ")}
	}
	return nil
}

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help shows where to put the script.
func (completionCmd) Help() string {
	return examples(`source <(parley completion bash)`, `parley completion zsh > "${fpath[1]}/_parley"`, `parley completion fish > ~/.config/fish/completions/parley.fish`)
}

// Run prints a script that lets a shell complete commands and flags, and the agents' names.
func (c completionCmd) Run(flags *globalFlags, tty terminal.Terminal) error {
	parser, err := newParser(&cli{}, tty)
	if err != nil {
		return err
	}
	agents := []string{config.MainAgent}
	// If the configuration cannot be read, the shell still completes the rest.
	if cfg, err := loadConfig(config.Options{File: flags.Config, Home: flags.Home, WithoutSecrets: true}); err == nil {
		agents = slices.Sorted(maps.Keys(cfg.Agents))
	}
	printCompletion(tty.Out, c.Shell, parser.Model.Node, map[string][]string{"agent": agents})
	return nil
}
