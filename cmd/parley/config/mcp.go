package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/cmd/parley/config/schema"
	"parley/tools/sandbox/egress"
)

// An MCPServer is a server whose tools agents use: a program, or a service at a URL.
type MCPServer struct {
	Name    string
	Command string
	Args    []string
	Env     []string // entries of the form NAME=VALUE
	Shared  bool     // whether all sessions use one instance of the program
	Network []string // like Sandbox.Network
	URL     string
	Headers []string // entries of the form NAME: VALUE
	// ClientID and ClientSecret are the credentials that identify Parley to the server's
	// authorization server; if they are "", Parley registers itself.
	ClientID     string
	ClientSecret Secret
	Questions    string   // what it gets when it asks its user something: "refuse" or "defaults"
	Tools        []string // patterns for the tools that agents get; empty means all
	Timeout      time.Duration
	Agents       []string // all agents that get its tools; see assignServers
}

// maxServerNameLength is how many characters an MCP server's name may have: few, because the names of its
// tools begin with it.
const maxServerNameLength = 32

// mcpSection declares the settings of MCP servers.
func mcpSection() section {
	return section{
		Section: schema.Section{Name: "mcp", Named: true, Settings: []schema.Setting{
			{Key: "command", Kind: schema.Text, Example: `"mcp-server-git"`, Fill: schema.Into(func(m *MCPServer) any { return &m.Command })},
			{Key: "args", Kind: schema.Texts, Default: []string{}, Example: `["--repository", "."]`, Fill: schema.Into(func(m *MCPServer) any { return &m.Args })},
			{Key: "env", Kind: schema.Texts, Default: []string{}, Secret: true, Example: `["GITHUB_TOKEN=${GITHUB_TOKEN}"]`, Fill: schema.Into(func(m *MCPServer) any { return &m.Env })},
			{Key: "shared", Kind: schema.Truth, Default: false, Fill: schema.Into(func(m *MCPServer) any { return &m.Shared })},
			{Key: "network", Kind: placeList{}, Example: `["api.github.com"]`, Fill: schema.Into(func(m *MCPServer) any { return &m.Network })},
			{Key: "url", Kind: schema.URL, Schemes: []string{"http", "https"}, Example: `"https://mcp.example.com/mcp"`, Fill: schema.Into(func(m *MCPServer) any { return &m.URL })},
			{Key: "headers", Kind: schema.Texts, Default: []string{}, Secret: true, Headers: schema.References, Example: `["Authorization: Bearer ${MCP_TOKEN}"]`, Fill: schema.Into(func(m *MCPServer) any { return &m.Headers })},
			{Key: "client_id", Kind: schema.Text, Example: `"parley"`, Fill: schema.Into(func(m *MCPServer) any { return &m.ClientID })},
			{Key: "client_secret", Kind: schema.Text, Secret: true, Example: `"${MCP_CLIENT_SECRET}"`, Fill: schema.Into(func(m *MCPServer) any { return &m.ClientSecret })},
			{Key: "questions", Kind: schema.Text, Default: "refuse", OneOf: []string{"refuse", "defaults"}, Fill: schema.Into(func(m *MCPServer) any { return &m.Questions })},
			{Key: "tools", Kind: schema.Texts, Default: []string{}, Example: `["read_*"]`, Fill: schema.Into(func(m *MCPServer) any { return &m.Tools })},
			{Key: "timeout", Kind: schema.Duration, Default: time.Minute, Least: int64(time.Second), Fill: schema.Into(func(m *MCPServer) any { return &m.Timeout })},
			{Key: "agents", Kind: schema.Texts, Example: `["main"]`, Fill: schema.Into(func(m *MCPServer) any { return &m.Agents })},
		}},
		check: checkMCP,
	}
}

