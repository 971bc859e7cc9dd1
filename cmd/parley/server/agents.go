package server

import (
	"context"
	"fmt"

	"parley/agent"
	"parley/agent/inputs"
	"parley/agent/llm"
	"parley/agent/proposals"
	"parley/agent/subagents"
	"parley/cmd/parley/data/attachments"
	"parley/cmd/parley/data/owndata"
	"parley/cmd/parley/server/mcpservers"
	"parley/cmd/parley/server/models"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/tools"
	"parley/tools/schedules"
)

// agents makes the agents that answer in sessions.
type agents struct {
	foundation
	chains     *modelChains
	toolbox    *toolbox
	subagents  *subagents.Service
	rights     *rights
	mcp        *mcpservers.Servers
	skills     *agentSkills
	prompts    *prompts
	workspaces *workspaces
	inputs     *inputs.Hasher
	files      *attachments.Keeper
	shown      *shownFiles
	undoing    *undoing
	guard      *guarding
	proposals  owndata.Proposals
}

// of returns the agent named in a session's key, according to the current settings.
func (a *agents) of(ctx context.Context, session string) (agent.Agent, error) {
	name := sessions.AgentOf(session)
	set, ok := a.settings.Load().Agents[name]
	if !ok {
		return agent.Agent{}, fmt.Errorf("no agent is called %q in the configuration", name)
	}
	model, ok := a.chains.byAgent[name]
	if !ok {
		return agent.Agent{}, fmt.Errorf("the agent %q has no model: set [model], or agents.%s.model", name, name)
	}
	a.chains.lists.LookUpWindowsOf(ctx, name)
	all, err := a.toolbox.set()
	if err != nil {
		return agent.Agent{}, err
	}
	parent, err := a.subagents.Parent(ctx, session)
	if err != nil {
		return agent.Agent{}, err
	}
	granted := a.toolsOf(ctx, all, session, name, isOwnerTerminal(session) || sessions.AgentOf(parent) == name && isOwnerTerminal(parent))
	copyFiles, titles := a.shown.copyFiles, a.chains.byAgent[models.ForTitles(name)]
	var remember proposals.Store
	if a.settings.Load().Recall.Propose && parent == "" {
		remember = a.proposals
	}
	var caps []bill.Cap
	if parent != "" { // a sub-agent gets only what its parent has
		above := sessions.AgentOf(parent)
		granted = granted.Within(a.toolsOf(ctx, all, parent, above, isOwnerTerminal(parent)))
		granted, all = granted.Without(schedules.Name), all.Without(schedules.Name) // nobody would watch its schedules
		copyFiles, titles = nil, nil                                                // its report goes to a model
		if most := a.settings.Load().Agents[above].Day; most > 0 && above != name {
			caps = append(caps, bill.Cap{Of: bill.Agent(above), Most: most})
		}
	}
	inForce := a.guard.inForce.Load()
	return agent.Agent{
		Name: name, Model: model, Known: all, Tools: granted, Caps: caps,
		Prompt: a.prompts.build, Memory: a.prompts.memory, Keep: a.workspaces.keepResult, HashInput: a.inputs.HashFiles, Untrusted: a.workspaces.promptUntrusted,
		CopyFiles: copyFiles, Picture: a.files.Picture, Fetch: a.files.Fetch, MayNote: a.home.MayNote, MaySumUp: a.home.MaySumUp, MayTitle: a.home.MayTitle, Titles: titles, Proposals: remember, Discard: a.undoing.discard(a.files),
		Guard: a.guard.decide, Before: inForce.before, After: inForce.after, Judge: inForce.judge.With(a.chains.byAgent[models.ForJudge]), Redact: a.guard.secrets.Load(),
		MaxIterations: set.MaxToolIterations, ErrorLimit: set.ToolErrorLimit,
		MaxParallelTools: set.MaxParallelTools, ContextTokens: contextWindow(set.ContextTokens, model), Day: set.Day, Turns: set.UserTurns, TurnsHour: set.UserTurnsHour, Steer: set.Queue == "steer",
	}, nil
}

// toolsOf returns the tools that an agent has in a session; in the owner's terminal these include
// the tools of all MCP servers.
func (a *agents) toolsOf(ctx context.Context, all *tools.Set, session, name string, terminal bool) *tools.Set {
	return a.skills.With(a.mcp.With(ctx, a.toolbox.granted(all, a.rights.capabilities(session)), name, terminal), session)
}

// contextWindow returns how many tokens of context may be used: the configured number, or
// the model's own if that is less.
func contextWindow(configured int, model llm.Model) int {
	if has := model.Info().ContextTokens; has > 0 {
		return min(configured, has)
	}
	return configured
}
