// Package attachments keeps in sessions' workspaces what models look at.
//
// pictures.go is for the pictures that they are shown.
package attachments

import (
	"context"

	"parley/agent/pictures"
	"parley/sessions/workspace"
	"parley/tools"
)

// Config is what a Keeper works with.
type Config struct {
	// Workspace opens a session's workspace to read from it.
	Workspace func(session string) (*workspace.Dir, error)
	// Writable opens the workspace for a call, which may write to it for a while.
	Writable func(ctx context.Context, call tools.Call) (*workspace.Dir, error)
	// Sees tells whether the model of a session may see pictures.
	Sees func(session string) bool
}

// A Keeper keeps files in sessions' workspaces.
type Keeper struct {
	cfg    Config
	fitter *pictures.Fitter
}

// New makes a Keeper.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg, fitter: pictures.New()} }
