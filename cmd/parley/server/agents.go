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
	"parley/agent/prompt"
	"parley/bus"
	"parley/bus/timers"
	"parley/cmd/parley/config"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/home"
	"parley/cmd/parley/skillfolders"
	"parley/tools/knowledge"
	"parley/tools/sandbox"
	"parley/tools/skills"
)

// work runs the worker, and beside it what is done at times.
func (s *Server) work(ctx context.Context) error {
	due := timers.Clock{Bus: s.home.Bus, Log: s.log, Handlers: map[string]timers.Handler{
		bus.AskTimer: s.desk.Fire, bus.ScheduleTimer: s.clock.Fire,
	}}
	all, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{s.answer, due.Run, s.desk.Run, s.clock.Run, s.heart.Run} {
		all.Go(func() error { return run(ctx) })
	}
	return all.Wait()
}

// answer runs the worker.
func (s *Server) answer(ctx context.Context) error {
	c := s.settings.Load()
	return agent.New(agent.Config{
		Bus: s.home.Bus, Events: s.home.Bus, Store: s.home.Store, Budget: s.home.Store, Money: s.home.Store.Money(),
		Agents: s.agent, Limits: s.limits, Healthy: s.healthy, Prefix: s.commandPrefix, Asks: s.desk, Approvals: s.approvals,
		Jobs: s.jobs, History: s.history, Deserted: deserted, Admit: s.admit, Account: s.home.Book.Account, Usage: s.billing.Answer,
		MaxInFlight: c.Serve.MaxInFlight, Drain: c.Serve.Drain, Log: s.log, Observer: s.metrics, Audit: s.trail.Record, Point: s.point,
	}).Run(ctx)
}

// healthy tells whether sessions have what they need: the store, and the files.
// It reads before it writes, because only the reading ends with ctx.
func (s *Server) healthy(ctx context.Context) error {
	if _, err := s.home.Store.List(ctx, "", 1); err != nil {
		return err
	}
	if err := s.home.Store.Writable(ctx); err != nil {
		return err
	}
	if root := s.settings.Load().Workspace.Root; s.settings.Load().Store.URL != "" {
		_, err := os.Stat(root)
		return err
	}
	return nil
}

func (s *Server) limits() agent.Limits {
	c := s.settings.Load()
	l, beat, budget := c.Limits, c.Heartbeat, c.Budget
	return agent.Limits{
		Turns: l.UserTurns, TurnsHour: l.UserTurnsHour, TokensDay: l.UserTokensDay, MaxWaiting: l.Waiting,
		TokensAlways: l.TokensWritten, UserDay: budget.UserDay, SessionDay: budget.SessionDay, Day: budget.Day, Month: budget.Month,
		TokensDayOf: map[string]int64{heartbeat.Person(beat.Agent): min(beat.TokensDay, l.UserTokensDay)},
		UserDayOf:   map[string]int64{heartbeat.Person(beat.Agent): min(beat.Day, budget.UserDay)},
	}
}

// agent is the agent of a session, which its key names, as it is configured now.
func (s *Server) agent(ctx context.Context, session string) (agent.Agent, error) {
	name := agentName(session)
	a, ok := s.settings.Load().Agents[name]
	if !ok {
		return agent.Agent{}, fmt.Errorf("no agent is named %q in the configuration", name)
	}
	all, err := s.tools()
	if err != nil {
		return agent.Agent{}, err
	}
	guarding := s.guard.Load()
	return agent.Agent{
		Name: name, Model: s.model, Known: all, Tools: s.skills.With(s.mcp.With(ctx, s.granted(all, s.capabilities(session)), name, isOwners(session)), session),
		Prompt: s.prompt, Keep: s.keep, Named: s.named, Untrusted: s.promptUntrusted,
		Enclose: s.encloseShown, Picture: s.files.Picture, Fetch: s.files.Fetch, MayNote: s.home.MayNote, MaySumUp: s.home.MaySumUp, Discard: s.discard,
		Guard: s.decide, Before: guarding.before, After: guarding.after, Redact: guarding.redact,
		MaxIterations: a.MaxToolIterations, ErrorLimit: a.ToolErrorLimit,
		MaxParallelTools: a.MaxParallelTools, ContextTokens: s.window(a.ContextTokens), Day: a.Day, Steer: a.Queue == "steer",
	}, nil
}

// window is how much of the context may be used: what is configured, or what
// the model has, the lesser.
func (s *Server) window(configured int) int {
	if has := s.model.Info().ContextTokens; has > 0 {
		return min(configured, has)
	}
	return configured
}

