// Package attachments keeps in sessions' workspaces what people send and models look at.
//
// fetch.go fetches what came with a message, names.go says what it is called and what it
// is; pictures.go is for the pictures that models are shown.
package attachments

import (
	"context"
	"log/slog"

	"parley/agent/pictures"
	"parley/channels"
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
	// Fetcher gives what fetches the files of a channel, and how large one may be in
	// bytes; nil where the channel cannot.
	Fetcher func(channel string) (from channels.Fetcher, most int64)
	// Words, if set, gives what writes down recordings; nil where nothing is configured.
	Words func() Transcriber
	Log   *slog.Logger
}

// A Transcriber writes down what a recording says.
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
