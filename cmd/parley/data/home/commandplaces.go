package home

import (
	"context"
	"errors"
	"io/fs"

	"parley/cmd/parley/config"
	"parley/tools"
	"parley/tools/sandbox"
)

// CommandPlaces determines where agents' commands run.
type CommandPlaces struct {
	Home *Home
	// MayUseNetwork reports whether a session's agent has the capability network.
	MayUseNetwork func(session string) bool
	Settings      func() *config.Config // the current settings
}

// place returns where the commands of a call run: in the folder path of the session's workspace ("" means the workspace
// itself), with the network if the agent may use it.
func (c *CommandPlaces) place(ctx context.Context, call tools.Call, path string) (sandbox.Place, error) {
	dir, err := c.Home.Workspace(call.Session)
	if err != nil {
		return sandbox.Place{}, err
	}
	opened, err := dir.Stat(".")
	if err != nil {
		return sandbox.Place{}, err
	}
	bytes, items := dir.Quota()
	p := sandbox.Place{
		Workspace: dir.Path(), Opened: opened, Quota: sandbox.Quota{Bytes: bytes, Items: items},
		Network: c.MayUseNetwork(call.Session), Personal: c.Home.IsOwn(call.Session),
	}
	if path == "" {
		return p, nil
	}
	if p.Dir, err = dir.Name(path); err != nil {
		return p, tools.Errorf(tools.InvalidPath, "%v", err)
	}
	info, err := dir.WithContext(ctx).Stat(p.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, tools.Errorf(tools.FileNotFound, "%v: list_directory shows what's there", err)
	case err != nil:
		return p, tools.Errorf(tools.InvalidPath, "%v", err)
	case !info.IsDir():
		return p, tools.Errorf(tools.InvalidPath, "%q is a file: give the folder of the repository", path)
	}
	return p, nil
}

// ForWorkspace returns where the commands of a call run that may use the whole workspace.
func (c *CommandPlaces) ForWorkspace(ctx context.Context, call tools.Call) (sandbox.Place, error) {
	return c.place(ctx, call, "")
}

// ForGit returns where git runs for a call, without the network. None of the git tools needs the
// network, and a program that an agent has made git run must not get it through them. Without a
// sandbox the network cannot be taken away.
func (c *CommandPlaces) ForGit(ctx context.Context, call tools.Call, path string) (sandbox.Place, error) {
	p, err := c.place(ctx, call, path)
	p.Network = p.Network && c.Settings().Sandbox.Mode == string(sandbox.None)
	return p, err
}

// ForSkill returns where a skill's program runs. A program that doesn't ask for the network gets none, like git; see
// ForGit.
func (c *CommandPlaces) ForSkill(ctx context.Context, call tools.Call, network bool) (sandbox.Place, error) {
	if network {
		return c.place(ctx, call, "")
	}
	return c.ForGit(ctx, call, "")
}
