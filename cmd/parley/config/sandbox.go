package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/sandbox/egress"
)

// Sandbox is what commands of agents run in.
type Sandbox struct {
	Mode string // "auto", "bubblewrap", "landlock" or "none"
	// Network is "none" or "full", alone, or hosts; empty is none.
	Network   []string
	MemoryMB  int
	Processes int
	TmpMB     int
	Read      []string // absolute
	Env       []string // names of variables
}

// The networks that are no hosts.
const (
	NoNetwork   = "none"
	FullNetwork = "full"
)

// RunsCommands tells whether an agent has a capability that is for running commands.
func (c *Config) RunsCommands() bool {
	for _, a := range c.Agents {
		if slices.Contains(a.Capabilities, tools.Shell) || slices.Contains(a.Capabilities, tools.Git) {
			return true
		}
	}
	return false
}

// sandboxSections are the settings of the walls around commands.
func sandboxSections() []section {
	return []section{
		{name: "sandbox", settings: []setting{
			{key: "mode", kind: asText, def: "auto", oneOf: built("auto", "bubblewrap", "landlock", "none"),
				since: first, fills: into(func(c *Config) any { return &c.Sandbox.Mode })},
			{key: "network", kind: asPlaces, example: `["api.github.com"]`, since: first, fills: into(func(c *Config) any { return &c.Sandbox.Network })},
			{key: "memory_mb", kind: asCount, def: int64(512), least: 16, since: first, fills: into(func(c *Config) any { return &c.Sandbox.MemoryMB })},
			{key: "processes", kind: asCount, def: int64(64), least: 4, since: first, fills: into(func(c *Config) any { return &c.Sandbox.Processes })},
			{key: "tmp_mb", kind: asCount, def: int64(64), least: 1, since: first, fills: into(func(c *Config) any { return &c.Sandbox.TmpMB })},
			{key: "read", kind: asTexts, def: []string{}, example: `["/opt/sdk"]`, since: first, fills: into(func(c *Config) any { return &c.Sandbox.Read })},
			{key: "env", kind: asTexts, def: []string{}, example: `["LANG"]`, since: first, fills: into(func(c *Config) any { return &c.Sandbox.Env })},
		}},
	}
}

// checkSandbox looks whether the lists can mean something.
func (l *loader) checkSandbox() {
	network := l.list("sandbox.network")
	for i, host := range network {
		at := l.element("sandbox.network", i)
		switch {
		case host != NoNetwork && host != FullNetwork:
			if err := egress.Check(host); err != nil {
				l.report(at, "sandbox.network", err.Error(), `write "none", "full", or hosts, as ["api.github.com", "*.example.com", "db.internal:5432"]`)
			}
		case len(network) > 1:
			l.report(at, "sandbox.network", fmt.Sprintf("%q stands beside hosts", host), "write it alone, or the hosts alone")
		}
	}
	variable := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for i, name := range l.list("sandbox.env") {
		if !variable.MatchString(name) {
			l.report(l.element("sandbox.env", i), "sandbox.env", fmt.Sprintf("%q is not the name of a variable", name), `write the name alone: env = ["LANG"]`)
		}
	}
	for i, path := range l.list("sandbox.read") {
		clean := filepath.Clean(path)
		if !filepath.IsAbs(path) {
			l.report(l.element("sandbox.read", i), "sandbox.read", fmt.Sprintf("%q does not begin with /", path), "write where it lies on this machine, as /opt/sdk")
		} else if clean == "/" || clean == l.home || strings.HasPrefix(l.home, clean+"/") {
			l.report(l.element("sandbox.read", i), "sandbox.read", fmt.Sprintf("every command could read the home, which lies in %s", path), "name less")
		}
	}
}
