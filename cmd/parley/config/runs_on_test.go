package config_test

import (
	"testing"

	"parley/cmd/parley/config"
)

// An agent that works on a node may use it, whatever the lists say.
func TestAgentsThatWorkOnNodes(t *testing.T) {
	c := good(t, "[agents.defaults]\nruns_on = \"node:pi\"\nnodes = []\n[agents.ops]\nruns_on = \"node:door\"\n[agents.here]\nruns_on = \"\"\n", nil)
	for agent, want := range map[string]string{"main": "pi", "ops": "door", "here": ""} {
		same(t, agent, c.Agents[agent].Node(), want)
		for _, node := range []string{"pi", "door", ""} {
			same(t, agent+" may use "+node, c.MayUseNode(agent, node), want != "" && node == want)
		}
	}
}

func TestBadPlacesToWork(t *testing.T) {
	const remedy = `write "node:" and the name of a node, or leave it out`
	for _, c := range []badCase{
		{"no node", "[agents.main]\nruns_on = \"pi\"", `2: agents.main.runs_on: an agent can't work on "pi": ` + remedy},
		{"without a name", "[agents.defaults]\nruns_on = \"node:\"\n[agents.ops]\n", `2: agents.defaults.runs_on: no node can be called "": use at most 32 characters: a-z, 0-9 and -`},
		{"the name of an MCP server", "[mcp.pi]\ncommand = \"x\"\nagents = [\"main\"]\n[agents.main]\nruns_on = \"node:pi\"",
			`5: agents.main.runs_on: "pi" is the name of an MCP server: give the node or the server another name: the names of their tools begin with it`},
	} {
		c.run(t)
	}
}

func TestReloadOfPlacesToWork(t *testing.T) {
	old := good(t, "[agents.ops]\n", nil)
	c, changes, err := config.Reload(old, good(t, "[agents.ops]\nruns_on = \"node:pi\"\n", nil))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "live", changes.Live, []string{"agents.ops.runs_on"})
	same(t, "node", c.Agents["ops"].Node(), "pi")
}
