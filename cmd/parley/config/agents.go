package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones are known where the machine has none installed

	"parley/tools"
	"parley/tools/sandbox/egress"
)

// An Agent has the settings of one agent, as the operator has written them in [agents.NAME].
type Agent struct {
	Name         string
	Capabilities []tools.Permission
	// MayMessage lists the targets and addresses (CHANNEL:CHAT[/THREAD]) to which the
	// agent may send messages, as written; an entry with a colon is an address.
	MayMessage        []string
	MaxToolIterations int
	ToolErrorLimit    int
	MaxParallelTools  int
	ContextTokens     int
	Queue             string // "steer" or "followup"
	Rules             Rules
	Prompt            string   // the operator's own words to the agent
	MCP               []string // the MCP servers whose tools it has; nil: the servers that name the agent
	Skills            []string // the operator's skills that it has; nil means all
	// Model is a name in Config.Models, or else the name of a model at the server of
	// Config.Model; "" means Config.Model. Config.ModelsOf resolves it.
	Model    string
	Fallback []string // the names of the models that are asked if Model does not answer; nil: those of Config.Model
	// UserTurns and UserTurnsHour are the turns of one person with this agent, at once and
	// within an hour; 0 means as Limits says.
	UserTurns, UserTurnsHour int

	Day      int64    // what its models may cost in a day, in micro-dollars; 0 means no limit
	MaySpawn []string // the other agents to which it may give tasks; no effect yet
	// Workspace is the folder that holds the directories of its sessions, absolute; "" means
	// Config.Workspace.Root.
	Workspace string
}

// agentSettings declares the settings of an agent, each with the field of Agent that it
// fills.
func agentSettings() []setting {
	return []setting{
		{key: "capabilities", kind: asTexts, def: []string{"file_read", "file_write"},
			oneOf: slices.Concat(built("file_read", "file_write", "shell", "network", "git", "session")),
			since: first, fills: into(func(a *Agent) any { return &a.Capabilities })},
		{key: "may_message", kind: asTexts, def: []string{}, example: `["oncall", "telegram:42"]`,
			since: first, reload: withChannels, fills: into(func(a *Agent) any { return &a.MayMessage })},
		{key: "max_tool_iterations", kind: asCount, def: int64(20), least: 1, since: first, fills: into(func(a *Agent) any { return &a.MaxToolIterations })},
		{key: "tool_error_limit", kind: asCount, def: int64(3), least: 1, since: first, fills: into(func(a *Agent) any { return &a.ToolErrorLimit })},
		{key: "max_parallel_tools", kind: asCount, def: int64(5), least: 1, since: first, fills: into(func(a *Agent) any { return &a.MaxParallelTools })},
		{key: "context_tokens", kind: asCount, def: int64(64_000), least: 1000, since: first, fills: into(func(a *Agent) any { return &a.ContextTokens })},
		{key: "queue", kind: asText, def: "steer", oneOf: built("steer", "followup"), since: first, fills: into(func(a *Agent) any { return &a.Queue })},
		{key: "prompt", kind: asText, example: `"You are …"`, since: first, reload: atOnce, fills: into(func(a *Agent) any { return &a.Prompt })},
		{key: "mcp", kind: asTexts, example: `["github"]`, since: first, fills: into(func(a *Agent) any { return &a.MCP })},
		{key: "skills", kind: asTexts, example: `["reports"]`, since: first, reload: atOnce, fills: into(func(a *Agent) any { return &a.Skills })},
		{key: "day", kind: asMoney, least: 1, example: `5.0`, since: first, reload: atOnce, fills: into(func(a *Agent) any { return &a.Day })},
		{key: "user_turns", kind: asCount, least: 1, example: `2`, since: first, reload: atOnce, fills: into(func(a *Agent) any { return &a.UserTurns })},
		{key: "user_turns_hour", kind: asCount, least: 1, example: `60`, since: first, reload: atOnce, fills: into(func(a *Agent) any { return &a.UserTurnsHour })},
		{key: "model", kind: asText, example: `"gpt-5-mini"`, since: first, fills: into(func(a *Agent) any { return &a.Model })},
		{key: "fallback", kind: asTexts, example: `["backup"]`, since: first, fills: into(func(a *Agent) any { return &a.Fallback })},
		{key: "workspace", kind: asPath, example: `"/srv/ops"`, since: first, fills: into(func(a *Agent) any { return &a.Workspace })},
		{key: "may_spawn", kind: asTexts, example: `["research"]`, since: first, reload: atOnce, fills: into(func(a *Agent) any { return &a.MaySpawn })},
	}
}

