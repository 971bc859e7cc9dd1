package server

import (
	"context"

	"parley/bus"
	"parley/channels/onbehalf"
)

// newOnBehalf returns the sender of the messages that agents send on behalf of people.
func newOnBehalf(on foundation, all liveChannels, may *rights, files *fileCopies, hidden *secrets) *onbehalf.Sender {
	var names []string
	for _, l := range all {
		names = append(names, l.name)
	}
	return onbehalf.New(onbehalf.Config{
		Bus: on.home.Bus, Paired: on.home.Book.FindPairing, Channels: names, MayMessage: may.messageTargets, Log: on.log,
		Targets: func() map[string][]bus.Address { return on.settings.Load().Targets },
		KnowsPeople: func(channel string) bool {
			c, ok := on.settings.Load().Channels[channel]
			return ok && c.Access.Policy != "open"
		},
		Redact:      func(text string) string { return hidden.Load().Text(text) },
		AttachFiles: files.attach,
		Release: func(ctx context.Context, outs []bus.Outbound) error {
			return files.copies.ReleaseSent(ctx, on.home.Book, outs)
		},
	})
}
