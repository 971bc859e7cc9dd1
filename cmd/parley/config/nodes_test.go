package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/cmd/parley/config"
)

func TestNodes(t *testing.T) {
	same(t, "none", good(t, "", nil).Nodes, map[string]config.Node{})
	c := good(t, "[nodes.pi]\ntrusted = true\nagents = [\"main\", \"ops\", \"lab\"]\n[nodes.door]\nwait = \"1h\"\napprovers = [\"telegram:42\", \"web:ci\"]\n[nodes.lab]\napprovers = []\n"+
		"[agents.ops]\nnodes = [\"later\", \"door\"]\n[agents.lab]\nnodes = []\n[channels.telegram]\n", vars{"TELEGRAM_BOT_TOKEN": "1:x"})
	same(t, "nodes", c.Nodes, map[string]config.Node{
		"pi":   {Name: "pi", Trusted: true, Agents: []string{"main", "ops", "lab"}},
		"door": {Name: "door", Wait: time.Hour, Approvers: []string{"telegram:42", "web:ci"}},
		"lab":  {Name: "lab", Approvers: []string{}},
	})
	same(t, "of an agent", c.Agents["ops"].Nodes, []string{"later", "door"})
	for agent, want := range map[string]map[string]bool{
		"main":    {"pi": true, "door": false, "later": false}, // the nodes' lists of agents allow it
		"ops":     {"pi": false, "door": true, "later": true},  // the agent's list of nodes allows it
		"lab":     {"pi": false, "door": false, "later": false},
		"nowhere": {"pi": false},
	} {
		for node, may := range want {
			if got := c.MayUseNode(agent, node); got != may {
				t.Errorf("%s may use %s: %v", agent, node, got)
			}
		}
	}
}

// The nodes of the agents' defaults apply to agents without their own list.
func TestNodesOfAllAgents(t *testing.T) {
	c := good(t, "[nodes.pi]\nagents = [\"main\"]\n[agents.defaults]\nnodes = [\"door\"]\n[agents.ops]\nnodes = [\"pi\"]\n", nil)
	same(t, "main", []bool{c.MayUseNode("main", "pi"), c.MayUseNode("main", "door")}, []bool{false, true})
	same(t, "ops", []bool{c.MayUseNode("ops", "pi"), c.MayUseNode("ops", "door")}, []bool{true, false})
}

func TestBadNodes(t *testing.T) {
	const long = "a-name-that-is-longer-than-32-bytes"
	for _, c := range []badCase{
		{"the name of an MCP server", "[mcp.pi]\ncommand = \"x\"\nagents = [\"main\"]\n[nodes.pi]\n[agents.main]\nnodes = [\"door\", \"pi\"]",
			`4: nodes.pi: "pi" is the name of an MCP server: give the node or the server another name: the names of their tools begin with it` + "\n" +
				`6: agents.main.nodes: "pi" is the name of an MCP server: give the node or the server another name: the names of their tools begin with it`},
		{"too long", "[nodes." + long + "]\n[agents.defaults]\nnodes = [\"" + long + "\"]\n[agents.ops]\n",
			`1: nodes.` + long + `: no node can be called "` + long + `": use at most 32 characters: a-z, 0-9 and -` + "\n" +
				`3: agents.defaults.nodes: no node can be called "` + long + `": use at most 32 characters: a-z, 0-9 and -`},
		{"no name", "[agents.main]\nnodes = [\"pi\",\n\"Pi 4\"]",
			`3: agents.main.nodes: no node can be called "Pi 4": use at most 32 characters: a-z, 0-9 and -`},
		{"an agent that there is not", "[agents.ops]\n[nodes.pi]\nagents = [\"ops\", \"op\"]",
			`3: nodes.pi.agents: no agent is called "op": write "ops", or add [agents.op]`},
		{"people who are nobody", "[channels.telegram]\nbot_token = \"1:x\"\n[nodes.pi]\napprovers = [\"42\", \"slack:U1\",\n\"telegram:ann\"]\nwait = \"0s\"",
			`4: nodes.pi.approvers: "42" doesn't name a channel and a user there: write something like "telegram:42"` + "\n" +
				`4: nodes.pi.approvers: there is no channel "slack": write [channels.slack], or the name of another channel` + "\n" +
				`5: nodes.pi.approvers: "ann" isn't a Telegram user's id: write the number: the bot tells it to anyone it turns away` + "\n" +
				`6: nodes.pi.wait: too small: the smallest is "1s": leave it out for the default; it can't be unlimited`},
		{"a device's name", "[node]\nname = \"my_pi\"",
			`2: node.name: no node can be called "my_pi": use at most 32 characters: a-z, 0-9 and -`},
		{"a device's server", "[node]\nserver = \"parley.example.com\"",
			`2: node.server: not an address that begins with http:// or https:// or mqtt:// or mqtts://: write something like server = "https://parley.example.com"`},
		{"a device's rule", "[node]\ndeny = [\"exec_shel(shutdown *)\"]",
			`2: node.deny: no tool is called "exec_shel": write "exec_shell(shutdown *)"`},
		{"a device's camera", "[node]\ncamera = []",
			`2: node.camera: it names no command: write something like camera = ["rpicam-still", "-o", "-"], or leave it out`},
	} {
		c.run(t)
	}
}

func TestADevicesOwnSettings(t *testing.T) {
	same(t, "by default", good(t, "", nil).Node, config.NodeSelf{Deny: []string{}, Ask: []string{}})
	c := good(t, "[node]\nserver = \"https://parley.example.com/\"\nname = \"pi\"\ndeny = [\"exec_shell(shutdown *)\"]\nask = [\"exec_shell(rm *)\"]\n"+
		"skills = \"skills\"\ncamera = [\"rpicam-still\", \"-o\", \"-\"]\n", nil)
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the device", c.Node, config.NodeSelf{
		Server: "https://parley.example.com", Name: "pi", Deny: []string{"exec_shell(shutdown *)"}, Ask: []string{"exec_shell(rm *)"},
		Skills: filepath.Join(at, "skills"), Camera: []string{"rpicam-still", "-o", "-"},
	})
}

func TestReloadOfNodes(t *testing.T) {
	old := good(t, "[nodes.pi]\n[agents.ops]\n", nil)
	c, changes, err := config.Reload(old, good(t, "[nodes.pi]\ntrusted = true\n[nodes.door]\nagents = [\"main\"]\n[agents.ops]\nnodes = [\"pi\"]\n[node]\nname = \"x\"\n", nil))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "live", changes.Live, []string{"nodes.door", "agents.ops.nodes", "nodes.pi.trusted"})
	same(t, "restart", changes.Restart, []string{"node.name", "workspace.root"})
	same(t, "may", []bool{c.MayUseNode("main", "door"), c.MayUseNode("ops", "pi"), c.Nodes["pi"].Trusted}, []bool{true, true, true})
}
