package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/documents"
	"parley/tools/documents/pages"
	"parley/tools/files"
	"parley/tools/guard"
	"parley/tools/nodes"
	"parley/tools/nodes/background"
	"parley/tools/nodes/camera"
	"parley/tools/sandbox"
	"parley/tools/shell"
	"parley/tools/skills"
	"parley/tools/skills/folder"
)

// session is the session of all calls, because they all work in the same place.
const session = "node:node"

// An equipment is what a node offers. All calls work in one folder, whichever conversation they come from.
type equipment struct {
	config       *config.Config
	log          *slog.Logger
	workspaces   *workspace.Workspaces
	dir          *workspace.Dir
	box          sandbox.Sandbox // nil if no sandbox works
	tools        *tools.Set
	job          tools.Tool // nil if no sandbox works
	capabilities []string
}

// equip makes the tools of a node. If no sandbox works, it makes none that runs commands, and logs why.
func equip(ctx context.Context, c *config.Config, log *slog.Logger) (_ *equipment, err error) {
	place := filepath.Join(c.Home, workspaceFolder)
	if err := os.MkdirAll(place, 0o700); err != nil {
		return nil, fmt.Errorf("make the workspace: %w", err)
	}
	e := &equipment{config: c, log: log, capabilities: []string{"files"}}
	if e.workspaces, err = workspace.OpenFixed(place); err != nil {
		return nil, err
	}
	if e.dir, err = e.workspaces.Open(session); err != nil {
		e.close()
		return nil, err
	}
	own := *c
	own.Workspace.Root = place
	if e.box, err = home.OpenSandbox(ctx, &own, true, log, func(string) {}); err != nil {
		e.close()
		return nil, err
	}
	all := files.New(e.open, e.documents())
	if e.box != nil {
		e.capabilities = append(e.capabilities, "exec", nodes.Jobs)
		e.job = background.New(background.Config{Sandbox: e.box, Place: e.place, Create: func(ctx context.Context, path string) (io.WriteCloser, error) {
			return e.dir.WithContext(ctx).Create(path)
		}})
		all = append(all, shell.NewForeground(shell.Config{Sandbox: e.box, Place: e.place, Changed: func(tools.Call) {}}))
		all = append(all, e.skillTools()...)
	} else if c.Node.Skills != "" {
		log.Warn("no sandbox works on this device, so it does not offer its skills")
	}
	if len(c.Node.Camera) > 0 {
		e.capabilities = append(e.capabilities, "camera")
		all = append(all, camera.New(camera.Config{Command: c.Node.Camera, Write: func(ctx context.Context, _ tools.Call, name string, content []byte) error {
			return e.dir.WithContext(ctx).Write(name, content)
		}}))
	}
	e.tools = tools.NewSet(all...)
	return e, nil
}

// close closes the workspace.
func (e *equipment) close() { _ = e.workspaces.Close() }

// open opens the folder for the file tools.
func (e *equipment) open(ctx context.Context, _ tools.Call) (files.Dir, error) {
	return e.dir.WithContext(ctx), nil
}

// documents returns the reader of files that are not plain text; nil without a sandbox, as on a server.
func (e *equipment) documents() pages.Reader {
	if e.box == nil {
		return nil
	}
	return documents.Reader{Sandbox: e.box, Log: e.log}
}

// place returns where commands run. They can reach the network as [sandbox] network says.
func (e *equipment) place(context.Context, tools.Call) (sandbox.Place, error) {
	opened, err := e.dir.Stat(".")
	if err != nil {
		return sandbox.Place{}, tools.DirError(err)
	}
	return sandbox.Place{Workspace: e.dir.Path(), Opened: opened, Network: true}, nil
}

// skillPlace returns where the program of a skill runs. The program has the network only if its manifest asks for it.
// Without a sandbox, it can't be denied the network.
func (e *equipment) skillPlace(ctx context.Context, call tools.Call, network bool) (sandbox.Place, error) {
	p, err := e.place(ctx, call)
	p.Network = network || e.config.Sandbox.Mode == string(sandbox.None)
	return p, err
}

// skillTools returns the programs of the skills in [node] skills.
func (e *equipment) skillTools() (all []tools.Tool) {
	if e.config.Node.Skills == "" {
		return nil
	}
	runner := skills.Runner{Sandbox: e.box, Mode: sandbox.ModeOf(e.box), Place: e.skillPlace, Changed: func(tools.Call) {}}
	found, problems := folder.Find(e.config.Node.Skills)
	for _, p := range problems {
		e.log.Warn("a skill, or a part of it, cannot be used", slog.String("skill", p.Skill), slog.Any("reason", p))
	}
	for _, s := range found {
		usable := s
		usable.Programs = nil
		for _, p := range s.Programs {
			if runner.CanRun(p) {
				usable.Programs = append(usable.Programs, p)
				continue
			}
			e.log.Warn("a tool of a skill is for a stricter sandbox than works here, so it is not offered", slog.String("skill", s.Name), slog.String("tool", p.Name))
		}
		all = append(all, runner.Tools(skills.Skill{Skill: usable})...)
	}
	return all
}

// denyRules returns the node's own rules for calls that it never runs.
func (e *equipment) denyRules(deny []string) guard.Config {
	return e.guardConfig(guard.Policy{Deny: deny})
}

// askRules returns the node's own rules for calls that it runs only with a person's approval.
func (e *equipment) askRules(about []string) (*guard.Guard, error) {
	return guard.New(e.guardConfig(guard.Policy{Ask: about}))
}

// guardConfig returns a configuration for rules about calls.
func (e *equipment) guardConfig(own guard.Policy) guard.Config {
	return guard.Config{
		AllAgents: own, ReadingCall: files.Reading,
		Path: func(_ tools.Call, path string) string {
			if name, err := e.dir.Name(path); err == nil {
				return name
			}
			return path // the tool refuses it, too
		},
	}
}
