package server

import (
	"sync/atomic"

	"parley/agent"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/models"
)

// limits limits what people may ask of agents, and what models may cost.
type limits struct {
	foundation
	cached atomic.Pointer[cachedLimits]
}

// cachedLimits holds the limits that were made from particular settings.
type cachedLimits struct {
	settings *config.Config
	limits   agent.Limits
}

// inForce returns how much people may ask of agents and how much models may cost, according to the
// current settings. Each message asks for the limits, so they are made once for each version of the
// settings.
func (l *limits) inForce() agent.Limits {
	c := l.settings.Load()
	if last := l.cached.Load(); last != nil && last.settings == c {
		return last.limits
	}
	made := models.LimitsIn(c)
	l.cached.Store(&cachedLimits{c, made})
	return made
}
