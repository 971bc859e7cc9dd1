package config

import (
	"fmt"
	"slices"

	"parley/cmd/parley/config/schema"
	"parley/tools"
)

// These names of agents' tables have a special meaning.
const (
	MainAgent = "main" // the agent that always exists

	defaults = "defaults" // [agents.defaults]: the values that all agents start from
)

// An Agent holds the settings of one agent: those that the operator wrote in [agents.NAME], or else in
// [agents.defaults], or else the defaults.
type Agent struct {
	Name         string
	Capabilities []tools.Permission
	// MayMessage lists the targets and addresses (CHANNEL:CHAT[/THREAD]) that the agent may send
	// messages to, as written; an entry with a colon is an address.
	MayMessage        []string
	MaxToolIterations int
	ToolErrorLimit    int
	MaxParallelTools  int
	ContextTokens     int    // how many tokens of context it may use, if its model allows that many
	Queue             string // what becomes of a message while a turn runs: "steer" the turn, or "followup" after it
	Rules             Rules
	Prompt            string   // the operator's own instructions to the agent
	MCP               []string // the MCP servers whose tools it has; nil means those that name the agent
	Skills            []string // the operator's skills that it has; nil means all
	Nodes             []string // the nodes that it may use; nil means those that name the agent
	RunsOn            string   // where its file tools and commands work: "node:NAME" or "ssh://USER@HOST"; "" means in its sessions' workspaces
	// Model is a name in Config.Models, or else the name of a model on the server of Config.Model;
	// "" means Config.Model. Config.ModelsOf resolves it.
	Model string
	// Titles is the model that makes titles for conversations, named as in Model; "" means none.
	Titles   string
	Fallback []string // the names of the models that are asked if Model doesn't answer; nil means those of Config.Model
	// UserTurns and UserTurnsHour limit the turns of one person with this agent, at once and within
	// an hour; 0 means the values in Limits.
	UserTurns, UserTurnsHour int

	Day      int64    // what its models may cost per day, in micro-dollars; 0 means no limit
	MaySpawn []string // the other agents that it may hand tasks to
	GoodAt   []string // words by which other agents find it for a task
	// Workspace is the absolute path of the folder that contains its sessions' directories; ""
	// means Config.Workspace.Root.
	Workspace string
}

// agentSettings declares the settings of an agent, each with the field of Agent that it fills.
func agentSettings() []schema.Setting {
	return []schema.Setting{
		{Key: "capabilities", Kind: schema.Texts, Default: []string{"file_read", "file_write"},
			OneOf: []string{"file_read", "file_write", "shell", "network", "git", "session"},
			Fill:  schema.Into(func(a *Agent) any { return &a.Capabilities })},
		{Key: "may_message", Kind: schema.Texts, Default: []string{}, Example: `["oncall", "telegram:42"]`,
			Reload: withChannels, Fill: schema.Into(func(a *Agent) any { return &a.MayMessage })},
		{Key: "max_tool_iterations", Kind: schema.Count, Default: int64(20), Least: 1, Fill: schema.Into(func(a *Agent) any { return &a.MaxToolIterations })},
		{Key: "tool_error_limit", Kind: schema.Count, Default: int64(3), Least: 1, Fill: schema.Into(func(a *Agent) any { return &a.ToolErrorLimit })},
		{Key: "max_parallel_tools", Kind: schema.Count, Default: int64(5), Least: 1, Fill: schema.Into(func(a *Agent) any { return &a.MaxParallelTools })},
		{Key: "context_tokens", Kind: schema.Count, Default: int64(64_000), Least: 1000, Fill: schema.Into(func(a *Agent) any { return &a.ContextTokens })},
		{Key: "queue", Kind: schema.Text, Default: "steer", OneOf: []string{"steer", "followup"}, Fill: schema.Into(func(a *Agent) any { return &a.Queue })},
		{Key: "prompt", Kind: schema.Text, Example: `"You are …"`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.Prompt })},
		{Key: "mcp", Kind: schema.Texts, Example: `["github"]`, Fill: schema.Into(func(a *Agent) any { return &a.MCP })},
		{Key: "skills", Kind: schema.Texts, Example: `["reports"]`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.Skills })},
		{Key: "nodes", Kind: schema.Texts, Example: `["pi"]`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.Nodes })},
		{Key: "runs_on", Kind: schema.Text, Example: `"node:pi"`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.RunsOn })},
		{Key: "day", Kind: schema.Money, Least: 1, Example: `5.0`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.Day })},
		{Key: "user_turns", Kind: schema.Count, Least: 1, Example: `2`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.UserTurns })},
		{Key: "user_turns_hour", Kind: schema.Count, Least: 1, Example: `60`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.UserTurnsHour })},
		{Key: "model", Kind: schema.Text, Example: `"gpt-5-mini"`, Fill: schema.Into(func(a *Agent) any { return &a.Model })},
		{Key: "fallback", Kind: schema.Texts, Example: `["backup"]`, Fill: schema.Into(func(a *Agent) any { return &a.Fallback })},
		{Key: "titles", Kind: schema.Text, Example: `"small"`, Fill: schema.Into(func(a *Agent) any { return &a.Titles })},
		{Key: "workspace", Kind: schema.Path, Example: `"/srv/ops"`, Fill: schema.Into(func(a *Agent) any { return &a.Workspace })},
		{Key: "may_spawn", Kind: schema.Texts, Example: `["research"]`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.MaySpawn })},
		{Key: "good_at", Kind: schema.Texts, Example: `["ocr", "invoices"]`, Reload: schema.AtOnce, Fill: schema.Into(func(a *Agent) any { return &a.GoodAt })},
	}
}

// agentsSection declares the settings of agents.
func agentsSection() section {
	return section{
		Section: schema.Section{
			Name: "agents", Named: true, Always: MainAgent, Inherit: defaults,
			Settings: slices.Concat(agentSettings(), ruleSettings(func(a *Agent) *Rules { return &a.Rules })),
		},
		check: func(l *loader) {
			for _, name := range agentTables(l) {
				checkPlaces(l, name+".may_message", true)
				checkRules(l, name)
				checkAgentsExist(l, name+".may_spawn")
			}
			checkRunsOn(l)
		},
	}
}

// agentTables lists the tables that contain settings of agents, including the one for all agents.
func agentTables(l *loader) []string {
	tables := []string{"agents." + defaults}
	for _, name := range l.Names("agents") {
		tables = append(tables, "agents."+name)
	}
	return tables
}

// checkAgentsExist reports those elements of the list at this path that are not names of agents.
func checkAgentsExist(l *loader, path string) {
	for i, name := range l.Texts(path) {
		if l.Mentioned(path) {
			checkAgentExists(l, l.ElementAt(path, i), path, name)
		}
	}
}

// checkAgentExists reports a name that isn't an agent's; at and path say where the name is written.
func checkAgentExists(l *loader, at schema.Origin, path, name string) {
	if agents := l.Names("agents"); !slices.Contains(agents, name) {
		l.Report(at, path, fmt.Sprintf("no agent is called %q", name), schema.OneOf(name, agents)+", or add [agents."+name+"]")
	}
}
