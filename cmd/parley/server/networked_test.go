package server

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/skillfolders"
	"parley/tools"
	"parley/tools/git"
	"parley/tools/shell"
	"parley/tools/skills"
)

// Without a sandbox, everything that runs can reach the network, including git.
func TestWhatReachesTheNetwork(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{
		"SKILL.md": "---\nname: s\ndescription: S.\n---\n", "run": "#!/bin/sh\n",
		"skill.toml": "[[tools]]\nname = \"calls\"\ndescription = \"C.\"\nbinary = \"run\"\nsandbox = { network = true }\n[[tools]]\nname = \"counts\"\ndescription = \"C.\"\nbinary = \"run\"\n",
	} {
		dir := filepath.Join(home, "skills", "s")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	all := tools.NewSet(slices.Concat(shell.New(shell.Config{}), git.New(git.Config{}))...)
	for _, skill := range skillfolders.Find(&config.Config{Home: home}).Skills {
		all = all.With(skills.Runner{}.Tools(skill)...)
	}
	for _, c := range []struct {
		mode, network, tool string
		agent               string
		want                bool
	}{
		{"none", "full", "git_status", "main", true},
		{"none", "none", "exec_shell", "main", true},
		{"none", "full", "git_status", "offline", false},
		{"process", "full", "git_status", "main", false},
		{"process", "full", "exec_shell", "main", true},
		{"process", "none", "exec_shell", "main", false},
		{"process", "full", "exec_shell", "offline", false},
		{"process", "full", "s__calls", "main", true},
		{"process", "full", "s__counts", "main", false},
		{"none", "full", "s__counts", "main", true},
		{"process", "none", "s__calls", "main", false},
	} {
		settings := &config.Config{Home: home}
		settings.Sandbox.Mode, settings.Sandbox.Network = c.mode, []string{c.network}
		settings.Agents = map[string]config.Agent{"main": {Capabilities: []tools.Permission{tools.Network}}, "offline": {}}
		may := &rights{foundation: foundation{settings: newSettings(settings)}}
		tool, ok := all.Lookup(c.tool)
		if !ok {
			t.Fatalf("there is no %s", c.tool)
		}
		if got := may.reachesNetwork(tools.Call{Name: c.tool, Session: c.agent + ":test:1", Touches: tool.Spec().Touches}); got != c.want {
			t.Errorf("%s of %s in mode %s with network %s reaches the network: %t", c.tool, c.agent, c.mode, c.network, got)
		}
	}
}
