package server

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"parley/channels/web"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools"
	"parley/tools/sandbox"
)

// An inventory tells programs, over HTTP, what the bot has: settings, agents and their tools, targets, and skills.
type inventory struct {
	foundation
	agents *agents
}

// inventoryWait limits how long an answer waits for MCP servers that are being started.
const inventoryWait = 2 * time.Second

// Routes returns the routes that the API serves.
func (v *inventory) Routes() []exchange.Route {
	read := exchange.Caller.MayReadAll
	return []exchange.Route{
		{Pattern: "GET /v1/agents", May: read, Serve: v.listAgents},
		{Pattern: "GET /v1/tools", May: read, Serve: v.listTools},
		{Pattern: "GET /v1/targets", May: read, Serve: v.listTargets},
		{Pattern: "GET /v1/skills", May: exchange.Caller.IsAdmin, Serve: v.listSkills},
		{Pattern: "GET /v1/config", May: exchange.Caller.IsAdmin, Serve: v.showConfig},
	}
}

// A listedAgent is an agent in the API's JSON.
type listedAgent struct {
	Name         string             `json:"name"`
	Answers      bool               `json:"answers"` // a model answers for it in this process
	Models       []listedModel      `json:"models"`  // in the order in which they are asked
	Capabilities []tools.Permission `json:"capabilities"`
	Tools        []string           `json:"tools"`
	MayMessage   []string           `json:"may_message"`
	Day          int64              `json:"microdollars_day,omitempty"`
}

// A listedModel is a model that an agent asks, in the API's JSON.
type listedModel struct {
	Setting string `json:"setting"` // the setting that has chosen it
	Name    string `json:"name,omitempty"`
}

func (v *inventory) listAgents(w *exchange.Answer, r *http.Request) error {
	if err := v.agents.mcp.Refresh(r.Context()); err != nil {
		return err
	}
	c := v.settings.Load()
	all := []listedAgent{}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		has, err := v.toolsOf(r.Context(), name)
		if err != nil {
			return err
		}
		set := c.Agents[name]
		one := listedAgent{
			Name: name, Answers: v.agents.chains.byAgent[name] != nil, Models: []listedModel{}, Tools: []string{},
			Capabilities: append([]tools.Permission{}, set.Capabilities...), MayMessage: append([]string{}, set.MayMessage...), Day: set.Day,
		}
		for i, m := range c.ModelsOf(name) {
			named := listedModel{Setting: m.Key, Name: m.Name}
			if answering := v.agents.chains.lists[name]; i < len(answering) {
				named.Name = answering[i].Model.Info().Name
			}
			one.Models = append(one.Models, named)
		}
		for _, t := range has {
			one.Tools = append(one.Tools, t.Name)
		}
		all = append(all, one)
	}
	return w.JSON(http.StatusOK, map[string]any{"agents": all})
}

// Where a tool comes from.
const (
	fromProgram = "builtin"
	fromMCP     = "mcp"
	fromSkill   = "skill"
)

// A listedTool is a tool in the API's JSON.
type listedTool struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Origin      string           `json:"origin"`
	Permission  tools.Permission `json:"permission,omitempty"` // the permission that an agent needs to get it
	Effect      tools.Effect     `json:"effect"`
	Agents      []string         `json:"agents"`
	Calls       int64            `json:"calls"` // in this process since its start
	Failed      int64            `json:"failed"`
}

func (v *inventory) listTools(w *exchange.Answer, r *http.Request) error {
	if err := v.agents.mcp.Refresh(r.Context()); err != nil {
		return err
	}
	all := map[string]*listedTool{}
	for _, agent := range slices.Sorted(maps.Keys(v.settings.Load().Agents)) {
		has, err := v.toolsOf(r.Context(), agent)
		if err != nil {
			return err
		}
		for _, t := range has {
			if all[t.Name] == nil {
				all[t.Name] = &t
			}
			all[t.Name].Agents = append(all[t.Name].Agents, agent)
		}
	}
	list := []listedTool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	for _, n := range v.metrics.Tools() {
		if t := all[n.Tool]; t != nil {
			i := slices.IndexFunc(list, func(l listedTool) bool { return l.Name == n.Tool })
			list[i].Calls, list[i].Failed = n.Calls, n.Failed
		}
	}
	return w.JSON(http.StatusOK, map[string]any{"tools": list})
}

// toolsOf returns the tools that an agent has where people talk to it on a platform, without those of skills in a
// workspace.
func (v *inventory) toolsOf(ctx context.Context, agent string) ([]listedTool, error) {
	session, err := sessions.Key(agent, web.Name, "inventory", "") // used only for its rights; nobody speaks there
	if err != nil {
		return nil, err
	}
	all, err := v.allTools()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, inventoryWait)
	defer cancel()
	own := v.agents.toolbox.granted(all, v.agents.rights.capabilities(session))
	served := v.agents.mcp.With(ctx, own, agent, false)
	var list []listedTool
	for _, spec := range v.agents.skills.WithOperators(served, session).Specs() {
		t := listedTool{Name: spec.Name, Description: spec.Description, Permission: spec.Permission, Effect: spec.Effect, Origin: fromSkill}
		if _, has := own.Lookup(t.Name); has {
			t.Origin = fromProgram
		} else if _, has := served.Lookup(t.Name); has {
			t.Origin = fromMCP
		}
		list = append(list, t)
	}
	return list, nil
}

// allTools returns the tools that can work on this machine. A process that runs no turns doesn't know which ones can
// work where turns run, so it returns all tools in the program.
func (v *inventory) allTools() (*tools.Set, error) {
	if v.role.Works() {
		return v.agents.toolbox.set()
	}
	var anywhere sandbox.Sandbox = v.agents.toolbox.sandbox
	return v.agents.toolbox.make(anywhere), nil
}

// A listedTarget is a target in the API's JSON.
type listedTarget struct {
	Name string   `json:"name"`
	To   []string `json:"to"`
}

func (v *inventory) listTargets(w *exchange.Answer, _ *http.Request) error {
	all, targets := []listedTarget{}, v.settings.Load().Targets
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		one := listedTarget{Name: name, To: []string{}}
		for _, at := range targets[name] {
			one.To = append(one.To, at.String())
		}
		all = append(all, one)
	}
	return w.JSON(http.StatusOK, map[string]any{"targets": all})
}

func (v *inventory) listSkills(w *exchange.Answer, _ *http.Request) error {
	return w.JSON(http.StatusOK, map[string]any{"skills": v.agents.skills.List()})
}

// showConfig answers with the current settings, without their secrets.
func (v *inventory) showConfig(w *exchange.Answer, _ *http.Request) error {
	return w.JSON(http.StatusOK, v.settings.Load())
}
