package people

import (
	"context"
	"fmt"

	"parley/bus"
	"parley/channels"
)

// UI is the command with which an owner gets a link to the web page.
const UI = "ui"

// A PageLink is what the command /ui needs.
type PageLink struct {
	// Owns reports whether a person owns the bot.
	Owns func(ctx context.Context, person string) (bool, error)
	// New returns a link with which a browser can sign in as the owner, once; "" if the page can't be reached from
	// other machines.
	New func(ctx context.Context) (string, error)
}

// openPage sends an owner a link to the web page. It is for phones, which have no terminal. If a command arrives
// again, that makes another code, which nobody gets to see.
func (d *Commands) openPage(ctx context.Context, in bus.Inbound) error {
	owns, err := d.Page.Owns(ctx, in.From.ID)
	if err != nil {
		return err
	}
	if !owns {
		return d.reply(ctx, in, textOnlyOwners)
	}
	link, err := d.Page.New(ctx)
	if err != nil {
		return err
	}
	if link == "" {
		return d.reply(ctx, in, textNoPage)
	}
	return d.reply(ctx, in, fmt.Sprintf(textPageLink, int(channels.SignInCodeLasts.Seconds()), link))
}
