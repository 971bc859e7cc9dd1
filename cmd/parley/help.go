package main

import (
	"io"
	"strings"

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