// prompt is the prefix of a session's prompt: what the operator has written in
// the home, what stands in the session's workspace, and its memory.
func (s *Server) prompt(ctx context.Context, who agent.Asker) (string, bool, error) {
	session := who.Session
	remembered, untrusted, err := s.remembered(ctx, who)
	if err != nil {
		return "", false, err
	}
	ofOperator, ofSession, err := s.skills.Prompt(session)
	if err != nil {
		return "", false, home.Unusable(s.home.Root, err)
	}
	files := os.DirFS(s.settings.Load().Home)
	made, err := prompt.Builder{Instructions: s.settings.Load().Agents[agentName(session)].Prompt, Sources: []prompt.Source{
		func(context.Context, string) ([]prompt.File, error) {
			return append(prompt.Read(opener(files), "home", "AGENTS.md", "SOUL.md"), prompt.File{Name: "skills", From: "operator", Text: ofOperator}), nil
		},
		func(_ context.Context, session string) ([]prompt.File, error) {
			dir, err := s.home.Workspace(session)
			if err != nil {
				return nil, home.Unusable(s.home.Root, err)
			}
			all := prompt.Read(opener(dir), "workspace", "AGENTS.md")
			all = append(all, prompt.File{Name: "skills", From: "workspace", Text: ofSession})
			return append(all, prompt.Read(opener(dir), "workspace", "MEMORY.md")...), nil
		},
		func(context.Context, string) ([]prompt.File, error) {
			return slices.Concat(s.toldOfKnowledge(), ofPerson(files, who), remembered), nil
		},
	}}.Build(ctx, session)
	if err != nil {
		return "", false, err
	}
	// Most sessions have the same: thousands of turns in flight then share it.
	if last := s.lastPrompt.Load(); last != nil && *last == made {
		return *last, untrusted, nil
	}
	s.lastPrompt.Store(&made)
	return made, untrusted, nil
}

// ofPerson is what the operator has written of whom the agent talks to, in the home in
// users/CHANNEL:USER.md. Nobody else is to read it, so it is for private chats alone.
func ofPerson(files fs.FS, who agent.Asker) []prompt.File {
	if !who.Private || who.Person == "" || strings.ContainsAny(who.Person, "/\\") {
		return nil
	}
	all := prompt.Read(opener(files), "whom you talk to, by the operator", path.Join("users", who.Person+".md"))
	for i := range all {
		all[i].Name = "USER.md"
	}
	return all
}

// newSkills makes what gives agents skills, without any of the operator's until these are read.
func (s *Server) newSkills(walled func() (sandbox.Sandbox, error)) *skillfolders.Skills {
	return skillfolders.New(skillfolders.Config{
		Workspace: func(session string) (fs.FS, error) { return s.home.Workspace(session) },
		Agent:     agentName, Capabilities: s.capabilities, Watch: s.marker().WatchCommands,
		Runner: func() *skills.Runner {
			box, err := walled()
			if err != nil || box == nil {
				return nil
			}
			return &skills.Runner{Sandbox: box, Place: s.placeOfProgram, Changed: s.changed}
		},
	}, skillfolders.None(s.settings.Load()))
}

// readSkills reads the operator's skills, where agents work. If one is wrong, those that
// there were stay.
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

// warnOfTools tells the operator of skills whose programs cannot be run.
func (s *Server) warnOfTools(box sandbox.Sandbox) {
	if names := s.skills.WithPrograms(); len(names) > 0 && box == nil {
		s.log.Warn("no sandbox works on this machine, so agents do not have the tools of these skills", slog.Any("skills", names))
	}
}

// mostKnown is how many names of the operator's folder a prompt has.
const mostKnown = 50

// toldOfKnowledge is what the prompt says of the operator's folder.
func (s *Server) toldOfKnowledge() []prompt.File {
	if s.knowledge == nil {
		return nil
	}
	names, more := s.knowledge.Names(mostKnown)
	text := "The operator keeps a folder for you, which nobody changes: " + knowledge.Folder + "/. Look there, with grep, list_directory and read_file, before you answer what it may be about. It has:\n- " + strings.Join(names, "\n- ")
	if more {
		text += "\n- and more"
	}
	return []prompt.File{{Name: knowledge.Folder + "/", From: "operator", Text: text}}
}

// remembered is what the prompt holds of what is remembered beyond the session: of the
// agent, and of the person where nobody else reads along.
func (s *Server) remembered(ctx context.Context, who agent.Asker) (files []prompt.File, untrusted bool, err error) {
	person := who.Person
	if !who.Private {
		person = ""
	}
	ofAgent, ofPerson, err := s.home.Book.RecallFor(ctx, agentName(who.Session), person)
	if err != nil {
		return nil, false, err
	}
	return []prompt.File{
		{Name: "MEMORY.md", From: "what you remember in all conversations (scope agent)", Text: ofAgent.Content},
		{Name: "MEMORY.md", From: "what you remember of whom you talk to (scope person)", Text: ofPerson.Content},
	}, ofAgent.Untrusted || ofPerson.Untrusted, nil
}

func opener(files fs.FS) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) { return files.Open(name) }
}

// agentName is the agent in a session's key.
func agentName(session string) string {
	name, _, _ := strings.Cut(session, ":")
	return name
}

func channelOf(person string) string {
	name, _, _ := strings.Cut(person, ":")
	return name
}
