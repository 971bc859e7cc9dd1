package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/cmd/parley/config/schema"
)

// A Node holds what the server's operator says about a node, a device that runs calls for agents. A node joins while the
// server runs, so there are also nodes without a table.
type Node struct {
	Name    string
	Trusted bool     // whether what its tools return counts as the operator's own
	Agents  []string // the agents that may use it, unless they name their nodes; see Config.MayUseNode
	Tools   []string // the tools of an edge agent; nil means those that it names itself
	// Approvers are the people, besides owners, who decide about its calls, as CHANNEL:USER; nil means those of the channels.
	Approvers []string
	Wait      time.Duration // how long a turn waits for the node while it is away; 0 means that calls fail at once
}

// A NodeSelf holds the settings of a device itself, on which "parley node" runs.
type NodeSelf struct {
	Server string   // the URL of the server that it joins, or of an MQTT broker through which it links; "" if it isn't written
	Name   string   // the name under which it joins; "" if it isn't written
	Deny   []string // rules for calls that it never runs, whoever sends them
	Ask    []string // rules for calls that it runs only with a person's approval
	Skills string   // the absolute path of the folder whose skills it offers; "" means none
	Camera []string // the command whose standard output is a picture; nil means that it has no camera
}

// MayUseNode reports whether an agent may use a node. An agent may use the node it works on. For other nodes, the
// agent's list decides; if it has none, the node's list of agents does.
func (c *Config) MayUseNode(agent, node string) bool {
	if node != "" && c.Agents[agent].Node() == node {
		return true
	}
	if list := c.Agents[agent].Nodes; list != nil {
		return slices.Contains(list, node)
	}
	return slices.Contains(c.Nodes[node].Agents, agent)
}

// nodesSection declares what the server's operator says about nodes.
func nodesSection() section {
	return section{
		Section: schema.Section{Name: "nodes", Named: true, Reload: schema.AtOnce, Settings: []schema.Setting{
			{Key: "trusted", Kind: schema.Truth, Default: false, Reload: schema.AtOnce, Fill: schema.Into(func(n *Node) any { return &n.Trusted })},
			{Key: "agents", Kind: schema.Texts, Example: `["main"]`, Reload: schema.AtOnce, Fill: schema.Into(func(n *Node) any { return &n.Agents })},
			{Key: "tools", Kind: schema.Texts, Example: `["bash", "read"]`, Reload: schema.AtOnce, Fill: schema.Into(func(n *Node) any { return &n.Tools })},
			{Key: "approvers", Kind: schema.Texts, Example: `["telegram:42"]`, Reload: schema.AtOnce, Fill: schema.Into(func(n *Node) any { return &n.Approvers })},
			{Key: "wait", Kind: schema.Duration, Least: int64(time.Second), Example: `"1h"`, Reload: schema.AtOnce, Fill: schema.Into(func(n *Node) any { return &n.Wait })},
		}},
		check: checkNodes,
	}
}

// nodeSection declares the settings of a device itself.
func nodeSection() section {
	return section{
		Section: schema.Section{Name: "node", Settings: []schema.Setting{
			{Key: "server", Kind: schema.URL, Schemes: []string{"http", "https", "mqtt", "mqtts"}, Check: refuseBrokerOf, Example: `"https://parley.example.com"`, Fill: schema.Into(func(n *NodeSelf) any { return &n.Server })},
			{Key: "name", Kind: schema.Text, Example: `"pi"`, Fill: schema.Into(func(n *NodeSelf) any { return &n.Name })},
			{Key: "deny", Kind: schema.Texts, Default: []string{}, Example: `["exec_shell(shutdown *)"]`, Fill: schema.Into(func(n *NodeSelf) any { return &n.Deny })},
			{Key: "ask", Kind: schema.Texts, Default: []string{}, Example: `["exec_shell(rm *)"]`, Fill: schema.Into(func(n *NodeSelf) any { return &n.Ask })},
			{Key: "skills", Kind: schema.Path, Example: `"skills"`, Fill: schema.Into(func(n *NodeSelf) any { return &n.Skills })},
			{Key: "camera", Kind: schema.Texts, Example: `["rpicam-still", "-o", "-"]`, Fill: schema.Into(func(n *NodeSelf) any { return &n.Camera })},
		}},
		check: checkNode,
	}
}

