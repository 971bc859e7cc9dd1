package mcp

import (
	"testing"

	"parley/tools"
	"parley/tools/sandbox"
)

// The operator's settings of a server decide whether its calls act on the outside: a program for one session that
// reaches no network does not.
func TestTouchOfServerTools(t *testing.T) {
	for what, c := range map[string]struct {
		of   Server
		want tools.Outward
	}{
		"a program":                 {Server{Command: []string{"x"}}, tools.NothingOutward{}},
		"a program for all":         {Server{Command: []string{"x"}, Shared: true}, tools.OutwardEffect("call a tool of s")},
		"a program with a network":  {Server{Command: []string{"x"}, Network: sandbox.Network{Full: true}}, tools.OutwardEffect("call a tool of s")},
		"a program with some hosts": {Server{Command: []string{"x"}, Network: sandbox.Network{Hosts: []string{"a.org"}}}, tools.OutwardEffect("call a tool of s")},
		"a service":                 {Server{URL: "https://a.org/mcp"}, tools.OutwardEffect("call a tool of s")},
	} {
		c.of.Name = "s"
		got := c.of.touch()
		if got.Outward != c.want || got.Subject != nil || !got.MayWrite() {
			t.Errorf("a tool of %s touches %+v, want %v", what, got, c.want)
		}
	}
}
