package server

import (
	"sync"

	"parley/agent/inputs"
	"parley/agent/jobs"
	"parley/agent/schedules"
	"parley/agent/sessioncache"
	"parley/agent/subagents"
	"parley/channels/asks"
	"parley/channels/files/copies"
	"parley/channels/heartbeat"
	"parley/channels/owners"
	"parley/channels/recall"
	"parley/channels/webhook/events"
	"parley/cmd/parley/data/attachments"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/mcpservers"
	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/server/platforms"
	"parley/cmd/parley/server/voices"
	"parley/tools/process"
)

// A chatSide holds the parts that know people and channels, and nothing about agents' tools.
type chatSide struct {
	audit         *auditing
	erasing       *erasing
	copies        copies.Files
	chains        *modelChains
	owners        *owners.Owners
	costs         *costs
	asks          *asks.Service
	events        *events.Channel
	heartbeat     *heartbeat.Service
	liveChannels  liveChannels
	conversations *conversations
	admission     *turnAdmission
}

// newChatSide returns the chat side of a server. It adds the channels without a platform to the opened ones.
func newChatSide(on foundation, c Config, opened liveChannels) *chatSide {
	s := &chatSide{copies: copies.Files{Store: on.home.Outgoing}}
	s.audit = newAuditing(on)
	s.erasing = newErasing(on, s.audit, s.copies)
	s.chains = newModelChains(on, c.Models)
	s.owners = newOwners(on)
	s.costs = newCosts(on, s.owners, s.chains)
	s.asks = newAsks(on)
	s.events = newEvents(on)
	s.heartbeat = newHeartbeat(on, s.costs)
	s.liveChannels = append(opened, platformless(on, s.events, s.heartbeat)...)
	s.conversations = &conversations{foundation: on, liveChannels: s.liveChannels, events: s.events, answersHere: len(c.Models) > 0}
	s.admission = &turnAdmission{foundation: on, liveChannels: s.liveChannels, conversations: s.conversations}
	return s
}

// An agentSide holds the parts that make up agents and their tools.
type agentSide struct {
	sandbox    *commandSandbox
	workspaces *home.CallWorkspaces
	subagents  *subagents.Service
	schedules  *schedules.Scheduler
	jobs       *jobs.Runner
	undoing    *undoHistory
	knowledge  *knowledgeFolder
	recall     *recall.Finder
	files      *attachments.Keeper
	skills     *agentSkills
	mcp        *mcpservers.Servers
	fileCopies *fileCopies
	voices     *voices.Voices
	nodes      *nodelinks.Nodes
	guard      *guarding
	toolbox    *toolbox
	memories   *home.TurnMemories
	prompts    *prompts
	answerer   *answerer
}

// newAgentSide returns the agent side of a server.
func newAgentSide(on foundation, c *chatSide, hidden *secrets, box *commandSandbox) *agentSide {
	s := &agentSide{sandbox: box}
	s.workspaces = &home.CallWorkspaces{Home: on.home, Settings: on.settings.Load, Log: on.log}
	s.subagents = newSubAgents(on, s.workspaces, c.conversations, c.admission, c.erasing, func() *nodelinks.Nodes { return s.nodes })
	s.schedules = newSchedules(on, c.liveChannels, c.admission)
	may := &rights{on, s.subagents}
	where := &home.CommandPlaces{Home: on.home, MayUseNetwork: may.mayUseNetwork, Settings: on.settings.Load}
	s.nodes = newNodes(on, c.owners, hidden)
	s.jobs = newJobs(on, box, s.workspaces, where, may, c.admission, hidden, c.audit, s.nodes)
	s.nodes.StartJob = s.jobs.StartOnNode
	s.undoing = newUndoHistory(on)
	s.knowledge = &knowledgeFolder{foundation: on}
	s.recall = newRecall(on, c, s.knowledge, may)
	s.files = newFiles(on, c.liveChannels, c.chains, s.workspaces)
	marks := newMarker(s.workspaces, s.jobs)
	s.skills = newSkills(on, box, c.owners, may, s.workspaces, where, marks)
	s.mcp = newMCP(on, box, c.owners, s.workspaces, where, s.files)
	s.fileCopies = &fileCopies{on, c.liveChannels, may, c.copies}
	s.voices = newVoices(on, c.liveChannels, s.fileCopies)
	sends := newOnBehalf(on, c.liveChannels, may, s.fileCopies, hidden)
	s.guard = newGuarding(on, s.nodes, may, s.workspaces, sends, s.jobs, c.owners, hidden)
	s.toolbox = &toolbox{
		foundation: on, sandbox: box, workspaces: s.workspaces, knowledge: s.knowledge, commands: where, files: s.files,
		onBehalf: sends, liveChannels: c.liveChannels, recall: s.recall, schedules: s.schedules,
		subagents: s.subagents, jobs: s.jobs, undoing: s.undoing, skills: s.skills, voices: s.voices, guard: s.guard, marks: marks,
		browser: newBrowser(on, box),
	}
	s.toolbox.set = sync.OnceValues(s.toolbox.makeSet)
	s.memories = home.NewTurnMemories(on.home.Book)
	on.home.Store.QueryAtTurnStart(s.memories.TurnStartQuery)
	s.prompts = &prompts{foundation: on, chains: c.chains, skills: s.skills, knowledge: s.knowledge, memories: s.memories, abilities: platforms.KnownAbilities{}}
	s.answerer = &answerer{
		foundation: on, limits: &limits{foundation: on}, liveChannels: c.liveChannels, asks: c.asks, jobs: s.jobs, subagents: s.subagents, undoing: s.undoing, rights: may,
		events: c.events, costs: c.costs, audit: c.audit, sessionCache: sessioncache.New(sessioncache.BoundsFor(process.Memory())),
		agents: &agents{
			foundation: on, chains: c.chains, toolbox: s.toolbox, subagents: s.subagents, rights: may, mcp: s.mcp, nodes: s.nodes, skills: s.skills, prompts: s.prompts,
			workspaces: s.workspaces, inputs: inputs.New(inputs.Config{Workspace: on.home.Workspace, Running: on.home.Store.RunningJobs, Anywhere: on.home.MayCompareAnywhere}), files: s.files, shown: &shownFiles{on, s.fileCopies, s.guard}, voices: s.voices, undoing: s.undoing, guard: s.guard,
		},
	}
	return s
}
