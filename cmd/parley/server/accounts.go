package server

import (
	"context"

	"parley/channels"
	"parley/channels/connections"
	"parley/channels/owners"
	"parley/channels/routing"
	"parley/cmd/parley/server/platforms"
)

// accounts looks after the bot's accounts on the platforms.
type accounts struct {
	foundation
	liveChannels liveChannels
	owners       *owners.Owners
	// offer shows the operator an invitation to become the owner of a bot that has none.
	offer func(text string)
}

// Run shows, for each channel that receives, an invitation as long as the bot has no owner there. For each channel
// that only sends, it checks whether the platform accepts the account.
func (a *accounts) Run(ctx context.Context) error {
	return a.liveChannels.each(ctx, func(ctx context.Context, l *liveChannel) error {
		switch {
		case l.config.Platform == "":
		case l.receive:
			routing.WarnOfScopeChange(ctx, a.home.Book, l.name, l.config.Session, a.log)
			(&owners.Invitation{
				Owners: a.owners, Name: l.name, Channel: l.channel, Code: a.home.Book.StandingOffer, LookUpBot: l.lookUpBot, Show: a.offer, Log: a.log,
			}).Run(ctx)
		default:
			(&connections.Probe{
				Name: l.name, Channel: l.channel, LookUpBot: l.lookUpBot, OnError: func(why string) { l.lastWarning.Store(&why) }, Log: a.log,
				Setting: func(refused *channels.SendError) string { return platforms.RefusedSetting(l.name, refused) },
			}).Run(ctx)
		}
		return nil
	})
}

// lookUpBot asks the channel's platform who the bot is there.
func (l *liveChannel) lookUpBot(ctx context.Context) error {
	_, err := platforms.Account(ctx, l.config.Platform, l.channel)
	return err
}
