package server

import (
	"sync"

	"parley/agent/prices"
	"parley/channels"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/server/voices"
)

// newVoices returns the voices, which have agents' answers read aloud.
func newVoices(on foundation, all liveChannels, copies *fileCopies) *voices.Voices {
	return voices.New(voices.Config{
		Settings: on.settings.Load,
		Prices:   sync.OnceValues(func() (prices.List, error) { return models.Prices(on.settings.Load()) }),
		Channel: func(name string) channels.Channel {
			if l := all.named(name); l != nil {
				return l.channel
			}
			return nil
		},
		MostBytes: copies.mostFileBytes, MaySend: on.home.MaySendFiles, Own: on.home.OwnOutgoing,
		Store: on.home.Outgoing, Book: on.home.Book, Log: on.log,
	})
}