// checkAgentNames reports those elements of the list at this path that are no agents' names.
func (l *loader) checkAgentNames(path string) {
	for i, name := range l.list(path) {
		if l.mentioned(path) {
			l.checkAgentName(l.element(path, i), path, name)
		}
	}
}

// checkAgentName reports a name that no agent has; at and path say where the name is written.
func (l *loader) checkAgentName(at origin, path, name string) {
	if agents := l.names["agents"]; !slices.Contains(agents, name) {
		l.report(at, path, fmt.Sprintf("no agent is called %q", name), oneOf(name, agents)+", or add [agents."+name+"]")
	}
}

// checkAgentFolders reports agents' folders in which their sessions' files would not be
// apart from others.
func (l *loader) checkAgentFolders() {
	if at, ok := l.places["agents."+defaults+".workspace"]; ok {
		l.report(at, "agents."+defaults+".workspace", "all agents would share the folder", "write it as root in [workspace], or give agents folders of their own: [agents.NAME] workspace")
		return
	}
	taken := l.foldersInUse()
	for _, name := range l.names["agents"] {
		path := "agents." + name + ".workspace"
		dir := l.str(path)
		if dir == "" {
			continue
		}
		real := realPath(dir)
		if within(real, realPath(l.home)) {
			l.report(l.places[path], path, "the home is in that folder", "choose one beside the home, such as /srv/"+name)
			continue
		}
		i := slices.IndexFunc(taken, func(other folderInUse) bool { return within(other.dir, real) || within(real, other.dir) })
		if i >= 0 {
			l.report(l.places[path], path, fmt.Sprintf("%s is, is in, or holds %s", dir, taken[i].what), "choose a folder for this agent's conversations alone, such as /srv/"+name)
		}
		taken = append(taken, folderInUse{"the folder of the agent " + name, real})
	}
}

// A folderInUse is a folder that must not hold an agent's folder, nor be in one.
type folderInUse struct{ what, dir string }

// foldersInUse lists the folders that are in use for something else.
func (l *loader) foldersInUse() []folderInUse {
	all := []folderInUse{{"the folder of [workspace] root", realPath(l.str("workspace.root"))}}
	for _, name := range []string{"workspaces", "skills", "terminals"} {
		all = append(all, folderInUse{"a folder of the home's own", realPath(filepath.Join(l.home, name))})
	}
	if dir := l.str("knowledge.dir"); dir != "" {
		all = append(all, folderInUse{"the folder of [knowledge] dir", realPath(dir)})
	}
	for _, dir := range l.list("skills.dirs") {
		all = append(all, folderInUse{"a folder of [skills] dirs", realPath(dir)})
	}
	return all
}