// checkMCP reports MCP servers whose settings don't say how to reach them, contradict each other or are wrong, those
// that no agent uses, and names in agents' lists that are no server's.
func checkMCP(l *loader) {
	for _, name := range l.Names("mcp") {
		table := "mcp." + name
		command, url := l.Mentioned(table+".command"), l.Mentioned(table+".url")
		switch {
		case len(name) > maxServerNameLength:
			l.Report(l.At(table), table, "the name is too long", fmt.Sprintf("use at most %d characters: the names of its tools begin with it", maxServerNameLength))
		case command == url:
			l.Report(l.At(table), table, "it needs either command or url", `write command = "mcp-server-git" for a program, or url = "https://mcp.example.com/mcp" for a service`)
		}
		for _, key := range []string{"args", "env", "shared", "network", "headers", "client_id", "client_secret"} {
			if l.Mentioned(table+"."+key) && slices.Contains([]string{"headers", "client_id", "client_secret"}, key) == command && command != url {
				l.Report(l.At(table+"."+key), table+"."+key, "it has no effect with "+map[bool]string{true: "command", false: "url"}[command], "remove the line")
			}
		}
		checkMCPAgents(l, table, name)
		checkMCPLists(l, table)
	}
	for _, table := range agentTables(l) {
		path := table + ".mcp"
		for i, name := range l.Texts(path) {
			if l.Mentioned(path) && !slices.Contains(l.Names("mcp"), name) {
				remedy := "add [mcp." + name + "]"
				if len(l.Names("mcp")) > 0 {
					remedy = schema.OneOf(name, l.Names("mcp")) + ", or " + remedy
				}
				l.Report(l.ElementAt(path, i), path, "no MCP server is called "+strconv.Quote(name), remedy)
			}
		}
	}
}

// checkMCPAgents reports an MCP server if no setting says which agents get its tools, because no agent gets them by
// default. It also reports names in the server's list that are no agent's.
func checkMCPAgents(l *loader, table, server string) {
	path := table + ".agents"
	chosen := slices.ContainsFunc(l.Names("agents"), func(agent string) bool {
		return slices.Contains(l.Texts("agents."+agent+".mcp"), server)
	})
	if !l.Mentioned(path) && !chosen {
		l.Report(l.At(table), path, "no agent has its tools", `write agents = ["main"], or whichever agents should have them`)
		return
	}
	for i, agent := range l.Texts(path) {
		if !slices.Contains(l.Names("agents"), agent) {
			l.Report(l.ElementAt(path, i), path, "no agent is called "+strconv.Quote(agent), "the agents are "+strings.Join(l.Names("agents"), ", "))
		}
	}
}

// checkMCPLists reports entries in an MCP server's lists that make no sense. It doesn't repeat
// anything that may be secret.
func checkMCPLists(l *loader, table string) {
	network := l.Texts(table + ".network")
	for i, host := range network {
		path := table + ".network"
		switch {
		case host != NoNetwork && host != FullNetwork:
			if err := egress.Check(host); err != nil {
				l.Report(l.ElementAt(path, i), path, err.Error(), `write "none", "full", or hosts, like ["api.github.com"]`)
			}
		case len(network) > 1:
			l.Report(l.ElementAt(path, i), path, fmt.Sprintf("%q can't be combined with hosts", host), "write only that, or only the hosts")
		}
	}
	for i, pair := range l.Texts(table + ".env") {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" || strings.ContainsAny(name, " \t") {
			l.Report(l.ElementAt(table+".env", i), table+".env", "it isn't NAME=VALUE", `write something like env = ["GITHUB_TOKEN=${GITHUB_TOKEN}"]`)
		}
	}
	checkHeaders(l, table, `["Authorization: Bearer ${MCP_TOKEN}"]`)
}

// checkHeaders reports entries in the setting "headers" of a table that don't have the form NAME:
// VALUE; example is a correct one, for the remedy.
func checkHeaders(l *loader, table, example string) {
	for i, pair := range l.Texts(table + ".headers") {
		if name, value, ok := strings.Cut(pair, ":"); !ok || name == "" || strings.ContainsAny(name, " \t\r\n\x00") || strings.ContainsAny(value, "\r\n\x00") {
			l.Report(l.ElementAt(table+".headers", i), table+".headers", "it isn't NAME: VALUE", "write something like headers = "+example)
		}
	}
}

// assignServers decides which agents get the tools of which MCP server, and stores that in each
// server's Agents: the agents that name the server, plus those agents named by the server that name
// no servers themselves.
func assignServers(s *schema.Settings, servers map[string]MCPServer, agents map[string]Agent) {
	for name, server := range servers {
		has := []string{}
		for _, agent := range slices.Sorted(maps.Keys(agents)) {
			list, of := agents[agent].MCP, name
			if !s.HasValue("agents." + agent + ".mcp") {
				list, of = server.Agents, agent
			}
			if slices.Contains(list, of) {
				has = append(has, agent)
			}
		}
		server.Agents = has
		servers[name] = server
	}
}
