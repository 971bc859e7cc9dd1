package config_test

import (
	"testing"

	"parley/cmd/parley/config"
)

// An agent may use the node that it runs on, whatever the lists of nodes say.
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
	const remedy = `write "node:" and the name of a node, or "ssh://user@host" (with :port or the path of parley there behind it, if needed), or leave it out`
	for _, c := range []badCase{
		{"no node", "[agents.main]\nruns_on = \"pi\"", `2: agents.main.runs_on: an agent can't work on "pi": ` + remedy},
		{"an option", "[agents.main]\nruns_on = \"ssh://user@-oProxyCommand=id\"", `2: agents.main.runs_on: an agent can't work on "ssh://user@-oProxyCommand=id": ` + remedy},
		{"two of one name", "[agents.main]\nruns_on = \"ssh://a@b.c\"\n[agents.ops]\nruns_on = \"ssh://a-b@c\"",
			`4: agents.ops.runs_on: the targets ssh://a@b.c and ssh://a-b@c would both be the node ssh-a-b-c: write the same text for the same place, or call one of the machines by another name or address`},
		{"the name of an MCP server for ssh", "[mcp.ssh-a-b]\ncommand = \"x\"\nagents = [\"main\"]\n[agents.main]\nruns_on = \"ssh://a@b\"",
			`5: agents.main.runs_on: "ssh-a-b" is the name of an MCP server: give the node or the server another name: the names of their tools begin with it`},
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

// An ssh:// target is a node, and its name is derived from the target.
func TestAgentsThatWorkOverSSH(t *testing.T) {
	c := good(t, "[agents.ops]\nruns_on = \"ssh://deploy@db1:2222\"\n[agents.more]\nruns_on = \"ssh://deploy@db1:2222\"\n[agents.here]\n[nodes.ssh-deploy-db1-2222]\ntrusted = true\n", nil)
	same(t, "node", c.Agents["ops"].Node(), "ssh-deploy-db1-2222")
	same(t, "here", c.Agents["here"].Node(), "")
	same(t, "may use", c.MayUseNode("ops", "ssh-deploy-db1-2222"), true)
	same(t, "may use", c.MayUseNode("here", "ssh-deploy-db1-2222"), false)
	all := c.SSHTargets()
	same(t, "targets", len(all), 1)
	same(t, "target", all["ssh-deploy-db1-2222"].String(), "ssh://deploy@db1:2222")
}

// Node allocates almost nothing, because each message calls it several times.
func TestWhereAnAgentWorksIsCheapToKnow(t *testing.T) {
	for runsOn, most := range map[string]float64{"": 0, "node:pi": 0, "ssh://deploy@db1.example.com:2222/opt/parley": 20} {
		agent := config.Agent{RunsOn: runsOn}
		if n := testing.AllocsPerRun(100, func() { agent.Node() }); n > most {
			t.Errorf("%q: %v allocations", runsOn, n)
		}
	}
}
