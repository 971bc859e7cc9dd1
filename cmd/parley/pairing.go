package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"parley/channels"
	"parley/cmd/parley/api"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/platforms"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type pairingCmd struct {
	List    pairingList    `cmd:"" help:"List who has access, and who is asking for it."`
	Approve pairingApprove `cmd:"" help:"Let in the person who got this code."`
	Revoke  pairingRevoke  `cmd:"" help:"Remove a person's access."`
	Owner   pairingOwner   `cmd:"" help:"Make a code: whoever says it to the bot first owns the bot."`
}

type pairingList struct{}

type pairingApprove struct {
	Code string `arg:"" help:"The code that the bot gave the person."`
}

type pairingRevoke struct {
	Who string `arg:"" help:"CHANNEL:USER"`
}

type pairingOwner struct {
	Channel string `arg:"" optional:"" help:"The channel; needed if there's more than one."`
}

// fetchPairings returns all people who are admitted to the bot or ask to be.
func fetchPairings(ctx context.Context, server *client.Client) ([]api.Pairing, error) {
	var found struct{ Pairings []api.Pairing }
	err := server.Get(ctx, "/v1/pairings", &found)
	return found.Pairings, err
}

// Help shows examples.
func (pairingList) Help() string {
	return examples("parley pairing list", "parley --json pairing list")
}

// Run lists who is admitted to the bot and who asks to be.
func (pairingList) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		all, err := fetchPairings(ctx, server)
		if err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(all)
		}
		return report.Pairings(tty.Out, all)
	})
}

// isRefusal reports whether the server refused a request with this code.
func isRefusal(err error, code string) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Code == code
}

// Help shows examples.
func (pairingApprove) Help() string { return examples("parley pairing approve ABCD2345") }

// Run admits the person who was given the code to the bot.
func (a pairingApprove) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var p api.Pairing
		err := server.Do(ctx, http.MethodPost, "/v1/pairings", "", map[string]string{"code": a.Code}, &p)
		if isRefusal(err, "unknown_code") {
			return fmt.Errorf("no request has the code %q, or it's older than an hour: ask the person to write to the bot again, and see `parley pairing list`", a.Code)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(tty.Out, "%s now has access.\n", p.Person)
		return err
	})
}

// Help shows examples.
func (pairingRevoke) Help() string { return examples("parley pairing revoke telegram:42") }

// Run revokes an admission.
func (r pairingRevoke) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		err := server.Do(ctx, http.MethodDelete, "/v1/pairings/"+url.PathEscape(r.Who), "", nil, nil)
		if isRefusal(err, "not_found") {
			return fmt.Errorf("%q isn't paired: see `parley pairing list`", r.Who)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(tty.Out, "%s doesn't have access anymore.\n", r.Who)
		return err
	})
}

// Help shows examples.
func (pairingOwner) Help() string {
	return examples("parley pairing owner", "parley pairing owner telegram")
}

// Run creates a code. The first person who says it to the bot becomes the bot's owner. This works even before a
// server has run in the home for the first time.
func (o pairingOwner) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	cfg, err := c.load(tty, config.Options{})
	if err != nil {
		return err
	}
	if err := home.CheckPermissions(cfg); err != nil {
		return err
	}
	if err := home.CheckData(cfg); err != nil {
		return err
	}
	name, err := o.channel(cfg)
	if err != nil {
		return err
	}
	if err := home.Begin(ctx, cfg, errorLogger(tty.Err)); err != nil {
		return err
	}
	return withClientFor(ctx, cfg, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if err := checkUnowned(ctx, cfg, server, name); err != nil {
			return err
		}
		var offer struct{ Code string }
		if err := server.Do(ctx, http.MethodPost, "/v1/pairings/owner", "", map[string]string{"channel": name}, &offer); err != nil {
			return err
		}
		prefix := "/"
		if ch, err := platforms.Open(cfg.Channels[name], platforms.AdapterParts{Log: slog.New(slog.DiscardHandler)}); err == nil {
			prefix = channels.CommandPrefix(ch)
		}
		_, err := fmt.Fprintf(tty.Out, textBecomeOwner, name, prefix, offer.Code)
		return err
	})
}

// checkUnowned returns an error if the channel already has an owner, because then a code has no
// effect.
func checkUnowned(ctx context.Context, cfg *config.Config, server *client.Client, channel string) error {
	if owners := cfg.Channels[channel].Access.Owners; len(owners) > 0 {
		return fmt.Errorf("%s has an owner in the configuration, so a code can't add another: add the person's id to channels.%s.owners", channel, channel)
	}
	all, err := fetchPairings(ctx, server)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.State == "owner" && strings.HasPrefix(p.Person, channel+":") {
			return fmt.Errorf("%s already owns the bot on %s: add the other person's id to channels.%s.owners, or run `parley pairing revoke %s` first", p.Person, channel, channel, p.Person)
		}
	}
	return nil
}

// channel returns the channel that was named, or the only one. It returns a usageError if the named one isn't
// configured, or if none is named and there isn't exactly one.
func (o pairingOwner) channel(cfg *config.Config) (string, error) {
	if o.Channel == "" {
		list := cfg.ChannelsByName()
		if len(list) == 0 {
			return "", &usageError{"no channel is configured, so there's no bot to own: add [channels.NAME]\n" + home.DescribeConfig(cfg)}
		}
		if len(list) > 1 {
			return "", &usageError{fmt.Sprintf("%d channels are configured: say which one", len(list))}
		}
		return list[0].Name, nil
	}
	if _, ok := cfg.Channels[o.Channel]; !ok {
		return "", &usageError{fmt.Sprintf("no channel is called %q in the configuration\n%s", o.Channel, home.DescribeConfig(cfg))}
	}
	return o.Channel, nil
}
