package skillfolders

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"parley/tools"
	"parley/tools/guard"
	"parley/tools/sandbox"
	"parley/tools/skills"
	"parley/tools/skills/folder"
)

// Config holds the parts that Skills needs.
type Config struct {
	// Workspace returns the files of a session's workspace.
	Workspace func(session string) (fs.FS, error)
	// Agent returns the agent of a session.
	Agent func(session string) string
	// Capabilities returns what a session's agent may do.
	Capabilities func(session string) []tools.Permission
	// Runner returns the runner of skills' programs; nil if nothing can be run.
	Runner func() *skills.Runner
	// Propose records that an agent proposes a skill of its session's workspace.
	Propose func(ctx context.Context, call tools.Call, name string) error
	// Watch wraps tools that run programs in a workspace, to record which files strangers may have
	// written through them.
	Watch func([]tools.Tool) []tools.Tool
}

// Skills gives agents their skills: the operator's, and those of each session's
// workspace.
type Skills struct {
	cfg     Config
	catalog atomic.Pointer[Catalog]
	tool    tools.Tool // the tool with which a model reads a skill's instructions
	propose tools.Tool // the tool with which a model proposes a skill

	mu   sync.Mutex
	sets map[string]cachedTools // tools, by agent and permissions
}

// A cachedTools holds the tools of an agent without its skills (base), and with the tools that its skills
// add (all).
type cachedTools struct {
	catalog   *Catalog
	base, all *tools.Set
}

// New returns Skills; found are the operator's skills.
func New(c Config, found *Catalog) *Skills {
	s := &Skills{cfg: c, sets: map[string]cachedTools{}}
	s.tool = skills.New(func(_ context.Context, call tools.Call) ([]skills.Skill, error) { return s.skillsOf(call.Session) })
	s.propose = skills.NewPropose(c.Propose)
	s.Set(found)
	return s
}

// Set replaces the operator's skills. Turns that begin from now on get the new ones.
func (s *Skills) Set(found *Catalog) { s.catalog.Store(found) }

// skillsOf returns all skills of a session, the operator's first.
func (s *Skills) skillsOf(session string) ([]skills.Skill, error) {
	catalog := s.catalog.Load()
	of := catalog.OfAgent(s.cfg.Agent(session))
	for i := range of {
		for _, tool := range s.programs(of[i], session) {
			of[i].Tools = append(of[i].Tools, tool.Spec().Name)
		}
	}
	own, err := s.readOwn(session, catalog)
	return slices.Concat(of, own.skills, own.hidden), err
}

// programs returns the tools that a skill adds to a session, each of which runs a program. It
// returns those for which the session's agent has the permissions and the sandbox is strict enough,
// and none if nothing can be run.
func (s *Skills) programs(skill skills.Skill, session string) []tools.Tool {
	has, runner := s.cfg.Capabilities(session), s.cfg.Runner()
	if runner == nil {
		return nil
	}
	skill.Programs = slices.DeleteFunc(slices.Clone(skill.Programs), func(p folder.Program) bool {
		return !runner.CanRun(p) || slices.ContainsFunc(p.Needs, func(need tools.Permission) bool { return !slices.Contains(has, need) })
	})
	all := runner.Tools(skill)
	for i, p := range skill.Programs {
		if p.Workspace == folder.WriteAccess {
			copy(all[i:], s.cfg.Watch(all[i:i+1]))
		}
	}
	return all
}

// WithPrograms returns the names of the operator's skills that add tools.
func (s *Skills) WithPrograms() []string { return s.catalog.Load().WithPrograms() }

// Unsuited returns a problem for each of the operator's programs that needs a stricter sandbox than
// this mode.
func (s *Skills) Unsuited(mode sandbox.Mode) []folder.Problem {
	return s.catalog.Load().Unsuited(mode)
}

// sessionSkills are the skills in a session's workspace.
type sessionSkills struct {
	skills []skills.Skill
	// hidden are the skills whose description strangers may have contributed to.
	hidden   []skills.Skill
	problems []folder.Problem
}