// checkNodes reports nodes and names in agents' lists that can't be those of a node, and names in the nodes' lists that are
// no agent's. Nodes join later, so nothing can say here which of the names are of no node.
func checkNodes(l *loader) {
	for _, name := range l.Names("nodes") {
		table := "nodes." + name
		if f := refuseNode(l, name); f != nil {
			l.Report(l.At(table), table, f.Wrong, f.Remedy)
		}
		checkAgentsExist(l, table+".agents")
		checkNodeTools(l, table)
		checkApprovers(l, table+".approvers")
	}
	for _, table := range agentTables(l) {
		path := table + ".nodes"
		for i, name := range l.Texts(path) {
			if !l.Mentioned(path) {
				continue // they are inherited, and reported where they are written
			}
			if f := refuseNode(l, name); f != nil {
				l.Report(l.ElementAt(path, i), path, f.Wrong, f.Remedy)
			}
		}
	}
}

// checkApprovers reports entries in a list of people that can't be a person on any channel.
func checkApprovers(l *loader, path string) {
	for i, who := range l.Texts(path) {
		channel, user, named := strings.Cut(who, ":")
		switch {
		case !named || user == "":
			l.Report(l.ElementAt(path, i), path, fmt.Sprintf("%q doesn't name a channel and a user there", who), `write something like "telegram:42"`)
		case channel != webPerson && !slices.Contains(l.Names("channels"), channel):
			l.Report(l.ElementAt(path, i), path, fmt.Sprintf("there is no channel %q", channel), "write [channels."+channel+"], or the name of another channel")
		default:
			platform := platformOf(l.opts.Platforms, l.Text("channels."+channel+".platform"))
			if platform.IsUserID != nil && !platform.IsUserID(user) {
				l.Report(l.ElementAt(path, i), path, fmt.Sprintf("%q isn't a %s user's id", user, platform.Title), platform.UserIDRemedy)
			}
		}
	}
}

// webPerson begins the ids of people who use the API with a token.
const webPerson = "web"

// checkNode reports what is wrong with the settings of a device itself.
func checkNode(l *loader) {
	if name := l.Text("node.name"); l.Mentioned("node.name") {
		if f := refuseNodeName(name); f != nil {
			l.Report(l.At("node.name"), "node.name", f.Wrong, f.Remedy)
		}
	}
	checkRuleList(l, "node.deny")
	checkRuleList(l, "node.ask")
	if camera := l.Texts("node.camera"); l.Mentioned("node.camera") && len(camera) == 0 {
		l.Report(l.At("node.camera"), "node.camera", "it names no command", `write something like camera = ["rpicam-still", "-o", "-"], or leave it out`)
	}
}

// refuseNode returns why no node of the server can have a name, or nil if one can. A node and an MCP server can't
// have the same name, because the names of their tools begin with it.
func refuseNode(l *loader, name string) *schema.Fault {
	if slices.Contains(l.Names("mcp"), name) {
		return &schema.Fault{Wrong: fmt.Sprintf("%q is the name of an MCP server", name), Remedy: "give the node or the server another name: the names of their tools begin with it"}
	}
	return refuseNodeName(name)
}

// refuseNodeName returns why no node can have a name; nil if one can.
func refuseNodeName(name string) *schema.Fault {
	if regexp.MustCompile(`^[a-z0-9-]{1,` + strconv.Itoa(maxServerNameLength) + `}$`).MatchString(name) {
		return nil
	}
	return &schema.Fault{
		Wrong:  fmt.Sprintf("no node can be called %q", name),
		Remedy: fmt.Sprintf("use at most %d characters: a-z, 0-9 and -", maxServerNameLength),
	}
}
