package server

import (
	"testing"

	"parley/cmd/parley/config"
	"parley/tools"
)

// Without walls whatever is run has the network, git as well.
func TestWhatReachesTheNetwork(t *testing.T) {
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
	} {
		s, settings := &Server{}, &config.Config{}
		settings.Sandbox.Mode, settings.Sandbox.Network = c.mode, []string{c.network}
		settings.Agents = map[string]config.Agent{"main": {Capabilities: []tools.Permission{tools.Network}}, "offline": {}}
		s.settings.Store(settings)
		if got := s.networked(tools.Call{Name: c.tool, Session: c.agent + ":test:1"}); got != c.want {
			t.Errorf("%s of %s in mode %s with network %s reaches the network: %t", c.tool, c.agent, c.mode, c.network, got)
		}
	}
}
