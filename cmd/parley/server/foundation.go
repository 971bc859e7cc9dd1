package server

import (
	"log/slog"
	"sync/atomic"
	"time"

	"parley/agent/metrics"
	"parley/bus"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/sessions/search"
	"parley/tools/canvas"
	"parley/tools/process"
)

// A foundation is what all parts of a server are made from.
type foundation struct {
	home     *home.Home
	settings *settings
	words    *search.Meanings // the index of what was said
	role     Role
	log      *slog.Logger
	recent   *process.Log // the newest lines of the log
	metrics  *metrics.Metrics
	traces   traces
	version  string // the version of this program
	started  time.Time
	canvases *canvas.Reader // reads what agents draw, for them and for the web page
	point    func(string)   // called where a test may kill the process; nil except in chaos builds
}

// settings are the current settings, which a reload replaces. They are loaded again for each use.
type settings struct{ atomic.Pointer[config.Config] }

// newSettings returns settings that are initially c.
func newSettings(c *config.Config) *settings {
	s := &settings{}
	s.Store(c)
	return s
}

// Reload implements reloader: applying it makes the next settings the current ones.
func (s *settings) Reload(next *config.Config) (apply func(), err error) {
	return func() { s.Store(next) }, nil
}

// places returns the addresses that a list of targets and addresses refers to.
func (s *settings) places(written []string) []bus.Address { return s.Load().Places(written) }
