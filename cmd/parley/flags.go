package main

import (
	"fmt"
	"strings"
	"sync"

	"parley/channels/webhook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/platforms"
	"parley/cmd/parley/terminal"
	"parley/tools/nodes/camera"
)

// globalFlags are the flags that every command accepts.
type globalFlags struct {
	Config string `help:"Configuration file." placeholder:"FILE"`
	Home   string `help:"The folder where Parley keeps its data." placeholder:"DIR"`
	JSON   bool   `help:"Print results as JSON." name:"json"`
}

// load reads the configuration for a command. If this command ignores a ./parley.toml that other
// commands read, load prints a note that says so.
func (f *globalFlags) load(tty terminal.Terminal, o config.Options) (*config.Config, error) {
	o.File, o.Home = f.Config, f.Home
	cfg, err := loadConfig(o)
	if err == nil && cfg.FileSearch.Unread != "" {
		fmt.Fprintf(tty.Err, "note: Parley didn't read %s: only serve, doctor and config check read a file in the current folder; to use it, add --config parley.toml\n", cfg.FileSearch.Unread)
	}
	return cfg, err
}

// loadConfig reads the configuration, and checks it against the platforms and tools in this
// program.
func loadConfig(o config.Options) (*config.Config, error) {
	o.Platforms, o.CheckTemplate = platforms.Settings(), webhook.Check
	o.Tools, o.CheckHook = sync.OnceValue(toolNames), server.CheckHook // making all tools takes longer than everything else
	o.CheckRule = func(text string) (string, error) { return server.CheckRule(text, o.Tools) }
	o.CheckRate = func(text string) (string, error) { return server.CheckRate(text, o.Tools) }
	return config.Load(o)
}

// toolNames returns the names that a rule may use: those of an agent's tools, and that of a node's own.
func toolNames() []string { return append(server.ToolNames(), camera.Tool) }

// examples returns the part of a command's help that shows examples, one on each line.
func examples(lines ...string) string {
	return "Examples:\n\n  " + strings.Join(lines, "\n\n  ")
}
