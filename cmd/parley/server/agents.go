package server

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"parley/agent"
	"parley/agent/llm"
	"parley/agent/prompt"
	"parley/bus"
	"parley/bus/timers"
	"parley/channels/console"
	"parley/cmd/parley/config"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/home"
	"parley/cmd/parley/skillfolders"
	"parley/sessions/bill"
	"parley/tools"
	"parley/tools/knowledge"
	"parley/tools/sandbox"
	"parley/tools/skills"
)

// runWorkerAndTimers runs the worker, and beside it the timers of asks and schedules, and
// the heartbeat.
func (s *Server) runWorkerAndTimers(ctx context.Context) error {
	due := timers.Clock{Bus: s.home.Bus, Log: s.log, Handlers: map[string]timers.Handler{
		bus.AskTimer: s.asks.Fire, bus.ScheduleTimer: s.clock.Fire,
	}}
	all, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{s.runWorker, due.Run, s.asks.Run, s.clock.Run, s.heartbeat.Run, s.handover.Run} {
		all.Go(func() error { return run(ctx) })
	}
	return all.Wait()
}

// runWorker runs the worker, which answers messages.
func (s *Server) runWorker(ctx context.Context) error {
	c := s.settings.Load()
	return agent.New(agent.Config{
		Bus: s.home.Bus, Events: s.home.Bus, Store: s.home.Store, Budget: s.home.Store, Money: s.home.Store.Money(),
		Agents: s.agentOf, Limits: s.limits, Healthy: s.healthy, Prefix: s.commandPrefix, Asks: s.asks, Approvals: s.approvalSettings,
		Jobs: s.jobs, Tasks: s.handover, History: s.history, Deserted: s.isUnattended, Admit: s.admitEvent, Account: s.home.Book.Account, Usage: s.billing.Answer, Warm: s.warm,
		MaxInFlight: c.Serve.MaxInFlight, Drain: c.Serve.Drain, Log: s.log, Observer: s.metrics, Audit: s.trail.RecordSoon, Point: s.point,
	}).Run(ctx)
}

// healthy returns an error if what every session needs does not work: the store or the files. It
// reads before it writes, because only reading ends when ctx does.
func (s *Server) healthy(ctx context.Context) error {
	if _, err := s.home.Store.List(ctx, "", 1); err != nil {
		return err
	}
	if err := s.home.Store.Writable(ctx); err != nil {
		return err
	}
	if s.settings.Load().Store.URL == "" {
		return nil
	}
	for _, folder := range s.settings.Load().Folders() {
		if _, err := os.Stat(folder.Dir); err != nil {
			return err
		}
	}
	return nil
}

// limitsOf has the limits of these settings.
type limitsOf struct {
	settings *config.Config
	limits   agent.Limits
}

// limits returns how much people may ask of agents and how much models may cost, by the settings
// in force. Each message asks for them, so they are made once for all.
func (s *Server) limits() agent.Limits {
	c := s.settings.Load()
	if last := s.lastLimits.Load(); last != nil && last.settings == c {
		return last.limits
	}
	made := limitsIn(c)
	s.lastLimits.Store(&limitsOf{c, made})
	return made
}

// limitsIn returns the limits of these settings.
func limitsIn(c *config.Config) agent.Limits {
	l, beat, budget := c.Limits, c.Heartbeat, c.Budget
	return agent.Limits{
		Turns: l.UserTurns, TurnsHour: l.UserTurnsHour, TokensDay: l.UserTokensDay, MaxWaiting: l.Waiting, ModelWait: c.Model.Wait,
		TokensAlways: l.TokensWritten, UserDay: budget.UserDay, SessionDay: budget.SessionDay, Day: budget.Day, Month: budget.Month,
		Own: map[string]agent.OwnBudget{heartbeat.Person(beat.Agent): ownBudget(c)},
	}
}

// ownBudget returns how much an agent may use when it looks at its checklist by itself: the setting
// for that, or the limit of one person if that is less.
func ownBudget(c *config.Config) agent.OwnBudget {
	b := agent.OwnBudget{TokensDay: c.Heartbeat.TokensDay, UserDay: c.Heartbeat.Day}
	b.Name, b.MoneySetting, b.TokensSetting = "Heartbeats", "[heartbeat] day", "[heartbeat] tokens_day"
	if c.Limits.UserTokensDay < b.TokensDay {
		b.TokensDay, b.TokensSetting = c.Limits.UserTokensDay, "[limits] user_tokens_day"
	}
	if c.Budget.UserDay < b.UserDay {
		b.UserDay, b.MoneySetting = c.Budget.UserDay, "[budget] user_day"
	}
	return b
}

