package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"parley/cmd/parley/config/schema"
	"parley/tools/sandbox/egress"
)

// Sandbox says what agents' commands may use of the machine.
type Sandbox struct {
	Mode string // "auto", "bubblewrap", "landlock" or "none"
	// Network is "none" or "full", alone, or a list of hosts; empty means none.
	Network   []string
	MemoryMB  int
	Processes int
	TmpMB     int
	Read      []string // what commands may read besides the workspace and the system's programs; absolute
	Env       []string // names of environment variables that commands see
}

// These are the values of Network that are not hosts.
const (
	NoNetwork   = "none"
	FullNetwork = "full"
)

// sandboxSection declares the settings of the sandbox.
func sandboxSection() section {
	return section{
		Section: schema.Section{Name: "sandbox", Settings: []schema.Setting{
			{Key: "mode", Kind: schema.Text, Default: "auto", OneOf: []string{"auto", "bubblewrap", "landlock", "none"},
				Fill: schema.Into(func(s *Sandbox) any { return &s.Mode })},
			{Key: "network", Kind: placeList{}, Example: `["api.github.com"]`, Fill: schema.Into(func(s *Sandbox) any { return &s.Network })},
			{Key: "memory_mb", Kind: schema.Count, Default: int64(512), Least: 16, Fill: schema.Into(func(s *Sandbox) any { return &s.MemoryMB })},
			{Key: "processes", Kind: schema.Count, Default: int64(64), Least: 4, Fill: schema.Into(func(s *Sandbox) any { return &s.Processes })},
			{Key: "tmp_mb", Kind: schema.Count, Default: int64(64), Least: 1, Fill: schema.Into(func(s *Sandbox) any { return &s.TmpMB })},
			{Key: "read", Kind: schema.Texts, Default: []string{}, Example: `["/opt/sdk"]`, Fill: schema.Into(func(s *Sandbox) any { return &s.Read })},
			{Key: "env", Kind: schema.Texts, Default: []string{}, Example: `["LANG"]`, Fill: schema.Into(func(s *Sandbox) any { return &s.Env })},
		}},
		check: checkSandbox,
	}
}

// checkSandbox reports entries in the sandbox's lists that make no sense.
func checkSandbox(l *loader) {
	network := l.Texts("sandbox.network")
	for i, host := range network {
		at := l.ElementAt("sandbox.network", i)
		switch {
		case host != NoNetwork && host != FullNetwork:
			if err := egress.Check(host); err != nil {
				l.Report(at, "sandbox.network", err.Error(), `write "none", "full", or hosts, like ["api.github.com", "*.example.com", "db.internal:5432"]`)
			}
		case len(network) > 1:
			l.Report(at, "sandbox.network", fmt.Sprintf("%q can't be combined with hosts", host), "write only that, or only the hosts")
		}
	}
	variable := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for i, name := range l.Texts("sandbox.env") {
		if !variable.MatchString(name) {
			l.Report(l.ElementAt("sandbox.env", i), "sandbox.env", fmt.Sprintf("%q isn't the name of a variable", name), `write only the name: env = ["LANG"]`)
		}
	}
	for i, path := range l.Texts("sandbox.read") {
		clean := filepath.Clean(path)
		if !filepath.IsAbs(path) {
			l.Report(l.ElementAt("sandbox.read", i), "sandbox.read", fmt.Sprintf("%q doesn't begin with /", path), "write its full path on this machine, like /opt/sdk")
		} else if clean == "/" || clean == l.home || strings.HasPrefix(l.home, clean+"/") {
			l.Report(l.ElementAt("sandbox.read", i), "sandbox.read", fmt.Sprintf("every command could read the home, which is in %s", path), "name a folder that doesn't contain the home")
		}
	}
}
