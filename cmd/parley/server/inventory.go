package server

import (
	"context"

	"parley/channels/web"
	"parley/cmd/parley/server/inventory"
	"parley/sessions"
	"parley/tools"
	"parley/tools/sandbox"
)

// newInventory returns the inventory, which lists for programs what the bot has.
func newInventory(on foundation, a *agents) *inventory.Inventory {
	return inventory.New(inventory.Config{
		Settings: on.settings.Load, Refresh: a.mcp.Refresh, Models: a.chains.modelNames, Tools: a.onPlatform, Counts: on.metrics.Tools,
		Skills: func() any { return a.skills.List() },
	})
}

// modelNames returns the names of the models that are asked for an agent; answers is false if none is.
func (c *modelChains) modelNames(agent string) (names []string, answers bool) {
	for _, one := range c.lists[agent] {
		names = append(names, one.Model.Info().Name)
	}
	return names, c.byAgent[agent] != nil
}

// onPlatform returns the tools that an agent has when people talk to it on a platform.
func (a *agents) onPlatform(ctx context.Context, agent string) (has inventory.Tools, err error) {
	session, err := sessions.Key(agent, web.Name, "inventory", "") // used only for its rights; nobody speaks there
	if err != nil {
		return has, err
	}
	all, err := a.allTools()
	if err != nil {
		return has, err
	}
	has.Program = a.toolbox.granted(all, a.rights.capabilities(session))
	has.Served = a.mcp.With(ctx, has.Program, agent, false)
	has.Taught = a.skills.WithOperators(has.Served, session)
	has.All = a.nodes.With(has.Taught, agent, false)
	return has, nil
}

// allTools returns the tools that can work on this machine. A process that runs no turns doesn't know which ones can
// work where turns run, so it returns all tools in the program.
func (a *agents) allTools() (*tools.Set, error) {
	if a.role.Works() {
		return a.toolbox.set()
	}
	var anywhere sandbox.Sandbox = a.toolbox.sandbox
	return a.toolbox.makeTools(anywhere), nil
}
