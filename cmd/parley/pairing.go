package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"parley/channels"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
	"parley/cmd/parley/platforms"
	"parley/cmd/parley/terminal"
)

type pairingCmd struct {
	List    pairingList    `cmd:"" help:"Who is admitted, and who asks to be."`
	Approve pairingApprove `cmd:"" help:"Admit the person who was given this code."`
	Revoke  pairingRevoke  `cmd:"" help:"Take a person's admission back."`
	Owner   pairingOwner   `cmd:"" help:"Make a code that whoever says it first owns the bot."`
}

type pairingList struct{}

type pairingApprove struct {
	Code string `arg:"" help:"The code that the bot told the person."`
}

type pairingRevoke struct {
	Who string `arg:"" help:"CHANNEL:USER"`
}

type pairingOwner struct {
	Channel string `arg:"" optional:"" help:"The channel; needed where there are several."`
}

// withBook opens the book beside a server that may be running. It makes none.
func withBook(ctx context.Context, c *cli, tty terminal.Terminal, use func(*sqlbook.Book) error) error {
	cfg, err := c.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	if err := home.CheckPermissions(cfg); err != nil {
		return err
	}
	if err := home.CheckData(cfg); err != nil {
		return err
	}
	if err := home.RequireData(ctx, cfg, home.BookFile); err != nil {
		return err
	}
	return openBook(ctx, cfg, use)
}

// openBook opens the book, which it makes if need be, and gives it to the home's owner.
func openBook(ctx context.Context, cfg *config.Config, use func(*sqlbook.Book) error) error {
	of := home.OwnerOf(cfg.Home)
	book, err := sqlbook.Open(ctx, home.Location(cfg, home.BookFile))
	if err != nil {
		return home.NameSetting(cfg, "store.url", err)
	}
	return errors.Join(use(book), book.Close(), of.GiveHome(cfg.Home))
}

// Help shows examples.
func (pairingList) Help() string {
	return examples("parley pairing list", "parley --json pairing list")
}

// Run lists pairings.
func (pairingList) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return withBook(ctx, c, tty, func(book *sqlbook.Book) error {
		pairings, err := book.Pairings(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(tty.Out).Encode(pairingsJSON(pairings))
		}
		if len(pairings) == 0 {
			_, err := fmt.Fprintln(tty.Out, "Nobody is paired, and nobody asks to be.")
			return err
		}
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "PERSON\tNAME\tSTATE\tCODE\tSINCE")
		for _, p := range pairings {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", terminal.Cell(p.Person), terminal.Cell(p.Name), pairingState(p), p.Code, p.At.Local().Format(time.DateTime))
		}
		return w.Flush()
	})
}

func pairingState(p channels.Pairing) string {
	switch {
	case p.Owner:
		return "owner"
	case p.Approved:
		return "admitted"
	}
	return "asks"
}

type pairingJSON struct {
	Person string    `json:"person"`
	Name   string    `json:"name,omitempty"`
	State  string    `json:"state"`
	Code   string    `json:"code,omitempty"`
	At     time.Time `json:"at"`
}

func pairingsJSON(pairings []channels.Pairing) []pairingJSON {
	list := make([]pairingJSON, 0, len(pairings))
	for _, p := range pairings {
		list = append(list, pairingJSON{Person: p.Person, Name: p.Name, State: pairingState(p), Code: p.Code, At: p.At})
	}
	return list
}

// Help shows examples.
func (pairingApprove) Help() string { return examples("parley pairing approve ABCD2345") }

// Run approves a request.
func (a pairingApprove) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return withBook(ctx, c, tty, func(book *sqlbook.Book) error {
		p, err := book.Admit(ctx, channels.Admission{Code: a.Code})
		if errors.Is(err, channels.ErrNoCode) {
			return fmt.Errorf("no request has the code %q, or it is older than an hour: ask the person to write to the bot again, and see `parley pairing list`", a.Code)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(tty.Out, "%s is admitted.\n", p.Person)
		return err
	})
}

// Help shows examples.
func (pairingRevoke) Help() string { return examples("parley pairing revoke telegram:42") }

// Run revokes an admission.
func (r pairingRevoke) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return withBook(ctx, c, tty, func(book *sqlbook.Book) error {
		err := book.Revoke(ctx, r.Who)
		if errors.Is(err, channels.ErrNoCode) {
			return fmt.Errorf("%q is not paired: see `parley pairing list`", r.Who)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(tty.Out, "%s is not admitted any more.\n", r.Who)
		return err
	})
}