// realPath returns a path without the symbolic links in the part of it that exists.
func realPath(path string) string {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// Schedule has the limits of the schedules that people may make.
type Schedule struct {
	TimeZone string        // for conversations without one of their own; "" means the machine's
	Most     int           // of one person
	Least    time.Duration // the shortest time between two slots of a schedule
}

// Heartbeat says how often an agent looks by itself at a checklist of the operator's, and who is
// told what it finds.
type Heartbeat struct {
	Every     time.Duration // 0 means never
	File      string        // absolute
	Agent     string
	To        []string // targets and addresses, as written
	TokensDay int64
	Day       int64 // micro-dollars
}

// scheduleSections declares the settings of what agents do at certain times.
func scheduleSections() []section {
	return []section{
		{name: "schedule", settings: []setting{
			{key: "time_zone", kind: asText, example: `"Europe/Berlin"`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Schedule.TimeZone })},
			{key: "most", kind: asCount, def: int64(20), least: 1, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Schedule.Most })},
			{key: "least", kind: asDuration, def: 5 * time.Minute, least: int64(time.Second), since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Schedule.Least })},
		}},
		{name: "heartbeat", settings: []setting{
			{key: "every", kind: asDuration, least: int64(time.Second), example: `"30m"`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Heartbeat.Every })},
			{key: "file", kind: asPath, example: `"HEARTBEAT.md"`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Heartbeat.File })},
			{key: "agent", kind: asText, def: MainAgent, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Heartbeat.Agent })},
			{key: "to", kind: asPlaces, example: `"oncall"`, since: first, reload: withChannels, fills: into(func(c *Config) any { return &c.Heartbeat.To })},
			{key: "tokens_day", kind: asCount, def: int64(200_000), least: 1, large: true, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Heartbeat.TokensDay })},
			{key: "day", kind: asMoney, def: int64(500_000), least: 1, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Heartbeat.Day })},
		}},
	}
}

// checkHeartbeat reports what the settings of the heartbeat lack, if the heartbeat is on.
func (l *loader) checkHeartbeat() {
	if !l.mentioned("heartbeat.every") {
		return // it is off
	}
	at := l.places["heartbeat.every"]
	switch agent := l.str("heartbeat.agent"); {
	case !l.mentioned("heartbeat.file"):
		l.report(at, "heartbeat.every", "there is no checklist to look at", `write file = "HEARTBEAT.md", or where it lies`)
	case len(l.list("heartbeat.to")) == 0:
		l.report(at, "heartbeat.every", "nobody is told what is found", `write to = "telegram:42", or a target`)
	case !slices.Contains(l.names["agents"], agent):
		l.checkAgentName(l.places["heartbeat.agent"], "heartbeat.agent", agent)
	case slices.Contains(l.names["channels"], "heartbeat"):
		l.report(l.places["channels.heartbeat"], "channels.heartbeat", "where there is a heartbeat, the name heartbeat is that of its conversations", "choose another name for the channel")
	}
	l.checkPlaces("heartbeat.to", true)
}

// checkSchedule reports a configured time zone that does not exist.
func (l *loader) checkSchedule() {
	zone := l.str("schedule.time_zone")
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		l.report(l.places["schedule.time_zone"], "schedule.time_zone", fmt.Sprintf("%q is no time zone", zone), `write it like "Europe/Berlin", "America/New_York" or "UTC"`)
	}
}

// agentSections declares the settings of agents and of the models that answer for them.
func agentSections() []section {
	return []section{
		{name: "model", settings: append(modelSettings(func(c any) *Model { return &c.(*Config).Model }, environment{"OPENAI_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY"}),
			setting{key: "fallback", kind: asTexts, example: `["backup"]`, since: first, fills: into(func(c *Config) any { return &c.Model.Fallback })},
			setting{key: "wait", kind: asDuration, least: int64(time.Second), example: `"1h"`, since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Model.Wait })})},
		{name: "models", named: true, settings: modelSettings(func(m any) *Model { return m.(*Model) }, environment{})},
		{name: "agents", named: true, settings: slices.Concat(agentSettings(), ruleSettings(func(dest any) *Rules { return &dest.(*Agent).Rules }))},
	}
}

// An MCPServer is a server whose tools agents use: a program, or a service at a URL.
type MCPServer struct {
	Name    string
	Command string
	Args    []string
	Env     []string // NAME=VALUE
	Shared  bool
	Network []string // as Sandbox.Network
	URL     string
	Headers []string // NAME: VALUE
	// ClientID and ClientSecret are the credentials by which the server's authorization
	// server knows Parley; if they are "", Parley registers itself.
	ClientID     string
	ClientSecret Secret
	Questions    string // "refuse" or "defaults"
	Tools        []string
	Timeout      time.Duration
	Agents       []string // that have its tools, besides the agents that name the server
}

