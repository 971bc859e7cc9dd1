// Package attachments stores the files that people send, and the pictures that models look at, in the workspaces of
// sessions.
//
// fetch.go fetches files that came with a message; uploads.go stores those that arrive over HTTP and from terminals
// until they are fetched, because no platform does that for them; names.go determines their names and types;
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

// Config holds what a Keeper needs from the rest of the program.
type Config struct {
	// Workspace opens a session's workspace for reading.
	Workspace func(session string) (*workspace.Dir, error)
	// Writable opens the workspace for a tool call, which may write to it for a while.
	Writable func(ctx context.Context, call tools.Call) (*workspace.Dir, error)
	// SeesPictures reports whether the model that answers in a session can be shown pictures.
	SeesPictures func(session string) bool
	// Fetcher returns the Fetcher that downloads files from a channel's platform, and how large a file may be in
	// bytes; nil if the channel cannot fetch files.
	Fetcher func(channel string) (from channels.Fetcher, most int64)
	// Transcriber, if set, returns the Transcriber that turns voice messages into text, or nil if none is configured.
	Transcriber func() Transcriber
	Log         *slog.Logger
}

// A Transcriber turns the speech in a recording into text. name is the recording's file name. An error wraps
// transcribe.ErrRefused if the server refuses this recording.
type Transcriber interface {
	Words(ctx context.Context, name string, recording []byte) (string, error)
}

// fetchesAtOnce is how many files a Keeper downloads at a time, because it downloads each into memory.
const fetchesAtOnce = 8

// A Keeper downloads the files that come with messages into sessions' workspaces, and prepares the pictures that
// models are shown.
type Keeper struct {
	cfg    Config
	fitter *pictures.Fitter
	slots  chan struct{} // has one element for each running download
}

// New returns a Keeper.
func New(cfg Config) *Keeper {
	return &Keeper{cfg: cfg, fitter: pictures.New(), slots: make(chan struct{}, fetchesAtOnce)}
}
