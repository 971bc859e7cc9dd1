package server

import (
	"maps"
	"slices"
	"time"

	"parley/channels/why"
	"parley/cmd/parley/api"
	"parley/cmd/parley/api/exchange"
)

// aboutMessages reports what became of messages.
type aboutMessages struct{ *why.Why }

// Routes returns the route that the API serves.
func (a aboutMessages) Routes() []exchange.Route { return api.WhyRoutes(a.Tell) }

// newWhy returns the part that reports what became of messages.
func newWhy(on foundation, a *auditing) aboutMessages {
	return aboutMessages{why.New(why.Config{
		Sessions: on.home.Store, Book: on.home.Book, Mail: on.home.Bus, Refusals: a.Records,
		Agents:  func() []string { return slices.Sorted(maps.Keys(on.settings.Load().Agents)) },
		KeptFor: func() time.Duration { return time.Duration(on.settings.Load().Retention.Days) * 24 * time.Hour },
	})}
}