// agentOf returns the agent that a session's key names, by the settings in force.
func (s *Server) agentOf(ctx context.Context, session string) (agent.Agent, error) {
	name := agentName(session)
	a, ok := s.settings.Load().Agents[name]
	if !ok {
		return agent.Agent{}, fmt.Errorf("no agent is named %q in the configuration", name)
	}
	model, ok := s.models[name]
	if !ok {
		return agent.Agent{}, fmt.Errorf("no model answers for the agent %q: set [model], or agents.%s.model", name, name)
	}
	s.lists.LookUpWindowsOf(ctx, name)
	all, err := s.tools()
	if err != nil {
		return agent.Agent{}, err
	}
	parent, err := s.handover.Parent(ctx, session)
	if err != nil {
		return agent.Agent{}, err
	}
	granted := s.toolsOf(ctx, all, session, name, isOwnerTerminal(session) || agentName(parent) == name && isOwnerTerminal(parent))
	enclose := s.encloseShown
	var caps []bill.Cap
	if parent != "" { // a sub-agent has nothing that its parent has not
		above := agentName(parent)
		granted = granted.Within(s.toolsOf(ctx, all, parent, above, isOwnerTerminal(parent)))
		granted, all = granted.Without("schedule"), all.Without("schedule") // nobody would look after what is due
		enclose = nil                                                       // its report goes to a model
		if most := s.settings.Load().Agents[above].Day; most > 0 && above != name {
			caps = append(caps, bill.Cap{Of: bill.Agent(above), Most: most})
		}
	}
	guarding := s.guard.Load()
	return agent.Agent{
		Name: name, Model: model, Known: all, Tools: granted, Caps: caps,
		Prompt: s.buildPrompt, Keep: s.keepResult, HashInput: s.fingerprintInputs, Untrusted: s.promptUntrusted,
		Enclose: enclose, Picture: s.files.Picture, Fetch: s.files.Fetch, MayNote: s.home.MayNote, MaySumUp: s.home.MaySumUp, Discard: s.discardFiles,
		Guard: s.decide, Before: guarding.before, After: guarding.after, Redact: guarding.redact,
		MaxIterations: a.MaxToolIterations, ErrorLimit: a.ToolErrorLimit,
		MaxParallelTools: a.MaxParallelTools, ContextTokens: contextWindow(a.ContextTokens, model), Day: a.Day, Turns: a.UserTurns, TurnsHour: a.UserTurnsHour, Steer: a.Queue == "steer",
	}, nil
}

// toolsOf returns the tools that an agent has in a session, in the owner's terminal also
// those of all MCP servers.
func (s *Server) toolsOf(ctx context.Context, all *tools.Set, session, name string, terminal bool) *tools.Set {
	return s.skills.With(s.mcp.With(ctx, s.grantedTools(all, s.capabilities(session)), name, terminal), session)
}

// contextWindow returns how many tokens of context may be used: the configured number, or
// the model's own if that is less.
func contextWindow(configured int, model llm.Model) int {
	if has := model.Info().ContextTokens; has > 0 {
		return min(configured, has)
	}
	return configured
}

// buildPrompt returns the beginning of a session's prompt: what the operator has written in the
// home, what is written in the session's workspace, and the agent's memory. The bool reports
// whether strangers may have written some of the memory.
func (s *Server) buildPrompt(ctx context.Context, who agent.Asker) (string, bool, error) {
	session := who.Session
	remembered, untrusted, err := s.memoryFiles(ctx, who)
	if err != nil {
		return "", false, err
	}
	ofOperator, ofSession, err := s.skills.Prompt(session)
	if err != nil {
		return "", false, home.Unusable(s.home.RootOf(session), err)
	}
	files := os.DirFS(s.settings.Load().Home)
	made, err := prompt.Builder{Cache: &s.prompts, Instructions: s.settings.Load().Agents[agentName(session)].Prompt, Sources: []prompt.Source{
		func(context.Context, string) ([]prompt.File, error) {
			return append(prompt.Read(opener(files), "home", "AGENTS.md", "SOUL.md"), prompt.File{Name: "skills", From: "operator", Text: ofOperator}), nil
		},
		func(_ context.Context, session string) ([]prompt.File, error) {
			files, err := s.home.WorkspaceFiles(session)
			if err != nil {
				return nil, home.Unusable(s.home.RootOf(session), err)
			}
			all := append([]prompt.File{s.placeOf(who)}, prompt.Read(opener(files), "workspace", "AGENTS.md")...)
			all = append(all, prompt.File{Name: "skills", From: "workspace", Text: ofSession})
			return append(all, prompt.Read(opener(files), "workspace", "MEMORY.md")...), nil
		},
		func(context.Context, string) ([]prompt.File, error) {
			return slices.Concat(s.describeKnowledge(), personFiles(files, who), remembered), nil
		},
	}}.Build(ctx, session)
	return made, untrusted, err
}

