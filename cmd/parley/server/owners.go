package server

import (
	"parley/bus"
	"parley/channels/owners"
)

// newOwners returns the owners in the settings and in the book.
func newOwners(on foundation) *owners.Owners {
	return &owners.Owners{
		Bus: on.home.Bus, Book: on.home.Book, Log: on.log,
		ConfiguredOwners: func() map[string][]string {
			named := map[string][]string{}
			for name, c := range on.settings.Load().Channels {
				named[name] = c.Access.Owners
			}
			return named
		},
		Places: func() []bus.Address { return on.settings.places(on.settings.Load().Tell.To) },
	}
}