// maxServerName is how many letters an MCP server's name may have: few, because the names of its
// tools begin with it.
const maxServerName = 32

// mcpSections declares the settings of MCP servers.
func mcpSections() []section {
	return []section{{name: "mcp", named: true, settings: []setting{
		{key: "command", kind: asText, example: `"mcp-server-git"`, since: first, fills: into(func(m *MCPServer) any { return &m.Command })},
		{key: "args", kind: asTexts, def: []string{}, example: `["--repository", "."]`, since: first, fills: into(func(m *MCPServer) any { return &m.Args })},
		{key: "env", kind: asTexts, def: []string{}, secret: true, example: `["GITHUB_TOKEN=${GITHUB_TOKEN}"]`, since: first, fills: into(func(m *MCPServer) any { return &m.Env })},
		{key: "shared", kind: asTruth, def: false, since: first, fills: into(func(m *MCPServer) any { return &m.Shared })},
		{key: "network", kind: asPlaces, example: `["api.github.com"]`, since: first, fills: into(func(m *MCPServer) any { return &m.Network })},
		{key: "url", kind: asURL, schemes: []string{"http", "https"}, example: `"https://mcp.example.com/mcp"`, since: first, fills: into(func(m *MCPServer) any { return &m.URL })},
		{key: "headers", kind: asTexts, def: []string{}, secret: true, example: `["Authorization: Bearer ${MCP_TOKEN}"]`, since: first, fills: into(func(m *MCPServer) any { return &m.Headers })},
		{key: "client_id", kind: asText, example: `"parley"`, since: first, fills: into(func(m *MCPServer) any { return &m.ClientID })},
		{key: "client_secret", kind: asText, secret: true, example: `"${MCP_CLIENT_SECRET}"`, since: first, fills: into(func(m *MCPServer) any { return &m.ClientSecret })},
		{key: "questions", kind: asText, def: "refuse", oneOf: built("refuse", "defaults"), since: first, fills: into(func(m *MCPServer) any { return &m.Questions })},
		{key: "tools", kind: asTexts, def: []string{}, example: `["read_*"]`, since: first, fills: into(func(m *MCPServer) any { return &m.Tools })},
		{key: "timeout", kind: asDuration, def: time.Minute, least: int64(time.Second), since: first, fills: into(func(m *MCPServer) any { return &m.Timeout })},
		{key: "agents", kind: asTexts, example: `["main"]`, since: first, fills: into(func(m *MCPServer) any { return &m.Agents })},
	}}}
}

// checkMCP reports MCP servers whose settings do not say how they are reached, or that no agent
// uses.
func (l *loader) checkMCP() {
	for _, name := range l.names["mcp"] {
		table := "mcp." + name
		command, url := l.mentioned(table+".command"), l.mentioned(table+".url")
		switch {
		case len(name) > maxServerName:
			l.report(l.places[table], table, "the name is too long", fmt.Sprintf("use at most %d letters: the names of its tools begin with it", maxServerName))
		case command == url:
			l.report(l.places[table], table, "it wants either command or url", `write command = "mcp-server-git" for a program, or url = "https://mcp.example.com/mcp" for a service`)
		}
		for _, key := range []string{"args", "env", "shared", "network", "headers", "client_id", "client_secret"} {
			if l.mentioned(table+"."+key) && slices.Contains([]string{"headers", "client_id", "client_secret"}, key) == command && command != url {
				l.report(l.places[table+"."+key], table+"."+key, "it has no meaning beside "+map[bool]string{true: "command", false: "url"}[command], "remove the line")
			}
		}
		l.checkMCPAgents(table, name)
		l.checkMCPLists(table)
	}
	for _, agent := range append([]string{defaults}, l.names["agents"]...) {
		path := "agents." + agent + ".mcp"
		for i, name := range l.list(path) {
			if l.mentioned(path) && !slices.Contains(l.names["mcp"], name) {
				remedy := "add [mcp." + name + "]"
				if len(l.names["mcp"]) > 0 {
					remedy = oneOf(name, l.names["mcp"]) + ", or " + remedy
				}
				l.report(l.element(path, i), path, "no MCP server is called "+strconv.Quote(name), remedy)
			}
		}
	}
}

