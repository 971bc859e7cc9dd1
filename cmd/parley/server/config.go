package server

import (
	"log/slog"

	"parley/agent/metrics"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/models"
)

// A Config holds what Open needs to make a server.
type Config struct {
	Settings *config.Config
	Models   models.Lists // empty if no model answers
	Role     Role
	// Override names a directory that one session uses as its workspace instead of a folder of its own.
	Override home.WorkspaceOverride
	// Commands lets agents run commands if a sandbox works. The program must have called sandbox.Main at its start,
	// because the sandbox runs the same program as supervisor.
	Commands bool
	Build    metrics.Build // the build of this program
	// Doctor makes the part that tells programs what is wrong; nil if there is none. plain removes secrets from a
	// text.
	Doctor func(settings func() *config.Config, plain func(text string) string, log *slog.Logger) any
	// Reload reads the configuration again. A single command needs none.
	Reload func() (*config.Config, error)
	// Offer shows the operator a text with a link or a code: an invitation to become the owner of a bot that has none,
	// or the link to the web page.
	Offer func(text string)
	// AtTerminal says that only the person who has started the server sees what Offer shows, rather than a log that
	// is kept.
	AtTerminal bool
	Log        *slog.Logger
}
