// Package attachments keeps in sessions' workspaces what people send and models look at.
//
// fetch.go fetches files that came with a message, names.go finds their names and types;
// pictures.go prepares the pictures that models are shown.
package attachments

import (
	"context"
	"log/slog"

	"parley/agent/pictures"
	"parley/channels"
	"parley/sessions/workspace"
	"parley/tools"
)

// Config holds the parts that a Keeper works with.
type Config struct {
	// Workspace opens a session's workspace to read from it.
	Workspace func(session string) (*workspace.Dir, error)
	// Writable opens the workspace for a call, which may write to it for a while.
	Writable func(ctx context.Context, call tools.Call) (*workspace.Dir, error)
	// Sees reports whether the model of a session may see pictures.
	Sees func(session string) bool
	// Fetcher returns the Fetcher of a channel, and how large a file may be in bytes; nil
	// if the channel cannot fetch files.
	Fetcher func(channel string) (from channels.Fetcher, most int64)
	// Words, if set, returns the Transcriber of recordings; nil if none is configured.
	Words func() Transcriber
	Log   *slog.Logger
}

// A Transcriber turns the speech in a recording into text.
type Transcriber interface {
	Words(ctx context.Context, name string, recording []byte) (string, error)
}

// fetchesAtOnce is how many files are held in memory at a time.
const fetchesAtOnce = 8

// A Keeper keeps files in sessions' workspaces.
type Keeper struct {
	cfg    Config
	fitter *pictures.Fitter
	slots  chan struct{} // for files in memory
}

// New makes a Keeper.
func New(cfg Config) *Keeper {
	return &Keeper{cfg: cfg, fitter: pictures.New(), slots: make(chan struct{}, fetchesAtOnce)}
}