// placeOf returns what the prompt says about the chat in which a conversation takes place. It
// depends only on the session's key and the settings, so that the prompt is the same in each turn
// and providers can cache it.
func (s *Server) placeOf(who agent.Asker) prompt.File {
	parts := strings.Split(who.Session, ":")
	if len(parts) < 3 {
		return prompt.File{}
	}
	if parts[1] == console.Name {
		return prompt.Place{Channel: console.Name, Platform: "a terminal", Private: true}.File()
	}
	can, err := s.abilities.Of(s.settings.Load(), parts[1])
	if err != nil {
		s.log.Warn("agents are not told what a channel can do", slog.String("channel", parts[1]), slog.Any("error", err))
	}
	return prompt.Place{
		Channel: parts[1], Platform: can.Title, Private: who.Private, Thread: len(parts) > 3 && parts[3] != "",
		Length: can.Length, Files: can.Files, Buttons: can.Buttons, Edits: can.Edits,
	}.File()
}

// personFiles returns what the operator has written about the person whom the agent talks
// to, in the home in users/CHANNEL:USER.md. Nobody else may read it, so only private
// chats get it.
func personFiles(files fs.FS, who agent.Asker) []prompt.File {
	if !who.Private || who.Person == "" || strings.ContainsAny(who.Person, "/\\") {
		return nil
	}
	all := prompt.Read(opener(files), "whom you talk to, by the operator", path.Join("users", who.Person+".md"))
	for i := range all {
		all[i].Name = "USER.md"
	}
	return all
}

// newSkills makes what gives agents their skills, which are folders of instructions and programs.
// The operator's skills are missing until readSkills has read them.
func (s *Server) newSkills(walled func() (sandbox.Sandbox, error)) *skillfolders.Skills {
	return skillfolders.New(skillfolders.Config{
		Workspace: s.home.WorkspaceFiles,
		Agent:     agentName, Capabilities: s.capabilities, Watch: s.marker().WatchCommands,
		Runner: func() *skills.Runner {
			box, err := walled()
			if err != nil || box == nil {
				return nil
			}
			return &skills.Runner{Sandbox: box, Place: s.skillPlace, Changed: s.markChanged}
		},
	}, skillfolders.EmptyCatalog(s.settings.Load()))
}

// readSkills reads the operator's skills, if this process runs turns. If one of them has a fault,
// those that were read before stay in force.
func (s *Server) readSkills(c *config.Config) error {
	if !s.role.Works() {
		return nil
	}
	found := skillfolders.Find(c)
	if err := found.Err(); err != nil {
		return err
	}
	for _, p := range found.Minor() {
		s.log.Warn("what is said of skills has no effect", slog.Any("reason", p))
	}
	s.skills.Set(found)
	return nil
}

// warnOfSkillPrograms warns the operator of skills whose programs cannot be run, because
// there is no sandbox.
func (s *Server) warnOfSkillPrograms(box sandbox.Sandbox) {
	if names := s.skills.WithPrograms(); len(names) > 0 && box == nil {
		s.log.Warn("no sandbox works on this machine, so agents do not have the tools of these skills", slog.Any("skills", names))
	}
}

// maxKnowledgeNames is how many names of the operator's knowledge folder a prompt lists.
const maxKnowledgeNames = 50

// describeKnowledge returns, as a file of the prompt, which files the operator's knowledge folder has;
// none if there is no such folder.
func (s *Server) describeKnowledge() []prompt.File {
	if s.knowledge == nil {
		return nil
	}
	names, more := s.knowledge.Names(maxKnowledgeNames)
	text := "The operator keeps a folder for you, which nobody changes: " + knowledge.Folder + "/. Look there, with grep, list_directory and read_file, before you answer what it may be about. It has:\n- " + strings.Join(names, "\n- ")
	if more {
		text += "\n- and more"
	}
	return []prompt.File{{Name: knowledge.Folder + "/", From: "operator", Text: text}}
}

// memoryFiles returns the memory beyond the session that the prompt holds: the agent's,
// and the person's where nobody else reads along. The bool reports whether strangers may
// have written some of it.
func (s *Server) memoryFiles(ctx context.Context, who agent.Asker) (files []prompt.File, untrusted bool, err error) {
	person := who.Person
	if !who.Private {
		person = ""
	}
	ofAgent, ofPerson, err := s.memories.For(ctx, who.Session, who.Turn, agentName(who.Session), person)
	if err != nil {
		return nil, false, err
	}
	return []prompt.File{
		{Name: "MEMORY.md", From: "what you remember in all conversations (scope agent)", Text: ofAgent.Content},
		{Name: "MEMORY.md", From: "what you remember of whom you talk to (scope person)", Text: ofPerson.Content},
	}, ofAgent.Untrusted || ofPerson.Untrusted, nil
}

// opener adapts a file system's Open for prompt.Read.
func opener(files fs.FS) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) { return files.Open(name) }
}

// agentName returns the name of the agent in a session's key.
func agentName(session string) string {
	name, _, _ := strings.Cut(session, ":")
	return name
}

// channelOf returns the channel in a person's id.
func channelOf(person string) string {
	name, _, _ := strings.Cut(person, ":")
	return name
}