// readOwn reads the skills in a session's workspace; none if the session's agent may not read files.
func (s *Skills) readOwn(session string, catalog *Catalog) (o sessionSkills, err error) {
	if !slices.Contains(s.cfg.Capabilities(session), tools.FileRead) {
		return o, nil
	}
	files, err := s.cfg.Workspace(session)
	if err != nil {
		return o, err
	}
	found, problems := folder.ReadIn(files, Folder)
	if len(found) == 0 && len(problems) == 0 {
		return o, nil
	}
	o.problems = problems
	marks := guard.ReadMarks(files)
	for _, one := range found {
		file := Folder + "/" + one.Name + "/" + folder.File
		switch skill := (skills.Skill{Skill: one, InWorkspace: true}); {
		case slices.Contains(catalog.settings.Skills.Off, one.Name):
		case slices.ContainsFunc(catalog.Skills, func(s skills.Skill) bool { return s.Name == one.Name }):
			o.problems = append(o.problems, folder.Problem{File: file, Wrong: "one of the operator's skills has the same name", Remedy: "rename it and its folder"})
		case marks.MayContain(file):
			o.hidden = append(o.hidden, skill)
		default:
			o.skills = append(o.skills, skill)
		}
	}
	return o, nil
}

// Prompt returns what a session's prompt says about skills: about the operator's, and about those
// in its workspace.
func (s *Skills) Prompt(session string) (operator, workspace string, err error) {
	catalog := s.catalog.Load()
	o, err := s.readOwn(session, catalog)
	return skills.OperatorPrompt(catalog.OfAgent(s.cfg.Agent(session))), skills.SessionPrompt(o.skills, o.problems, len(o.hidden)), err
}

// With returns a session's tools base, together with the tools that its skills add, the tool that reads skills and,
// if the agent may propose skills, the tool that proposes them. If the session has no skills and may propose none, it
// returns base.
func (s *Skills) With(base *tools.Set, session string) *tools.Set {
	if len(s.catalog.Load().OfAgent(s.cfg.Agent(session))) == 0 && !s.mayPropose(session) && !s.hasOwn(session) {
		return base
	}
	return s.with(base, session)
}

// WithOperators is like With, but doesn't look for skills in the session's workspace.
func (s *Skills) WithOperators(base *tools.Set, session string) *tools.Set {
	if len(s.catalog.Load().OfAgent(s.cfg.Agent(session))) == 0 && !s.mayPropose(session) {
		return base
	}
	return s.with(base, session)
}

// mayPropose reports whether a session's agent may propose skills.
func (s *Skills) mayPropose(session string) bool {
	return s.catalog.Load().settings.Skills.Propose && slices.Contains(s.cfg.Capabilities(session), tools.FileWrite)
}

// List returns the operator's skills, including those that no agent has.
func (s *Skills) List() []ListedSkill { return s.catalog.Load().List() }

// with returns the tools base, together with those that skills add, and the tool that reads skills.
func (s *Skills) with(base *tools.Set, session string) *tools.Set {
	catalog, agent := s.catalog.Load(), s.cfg.Agent(session)
	of := catalog.OfAgent(agent)
	key := fmt.Sprint(agent, s.cfg.Capabilities(session))
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, ok := s.sets[key]; ok && made.catalog == catalog && made.base == base {
		return made.all
	}
	more := []tools.Tool{s.tool}
	if s.mayPropose(session) {
		more = append(more, s.propose)
	}
	for _, skill := range of {
		more = append(more, s.programs(skill, session)...)
	}
	all := base.With(more...)
	s.sets[key] = cachedTools{catalog, base, all}
	return all
}

// hasOwn reports whether there may be skills in a session's own workspace.
func (s *Skills) hasOwn(session string) bool {
	if !slices.Contains(s.cfg.Capabilities(session), tools.FileRead) {
		return false
	}
	files, err := s.cfg.Workspace(session)
	if err != nil {
		return false // the turn will report why
	}
	info, err := fs.Stat(files, Folder)
	return err == nil && info.IsDir()
}
