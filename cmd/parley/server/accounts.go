package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/channels"
	"parley/channels/owners"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/platforms"
)

// probeEvery is the interval at which an unreachable platform is tried again.
const probeEvery = 30 * time.Second

// offerEvery is how often to check whether a channel has an owner by now.
const offerEvery = time.Minute

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
			a.warnOfScopeChange(ctx, l)
			a.offerOwnership(ctx, l)
		default:
			a.probeAccount(ctx, l)
		}
		return nil
	})
}

// warnOfScopeChange warns at the start if a channel's conversations are divided into sessions in a different way
// than when the channel was last served. It delays nothing.
func (a *accounts) warnOfScopeChange(ctx context.Context, l *liveChannel) {
	const subject = "session_scope"
	was, err := a.home.Book.Noted(ctx, subject, l.name)
	if err == nil && was.Value != l.config.Session {
		if was.Value != "" || l.config.Session != config.SessionThread {
			a.log.Warn("conversations on this channel begin anew: what was said before stays in the sessions in which it was said",
				slog.String("key", "channels."+l.name+".session"), slog.String("was", cmp.Or(was.Value, config.SessionThread)), slog.String("is", l.config.Session))
		}
		err = a.home.Book.SetNote(ctx, subject, l.name, l.config.Session)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("it is not known whether conversations begin anew", slog.String("channel", l.name), slog.Any("error", err))
	}
}

// offerOwnership shows a link or a code that makes whoever uses it first the owner, as long as a channel has no
// owner: once, and again whenever the last code has expired.
func (a *accounts) offerOwnership(ctx context.Context, l *liveChannel) {
	for last := ""; ; {
		last = a.offerCode(ctx, l, last)
		select {
		case <-time.After(offerEvery):
		case <-ctx.Done():
			return
		}
	}
}

// offerCode shows the current link or code if the channel has no owner and that code isn't last, the one that was
// shown before. It returns the code that was shown most recently.
func (a *accounts) offerCode(ctx context.Context, l *liveChannel, last string) string {
	if owned, err := a.owners.HasAny(ctx, l.name); err != nil || owned {
		return last
	}
	code, err := a.home.Book.StandingOffer(ctx, l.name)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Error("no owner's code could be made", slog.String("channel", l.name), slog.Any("error", err))
		}
		return last
	}
	if code == last {
		return last
	}
	if _, err := platforms.Account(ctx, l.config.Platform, l.channel); err != nil {
		a.log.Debug("the bot's name is not known yet", slog.String("channel", l.name), slog.Any("error", err))
	}
	if link := channels.InviteLink(l.channel, code); link != "" {
		a.offer(fmt.Sprintf("%s has no owner yet. Open this link within the hour and press Start: whoever does so first owns the bot.\n\n  %s", l.name, link))
		return code
	}
	a.offer(fmt.Sprintf("%s has no owner yet. Say this to the bot within the hour: whoever does so first owns it.\n\n  %sstart %s", l.name, channels.CommandPrefix(l.channel), code))
	return code
}

// probeAccount asks the platform of a channel that only sends for the bot's account: at the start, so that a
// refused token is reported before the first alert is sent, and repeatedly while the platform is unreachable,
// because otherwise nobody would find out that it is back until the next message.
func (a *accounts) probeAccount(ctx context.Context, l *liveChannel) {
	for told := false; ; {
		if !told || !channels.Connected(l.channel) {
			_, err := platforms.Account(ctx, l.config.Platform, l.channel)
			refused, ok := errors.AsType[*channels.SendError](err)
			if ok && refused.Fault == channels.Stop && !told {
				a.log.Error("the platform refuses this account; the other channels go on", slog.String("channel", l.name),
					slog.String("code", refused.Code), slog.String("key", platforms.RefusedSetting(l.name, refused)))
			}
			if err != nil {
				said := err.Error()
				l.lastWarning.Store(&said)
			}
			told = true
		}
		select {
		case <-time.After(probeEvery):
		case <-ctx.Done():
			return
		}
	}
}
