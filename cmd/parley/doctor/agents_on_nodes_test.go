package doctor

import (
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/nodelinks"
	"parley/sessions/nodes"
)

// An agent whose node is not accepted has no tools for files, and a finding tells the operator.
func TestAgentsWithoutTheirNode(t *testing.T) {
	cfg := &config.Config{Agents: map[string]config.Agent{"main": {}, "ops": {RunsOn: "node:pi"}, "lab": {RunsOn: "node:door"}, "gone": {RunsOn: "node:none"}}}
	found := findAgentsWithoutTheirNode(cfg, []nodelinks.Node{{Name: "pi", State: nodes.Accepted}, {Name: "door", State: nodes.Waiting}})
	if len(found) != 2 || found[0].Part != "agent gone" || found[1].Part != "agent lab" || found[1].NeedsChange() {
		t.Errorf("it finds %+v", found)
	}
}
