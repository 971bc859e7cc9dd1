package server

import (
	"context"
	"log/slog"

	"parley/channels/owners"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/skillfolders"
	"parley/sessions"
	"parley/tools"
	"parley/tools/guard"
	"parley/tools/sandbox"
	"parley/tools/skills"
)

// agentSkills are agents' skills, which are folders of instructions and programs.
type agentSkills struct {
	foundation
	*skillfolders.Skills
	*skillfolders.Proposals
}

// newSkills returns the skills. The operator's are missing until Load has read them.
func newSkills(on foundation, box *commandSandbox, o *owners.Owners, r *rights, w *home.CallWorkspaces, where *home.CommandPlaces, marks guard.Marker) *agentSkills {
	k := &agentSkills{foundation: on}
	k.Skills = skillfolders.New(skillfolders.Config{
		Workspace: on.home.WorkspaceFiles,
		Agent:     sessions.AgentOf, Capabilities: r.capabilities, Watch: marks.Watch,
		Runner: func() *skills.Runner {
			works, err := box.open()
			if err != nil || works == nil {
				return nil
			}
			return &skills.Runner{Sandbox: works, Mode: sandbox.ModeOf(works), Place: where.ForSkill, Changed: w.MarkChanged}
		},
		Propose: func(ctx context.Context, call tools.Call, name string) error { return k.Propose(ctx, call, name) },
	}, skillfolders.EmptyCatalog(on.settings.Load()))
	k.Proposals = skillfolders.NewProposals(k.Skills, on.home.Book, o.Notify, func() error { return k.read(on.settings.Load()) })
	return k
}

// Load reads the operator's skills.
func (k *agentSkills) Load(context.Context) error { return k.read(k.settings.Load()) }

// Reload implements reloader: applying it reads the operator's skills again. If they can't be read, the old ones stay.
func (k *agentSkills) Reload(next *config.Config) (apply func(), err error) {
	return func() {
		if err := k.read(next); err != nil {
			k.log.Error("the skills cannot be read again; the old ones stay in force", slog.Any("error", err))
		}
	}, nil
}

// read reads the operator's skills, if this process runs turns. It leaves out those that cannot be
// used. If the settings are wrong, the skills that were read before stay in use.
func (k *agentSkills) read(c *config.Config) error {
	if !k.role.Works() {
		return nil
	}
	found := skillfolders.Find(c)
	if err := found.Err(); err != nil {
		return err
	}
	for _, p := range found.Minor() {
		k.log.Warn("what is said of skills has no effect", slog.Any("reason", p))
	}
	for _, p := range found.LeftOut() {
		k.log.Warn("a skill cannot be used, and agents do without it", slog.String("skill", p.Skill), slog.Any("reason", p))
	}
	k.Set(found)
	return nil
}

// warnOfPrograms warns the operator about skills whose programs cannot be run, because there is no
// sandbox, or because they were written for a stricter one.
func (k *agentSkills) warnOfPrograms(box sandbox.Sandbox) {
	if names := k.WithPrograms(); len(names) > 0 && box == nil {
		k.log.Warn("no sandbox works on this machine, so agents do not have the tools of these skills", slog.Any("skills", names))
	}
	if box == nil {
		return
	}
	for _, p := range k.Unsuited(sandbox.ModeOf(box)) {
		k.log.Warn("a tool of a skill cannot run in this sandbox, and agents do without it", slog.String("skill", p.Skill), slog.Any("reason", p))
	}
}