// Help shows examples.
func (pairingOwner) Help() string {
	return examples("parley pairing owner", "parley pairing owner telegram")
}

// Run makes an owner's code. It may be the first that is written into the home.
func (o pairingOwner) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
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
	of := home.OwnerOf(cfg.Home)
	if err := os.MkdirAll(cfg.Home, 0o700); err != nil {
		return fmt.Errorf("create the home: %w", err)
	}
	if err := of.GiveHome(cfg.Home); err != nil {
		return err
	}
	return openBook(ctx, cfg, func(book *sqlbook.Book) error {
		if err := unowned(ctx, cfg, book, name); err != nil {
			return err
		}
		code, err := book.OfferOwner(ctx, name)
		if err != nil {
			return err
		}
		prefix := "/"
		if ch, err := platforms.Open(cfg.Channels[name], nil, slog.New(slog.DiscardHandler)); err == nil {
			prefix = channels.CommandPrefix(ch)
		}
		_, err = fmt.Fprintf(tty.Out, "Say this to the bot on %s within the hour: whoever does so first owns it.\n\n  %sstart %s\n", name, prefix, code)
		return err
	})
}

// unowned refuses a code for a channel that has an owner: it would be good for nothing.
func unowned(ctx context.Context, cfg *config.Config, book *sqlbook.Book, channel string) error {
	if owners := cfg.Channels[channel].Access.Owners; len(owners) > 0 {
		return fmt.Errorf("%s has an owner in the configuration, so a code makes no other: add the person's id to channels.%s.owners", channel, channel)
	}
	pairings, err := book.Pairings(ctx)
	if err != nil {
		return err
	}
	for _, p := range pairings {
		if p.Owner && strings.HasPrefix(p.Person, channel+":") {
			return fmt.Errorf("%s owns the bot on %s already: add the other's id to channels.%s.owners, or say `parley pairing revoke %s` first", p.Person, channel, channel, p.Person)
		}
	}
	return nil
}

// channel is the one that was named, or the only one that there is.
func (o pairingOwner) channel(cfg *config.Config) (string, error) {
	if o.Channel == "" {
		list := cfg.ChannelsByName()
		if len(list) == 0 {
			return "", &usageError{"no channel is configured, so there is no bot to own: add [channels.NAME]\n" + home.WhichConfig(cfg)}
		}
		if len(list) > 1 {
			return "", &usageError{fmt.Sprintf("%d channels are configured: say which one", len(list))}
		}
		return list[0].Name, nil
	}
	if _, ok := cfg.Channels[o.Channel]; !ok {
		return "", &usageError{fmt.Sprintf("no channel is named %q in the configuration\n%s", o.Channel, home.WhichConfig(cfg))}
	}
	return o.Channel, nil
}

type chatsCmd struct{}

// Help shows examples.
func (chatsCmd) Help() string { return examples("parley chats", "parley --json chats") }

// Run lists where the bot has been spoken to.
func (chatsCmd) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return withBook(ctx, c, tty, func(book *sqlbook.Book) error {
		chats, err := book.Chats(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(tty.Out).Encode(chatsJSON(chats))
		}
		if len(chats) == 0 {
			_, err := fmt.Fprintln(tty.Out, "The bot has not been spoken to yet.")
			return err
		}
		w := tabwriter.NewWriter(tty.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ADDRESS\tNAME\tSESSION\tSINCE")
		for _, ch := range chats {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", terminal.Cell(ch.Address.String()), terminal.Cell(ch.Name), terminal.Cell(ch.Session), ch.Seen.Local().Format(time.DateTime))
		}
		return w.Flush()
	})
}

type chatJSON struct {
	Address string    `json:"address"`
	Session string    `json:"session"`
	Name    string    `json:"name,omitempty"`
	Group   bool      `json:"group"`
	Since   time.Time `json:"since"`
}

func chatsJSON(chats []channels.Chat) []chatJSON {
	list := make([]chatJSON, 0, len(chats))
	for _, ch := range chats {
		list = append(list, chatJSON{Address: ch.Address.String(), Session: ch.Session, Name: ch.Name, Group: ch.Group, Since: ch.Seen})
	}
	return list
}
