// Package inventory tells programs, over HTTP, what the bot has: settings, agents and their tools, targets, and skills.
package inventory

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"parley/agent/metrics"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
	"parley/tools"
)

// Config holds what an Inventory needs from the rest of the program.
type Config struct {
	Settings func() *config.Config
	// Refresh waits until the tools of MCP servers are known, or until ctx is done.
	Refresh func(ctx context.Context) error
	// Models returns the names of the models that are asked for an agent in this process, in order; answers is false if
	// none is.
	Models func(agent string) (names []string, answers bool)
	Tools  func(ctx context.Context, agent string) (Tools, error)
	Counts func() []metrics.ToolCount // the calls in this process since its start
	Skills func() any                 // a list, for JSON
}

// Tools are the tools that an agent has when people talk to it on a platform.
type Tools struct {
	Program *tools.Set // the program's own tools
	Served  *tools.Set // and those of MCP servers
	Taught  *tools.Set // and those of skills, except for skills in a workspace
	All     *tools.Set // and those of nodes
}

// An Inventory lists what the bot has.
type Inventory struct{ Config }

// New returns an Inventory.
func New(c Config) *Inventory { return &Inventory{c} }

// inventoryWait limits how long an answer waits for MCP servers that are being started.
const inventoryWait = 2 * time.Second

// Routes returns the routes that the API serves.
func (v *Inventory) Routes() []exchange.Route {
	read := exchange.Caller.MayReadAll
	return []exchange.Route{
		{Pattern: "GET /v1/agents", May: read, Serve: v.listAgents},
		{Pattern: "GET /v1/tools", May: read, Serve: v.listTools},
		{Pattern: "GET /v1/targets", May: read, Serve: v.listTargets},
		{Pattern: "GET /v1/skills", May: exchange.Caller.IsAdmin, Serve: v.listSkills},
		{Pattern: "GET /v1/config", May: exchange.Caller.IsAdmin, Serve: v.showConfig},
	}
}

// An Agent is an agent in the API's JSON.
type Agent struct {
	Name         string             `json:"name"`
	Answers      bool               `json:"answers"` // whether a model answers for it in this process
	Models       []model            `json:"models"`  // in the order in which they are asked
	Capabilities []tools.Permission `json:"capabilities"`
	Tools        []string           `json:"tools"`
	MayMessage   []string           `json:"may_message"`
	Day          int64              `json:"microdollars_day,omitempty"`
}

// A model is a model that an agent asks, in the API's JSON.
type model struct {
	Setting string `json:"setting"` // the setting that has chosen the model
	Name    string `json:"name,omitempty"`
}

func (v *Inventory) listAgents(w *exchange.Answer, r *http.Request) error {
	if err := v.Refresh(r.Context()); err != nil {
		return err
	}
	c := v.Settings()
	all := []Agent{}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		has, err := v.toolsOf(r.Context(), name)
		if err != nil {
			return err
		}
		set := c.Agents[name]
		answering, answers := v.Models(name)
		one := Agent{
			Name: name, Answers: answers, Models: []model{}, Tools: []string{},
			Capabilities: append([]tools.Permission{}, set.Capabilities...), MayMessage: append([]string{}, set.MayMessage...), Day: set.Day,
		}
		for i, m := range c.ModelsOf(name) {
			named := model{Setting: m.Key, Name: m.Name}
			if i < len(answering) {
				named.Name = answering[i]
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

// These are the sources of a tool.
const (
	fromProgram = "builtin"
	fromMCP     = "mcp"
	fromSkill   = "skill"
	fromNode    = "node"
)

// A Tool is a tool in the API's JSON.
type Tool struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Origin      string           `json:"origin"`
	Permission  tools.Permission `json:"permission,omitempty"` // the permission that an agent needs to get it
	Effect      tools.Effect     `json:"effect"`
	Agents      []string         `json:"agents"`
	Calls       int64            `json:"calls"` // in this process since its start
	Failed      int64            `json:"failed"`
}

func (v *Inventory) listTools(w *exchange.Answer, r *http.Request) error {
	if err := v.Refresh(r.Context()); err != nil {
		return err
	}
	all := map[string]*Tool{}
	for _, agent := range slices.Sorted(maps.Keys(v.Settings().Agents)) {
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
	list := []Tool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	for _, n := range v.Counts() {
		if t := all[n.Tool]; t != nil {
			i := slices.IndexFunc(list, func(l Tool) bool { return l.Name == n.Tool })
			list[i].Calls, list[i].Failed = n.Calls, n.Failed
		}
	}
	return w.JSON(http.StatusOK, map[string]any{"tools": list})
}

// toolsOf returns the tools that an agent has when people talk to it on a platform.
func (v *Inventory) toolsOf(ctx context.Context, agent string) ([]Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, inventoryWait)
	defer cancel()
	has, err := v.Tools(ctx, agent)
	if err != nil {
		return nil, err
	}
	var list []Tool
	for _, spec := range has.All.Specs() {
		t := Tool{Name: spec.Name, Description: spec.Description, Permission: spec.Permission, Effect: spec.Effect, Origin: fromNode}
		if _, is := has.Program.Lookup(t.Name); is {
			t.Origin = fromProgram
		} else if _, is := has.Served.Lookup(t.Name); is {
			t.Origin = fromMCP
		} else if _, is := has.Taught.Lookup(t.Name); is {
			t.Origin = fromSkill
		}
		list = append(list, t)
	}
	return list, nil
}

// A Target is a target in the API's JSON.
type Target struct {
	Name string   `json:"name"`
	To   []string `json:"to"`
}

func (v *Inventory) listTargets(w *exchange.Answer, _ *http.Request) error {
	all, targets := []Target{}, v.Settings().Targets
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		one := Target{Name: name, To: []string{}}
		for _, at := range targets[name] {
			one.To = append(one.To, at.String())
		}
		all = append(all, one)
	}
	return w.JSON(http.StatusOK, map[string]any{"targets": all})
}

func (v *Inventory) listSkills(w *exchange.Answer, _ *http.Request) error {
	return w.JSON(http.StatusOK, map[string]any{"skills": v.Skills()})
}

// showConfig answers with the current settings, without their secrets.
func (v *Inventory) showConfig(w *exchange.Answer, _ *http.Request) error {
	return w.JSON(http.StatusOK, v.Settings())
}
