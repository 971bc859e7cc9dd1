package mcp

import (
	"testing"

	"parley/tools"
	"parley/tools/sandbox"
)

// Whether a call acts on the outside the operator's settings of the server say: a program alone that reaches
// no network, and works for one session, does not.
func TestWhatAServersToolsTouch(t *testing.T) {
	for what, c := range map[string]struct {
		of   Server
		want tools.Outward
	}{
		"a program":                 {Server{Command: []string{"x"}}, tools.Inside{}},
		"a program for all":         {Server{Command: []string{"x"}, Shared: true}, tools.Would("call a tool of s")},
		"a program with a network":  {Server{Command: []string{"x"}, Network: sandbox.Network{Full: true}}, tools.Would("call a tool of s")},
		"a program with some hosts": {Server{Command: []string{"x"}, Network: sandbox.Network{Hosts: []string{"a.org"}}}, tools.Would("call a tool of s")},
		"a service":                 {Server{URL: "https://a.org/mcp"}, tools.Would("call a tool of s")},
	} {
		c.of.Name = "s"
		got := c.of.touch()
		if got.Outward != c.want || got.Subject != nil || !got.MayWrite() {
			t.Errorf("a tool of %s touches %+v, want %v", what, got, c.want)
		}
	}
}