// checkMCPAgents reports an MCP server if no setting says which agents have its tools, because no
// agent has them by default.
func (l *loader) checkMCPAgents(table, server string) {
	path := table + ".agents"
	chosen := slices.ContainsFunc(l.names["agents"], func(agent string) bool {
		return slices.Contains(l.list("agents."+agent+".mcp"), server)
	})
	if !l.mentioned(path) && !chosen {
		l.report(l.places[table], path, "no agent has its tools", `write agents = ["main"], or those that are to have them`)
		return
	}
	for i, agent := range l.list(path) {
		if !slices.Contains(l.names["agents"], agent) {
			l.report(l.element(path, i), path, "no agent is called "+strconv.Quote(agent), "the agents are "+strings.Join(l.names["agents"], ", "))
		}
	}
}

// checkMCPLists reports entries of an MCP server's lists that make no sense. It does not repeat
// what may be secret.
func (l *loader) checkMCPLists(table string) {
	network := l.list(table + ".network")
	for i, host := range network {
		path := table + ".network"
		switch {
		case host != NoNetwork && host != FullNetwork:
			if err := egress.Check(host); err != nil {
				l.report(l.element(path, i), path, err.Error(), `write "none", "full", or hosts, as ["api.github.com"]`)
			}
		case len(network) > 1:
			l.report(l.element(path, i), path, fmt.Sprintf("%q stands beside hosts", host), "write it alone, or the hosts alone")
		}
	}
	for i, pair := range l.list(table + ".env") {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" || strings.ContainsAny(name, " \t") {
			l.report(l.element(table+".env", i), table+".env", "it is not NAME=VALUE", `write for example env = ["GITHUB_TOKEN=${GITHUB_TOKEN}"]`)
		}
	}
	l.checkHeaders(table, `["Authorization: Bearer ${MCP_TOKEN}"]`)
}

// checkHeaders reports entries in the setting "headers" of a table that are not of the form NAME:
// VALUE; example is a right one, for the remedy.
func (l *loader) checkHeaders(table, example string) {
	for i, pair := range l.list(table + ".headers") {
		if name, value, ok := strings.Cut(pair, ":"); !ok || name == "" || strings.ContainsAny(name, " \t\r\n\x00") || strings.ContainsAny(value, "\r\n\x00") {
			l.report(l.element(table+".headers", i), table+".headers", "it is not NAME: VALUE", "write for example headers = "+example)
		}
	}
}

// assignServers decides which agents have the tools of which MCP server, and writes that into
// each server's Agents: the agents that name the server, and of the agents that name no servers
// at all those that the server names.
func assignServers(k *parsedSettings, servers map[string]MCPServer, agents map[string]Agent) {
	for name, server := range servers {
		has := []string{}
		for _, agent := range slices.Sorted(maps.Keys(agents)) {
			list, of := agents[agent].MCP, name
			if _, chosen := k.values["agents."+agent+".mcp"]; !chosen {
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

// secretIn returns the part of NAME=VALUE or NAME: VALUE that nobody may see: the value's last
// word, if the name is usual for secrets. Otherwise it returns nil.
func secretIn(pair string) []string {
	i := strings.IndexAny(pair, "=:")
	if i < 0 {
		return nil
	}
	words := strings.Fields(pair[i+1:])
	if len(words) == 0 {
		return nil
	}
	name := strings.ToLower(pair[:i])
	for _, word := range []string{"key", "token", "secret", "pass", "auth", "cred", "cookie"} {
		if strings.Contains(name, word) {
			return words[len(words)-1:]
		}
	}
	return nil
}
