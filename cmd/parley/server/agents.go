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
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/owndata"
	"parley/cmd/parley/server/mcpservers"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/server/voices"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/tools"
	"parley/tools/canvas"
	"parley/tools/schedules"
	"parley/tools/speak"
)

// agents makes the agents that answer in sessions.
type agents struct {
	foundation
	chains     *modelChains
	toolbox    *toolbox
	subagents  *subagents.Service
	rights     *rights
	mcp        *mcpservers.Servers
	nodes      *nodelinks.Nodes
	skills     *agentSkills
	prompts    *prompts
	workspaces *home.CallWorkspaces
	inputs     *inputs.Hasher
	files      *attachments.Keeper
	shown      *shownFiles
	voices     *voices.Voices
	undoing    *undoHistory
	guard      *guarding
	proposals  owndata.Proposals
}

// forSession returns the agent named in a session's key, according to the current settings. It returns an error if no agent
// with that name is configured, or if it has no model. A sub-agent gets only what the agent that it works for has, too.
func (a *agents) forSession(ctx context.Context, session string) (agent.Agent, error) {
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
	known, keep := a.nodes.InPlace(all, name), a.workspaces.KeepResult
	if set.Node() != "" {
		keep = nil // its tools can't read files in the workspace
	}
	parent, err := a.subagents.Parent(ctx, session)
	if err != nil {
		return agent.Agent{}, err
	}
	granted := a.toolsOf(ctx, all, session, name, isOwnerTerminal(session) || sessions.AgentOf(parent) == name && isOwnerTerminal(parent))
	copyFiles, titles := a.shown.copyFiles, a.chains.byAgent[models.ForTitles(name)]
	var voice agent.Voice = a.voices
	if parent != "" || !a.settings.Load().Speech.Reads() {
		granted, known, voice = granted.Without(speak.Name), known.Without(speak.Name), nil
	}
	var remember proposals.Store
	if a.settings.Load().Recall.Propose && parent == "" {
		remember = a.proposals
	}
	var caps []bill.Cap
	if parent != "" { // a sub-agent gets only what its parent has
		above := sessions.AgentOf(parent)
		granted = granted.Within(a.toolsOf(ctx, all, parent, above, isOwnerTerminal(parent)))
		unfit := []string{schedules.Name, canvas.Name} // nobody would see its schedules' answers, or what it draws
		granted, known = granted.Without(unfit...), known.Without(unfit...)
		copyFiles, titles = nil, nil // its report goes to a model
		if most := a.settings.Load().Agents[above].Day; most > 0 && above != name {
			caps = append(caps, bill.Cap{Subject: bill.Agent(above), Limit: most})
		}
	}
	inForce := a.guard.inForce.Load()
	return agent.Agent{
		Name: name, Model: model, KnownTools: known, Tools: granted, Caps: caps,
		Prompt: a.prompts.build, Memory: a.prompts.memory, StoreLongResult: keep, HashInput: a.inputs.HashFiles, Untrusted: a.workspaces.IsPromptUntrusted,
		CopyFiles: copyFiles, Voice: voice, Picture: a.files.Picture, Fetch: a.files.Fetch, MayNote: a.home.MayLogFiles, MaySummarizeTurn: a.home.MaySummarizeParts, MayTitle: a.home.MayTitle, Titles: titles, Proposals: remember, Discard: a.undoing.discard(a.files),
		Guard: a.guard.decide, CountCall: a.guard.countCall, Before: inForce.before, After: inForce.after, Judge: inForce.judge.With(a.chains.byAgent[models.ForJudge]), Redact: a.guard.secrets.Load(),
		MaxIterations: set.MaxToolIterations, ErrorLimit: set.ToolErrorLimit,
		MaxParallelTools: set.MaxParallelTools, ContextTokens: contextWindow(set.ContextTokens, model), Day: set.Day, Turns: set.UserTurns, TurnsHour: set.UserTurnsHour, Steer: set.Queue == "steer",
	}, nil
}

// toolsOf returns the tools that an agent has in a session; in the owner's terminal these include
// the tools of all MCP servers and nodes.
func (a *agents) toolsOf(ctx context.Context, all *tools.Set, session, name string, terminal bool) *tools.Set {
	served := a.mcp.With(ctx, a.toolbox.granted(all, a.rights.capabilities(session)), name, terminal)
	return a.nodes.With(a.skills.With(served, session), name, terminal)
}

// contextWindow returns how many tokens of context may be used: the configured number, or
// the model's own if that is less.
func contextWindow(configured int, model llm.Model) int {
	if has := model.Info().ContextTokens; has > 0 {
		return min(configured, has)
	}
	return configured
}
