package owners

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/channels"
)

// offerInterval is how often to check whether a channel has an owner by now.
const offerInterval = time.Minute

// An Invitation invites the operator to become the owner of the bot on a channel that has none.
type Invitation struct {
	Owners  *Owners
	Name    string // of the channel
	Channel channels.Channel
	// Code returns the current code that makes whoever says it first the owner; a new one if the last has expired.
	Code func(ctx context.Context, channel string) (string, error)
	// LookUpBot asks the platform for the bot's name, without which some channels can make no link.
	LookUpBot func(ctx context.Context) error
	Show      func(text string) // shows the operator a text
	Log       *slog.Logger
}

// Run shows a link or a code until ctx is done, as long as the channel has no owner: once, and again whenever the last
// code has expired.
func (i *Invitation) Run(ctx context.Context) {
	for last := ""; ; {
		last = i.show(ctx, last)
		select {
		case <-time.After(offerInterval):
		case <-ctx.Done():
			return
		}
	}
}

// show shows the current link or code if the channel has no owner and that code isn't last, the one that was
// shown before. It returns the code that was shown most recently.
func (i *Invitation) show(ctx context.Context, last string) string {
	if owned, err := i.Owners.HasAny(ctx, i.Name); err != nil || owned {
		return last
	}
	code, err := i.Code(ctx, i.Name)
	if err != nil {
		if ctx.Err() == nil {
			i.Log.Error("no owner's code could be made", slog.String("channel", i.Name), slog.Any("error", err))
		}
		return last
	}
	if code == last {
		return last
	}
	if err := i.LookUpBot(ctx); err != nil {
		i.Log.Debug("the bot's name is not known yet", slog.String("channel", i.Name), slog.Any("error", err))
	}
	if link := channels.InviteLink(i.Channel, code); link != "" {
		i.Show(fmt.Sprintf("%s has no owner yet. Open this link within the hour and press Start: whoever does so first owns the bot.\n\n  %s", i.Name, link))
		return code
	}
	i.Show(fmt.Sprintf("%s has no owner yet. Say this to the bot within the hour: whoever does so first owns it.\n\n  %sstart %s", i.Name, channels.CommandPrefix(i.Channel), code))
	return code
}
