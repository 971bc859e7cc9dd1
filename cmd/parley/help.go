package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"parley/cmd/parley/completion"
	"parley/cmd/parley/config"
	"parley/cmd/parley/metrics"
	"parley/cmd/parley/terminal"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command; left out, all are listed."`
}

// Help shows examples.
func (helpCmd) Help() string { return examples("parley help", "parley help pairing approve") }

// Run prints what --help prints.
func (h helpCmd) Run(tty terminal.Terminal) error {
	args := append(append([]string{}, h.Command...), "--help")
	if code := run(args, terminal.Terminal{In: tty.In, Out: tty.Out, Err: io.Discard}); code != exitDone {
		return &usageError{"there is no command " + strings.Join(h.Command, " ")}
	}
	return nil
}

// examples returns the part of a command's help that shows examples, one on each line.
func examples(lines ...string) string {
	return "Examples:\n\n  " + strings.Join(lines, "\n\n  ")
}

// version is set by the linker when a release is built.
var version = "devel"

type versionCmd struct{}

// thisBuild returns the version and revision of this program.
func thisBuild() metrics.Build {
	b := metrics.Build{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

// A versionFlag prints the version in place of any command.
type versionFlag bool

// BeforeReset prints the version before kong reads the rest of the command line.
func (versionFlag) BeforeReset(app *kong.Kong, tty terminal.Terminal) error {
	err := versionCmd{}.Run(&cli{}, tty)
	app.Exit(exitDone)
	return err
}

// Help shows examples.
func (versionCmd) Help() string { return examples("parley version", "parley --json version") }

// Run prints the version.
func (versionCmd) Run(c *cli, tty terminal.Terminal) error {
	b := thisBuild()
	if c.JSON {
		return json.NewEncoder(tty.Out).Encode(b)
	}
	parts := []string{"parley", b.Version, b.Revision, b.Go}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" }) // outside of a checkout there is no revision
	_, err := fmt.Fprintln(tty.Out, strings.Join(parts, " "))
	return err
}

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help shows where the script is to be put.
func (completionCmd) Help() string {
	return examples(`source <(parley completion bash)`, `parley completion zsh > "${fpath[1]}/_parley"`, `parley completion fish > ~/.config/fish/completions/parley.fish`)
}

// Run prints a script that completes commands and flags in a shell, and the agents' names.
func (c completionCmd) Run(flags *cli, tty terminal.Terminal) error {
	parser, err := newParser(&cli{}, tty)
	if err != nil {
		return err
	}
	agents := []string{config.MainAgent}
	// A configuration that cannot be read is no reason for a shell to do without the rest.
	if cfg, err := loadConfig(config.Options{File: flags.Config, Home: flags.Home, WithoutSecrets: true}); err == nil {
		agents = slices.Sorted(maps.Keys(cfg.Agents))
	}
	completion.Print(tty.Out, c.Shell, parser.Model.Node, map[string][]string{"agent": agents})
	return nil
}
