package server

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"parley/tools"
	"parley/tools/sandbox"
)

// commandPlaces determines where agents' commands run.
type commandPlaces struct {
	foundation
	rights *rights
}

// place returns where the commands of a call run: in the folder path of the session's workspace ("" means the workspace
// itself), with the network if the agent may use it.
func (c *commandPlaces) place(ctx context.Context, call tools.Call, path string) (sandbox.Place, error) {
	dir, err := c.home.Workspace(call.Session)
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
		Network: slices.Contains(c.rights.capabilities(call.Session), tools.Network), Personal: c.home.IsOwn(call.Session),
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

// workspacePlace returns where the commands of a call run that may use the whole workspace.
func (c *commandPlaces) workspacePlace(ctx context.Context, call tools.Call) (sandbox.Place, error) {
	return c.place(ctx, call, "")
}

// gitPlace returns where git runs for a call, without the network. None of the git tools needs the
// network, and a program that an agent has made git run must not get it through them. Without a
// sandbox the network cannot be taken away.
func (c *commandPlaces) gitPlace(ctx context.Context, call tools.Call, path string) (sandbox.Place, error) {
	p, err := c.place(ctx, call, path)
	p.Network = p.Network && c.settings.Load().Sandbox.Mode == string(sandbox.None)
	return p, err
}

// skillPlace returns where a skill's program runs. A program that doesn't ask for the network gets none, like git; see
// gitPlace.
func (c *commandPlaces) skillPlace(ctx context.Context, call tools.Call, network bool) (sandbox.Place, error) {
	if network {
		return c.place(ctx, call, "")
	}
	return c.gitPlace(ctx, call, "")
}
