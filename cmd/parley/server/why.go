package server

import (
	"maps"
	"slices"
	"time"

	"parley/cmd/parley/server/why"
)

// newWhy makes the part that says what became of messages.
func newWhy(on foundation, a *auditing) *why.Why {
	return why.New(why.Config{
		Sessions: on.home.Store, Book: on.home.Book, Mail: on.home.Bus, Refusals: a.Records,
		Agents: func() []string { return slices.Sorted(maps.Keys(on.settings.Load().Agents)) },
		Kept:   func() time.Duration { return time.Duration(on.settings.Load().Retention.Days) * 24 * time.Hour },
	})
}
