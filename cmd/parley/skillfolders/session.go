package skillfolders

import (
	"context"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"parley/tools"
	"parley/tools/guard"
	"parley/tools/skills"
	"parley/tools/skills/folder"
)

// Config is what Skills work with.
type Config struct {
	// Workspace opens a session's workspace.
	Workspace func(session string) (fs.FS, error)
	// Agent is the agent of a session.
	Agent func(session string) string
	// Capabilities are what a session's agent may do.
	Capabilities func(session string) []tools.Permission
}

// Skills are those that agents have: the operator's, and those of each session's workspace.
type Skills struct {
	cfg     Config
	catalog atomic.Pointer[Catalog]
	tool    tools.Tool // gives what a skill says

	mu   sync.Mutex
	sets map[string]set // tools, by what they were made for
}

// A set is an agent's tools, as they are over others.
type set struct {
	catalog   *Catalog
	base, all *tools.Set
}

// New makes Skills of the operator's.
func New(c Config, found *Catalog) *Skills {
	s := &Skills{cfg: c, sets: map[string]set{}}
	s.tool = skills.New(func(_ context.Context, call tools.Call) ([]skills.Skill, error) { return s.of(call.Session) })
	s.Set(found)
	return s
}

// Set has the turns that begin from now on have these in place of the operator's skills.
func (s *Skills) Set(found *Catalog) { s.catalog.Store(found) }

// of are all skills that a session has, those of the operator first.
func (s *Skills) of(session string) ([]skills.Skill, error) {
	catalog := s.catalog.Load()
	own, err := s.own(session, catalog)
	return slices.Concat(catalog.Of(s.cfg.Agent(session)), own.skills, own.hidden), err
}

// An own is what lies in a session's workspace.
type own struct {
	skills []skills.Skill
	// hidden are those in whose description strangers may have a hand.
	hidden   []skills.Skill
	problems []folder.Problem
}

// own reads the skills of a session's workspace.
func (s *Skills) own(session string, catalog *Catalog) (o own, err error) {
	if !slices.Contains(s.cfg.Capabilities(session), tools.FileRead) {
		return o, nil
	}
	files, err := s.cfg.Workspace(session)
	if err != nil {
		return o, err
	}
	found, problems := folder.In(files, Folder)
	if len(found) == 0 && len(problems) == 0 {
		return o, nil
	}
	o.problems = problems
	marks := guard.ReadMarks(files)
	for _, one := range found {
		file := Folder + "/" + one.Name + "/" + folder.File
		switch skill := (skills.Skill{Skill: one, Session: true}); {
		case slices.Contains(catalog.settings.Skills.Off, one.Name):
		case slices.ContainsFunc(catalog.Skills, func(s skills.Skill) bool { return s.Name == one.Name }):
			o.problems = append(o.problems, folder.Problem{File: file, Wrong: "a skill of the operator's has its name", Remedy: "give it and its folder another"})
		case marks.All || marks.Has(file):
			o.hidden = append(o.hidden, skill)
		default:
			o.skills = append(o.skills, skill)
		}
	}
	return o, nil
}

// Prompt is what a session's prompt says of skills: of the operator's, and of those of its
// workspace.
func (s *Skills) Prompt(session string) (operator, workspace string, err error) {
	catalog := s.catalog.Load()
	o, err := s.own(session, catalog)
	return skills.OfOperator(catalog.Of(s.cfg.Agent(session))), skills.OfSession(o.skills, o.problems, len(o.hidden)), err
}

// With is a session's tools with those of its skills: none where it has no skills.
func (s *Skills) With(base *tools.Set, session string) *tools.Set {
	catalog, agent := s.catalog.Load(), s.cfg.Agent(session)
	if len(catalog.Of(agent)) == 0 && !s.hasOwn(session) {
		return base
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, ok := s.sets[agent]; ok && made.catalog == catalog && made.base == base {
		return made.all
	}
	all := base.With(s.tool)
	s.sets[agent] = set{catalog, base, all}
	return all
}

// hasOwn tells whether there may be skills in a session's workspace.
func (s *Skills) hasOwn(session string) bool {
	if !slices.Contains(s.cfg.Capabilities(session), tools.FileRead) {
		return false
	}
	files, err := s.cfg.Workspace(session)
	if err != nil {
		return false // the turn will say why
	}
	info, err := fs.Stat(files, Folder)
	return err == nil && info.IsDir()
}
