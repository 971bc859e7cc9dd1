package server

import (
	"context"

	"parley/channels"
	"parley/channels/owners"
	"parley/channels/welcome"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/models"
)

// introductions introduce the bot to people who talk to it for the first time.
type introductions struct {
	foundation
	owners *owners.Owners
	chains *modelChains
}

// textFor returns a function for the text that introduces the bot to people who talk to it on a channel
// for the first time; the function returns "" if there is no such text.
func (i *introductions) textFor(l *liveChannel) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		c := i.settings.Load()
		now := c.Channels[l.name]
		if now.Introduce == config.IntroduceNever {
			return "", nil
		}
		owners, err := i.owners.Names(ctx, l.name)
		if err != nil {
			return "", err
		}
		return welcome.Introduction{About: now.About, Owners: owners, Models: models.Places(c, i.chains.byAgent, now.AllAgents()), Days: c.Retention.Days, Prefix: channels.CommandPrefix(l.channel)}.Text(), nil
	}
}
