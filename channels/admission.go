package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/bus"
)

const (
	welcomeEvery  = 5 * time.Second
	welcomeWithin = 24 * time.Hour // of the admission
	longestName   = 64             // of a stranger, in characters
)

// remember notes where an owner talks to the bot alone, for owners of whom the
// configuration names the id and nobody the chat.
func (d *door) remember(in bus.Inbound) {
	if in.From.Owner && !in.Group {
		d.owners.Store(in.From.ID, bus.Address{Channel: in.At.Channel, Chat: in.At.Chat})
	}
}

// named notes what the platform calls a person, for those who read who is paired.
// Nothing depends on it.
func (d *door) named(ctx context.Context, who bus.Person) {
	if who.Name == "" {
		return
	}
	if err := d.Pairings.SetName(ctx, who.ID, who.Name); err != nil {
		d.Log.Warn("name was not noted", slog.String("channel", d.Name), slog.String("person", who.ID), slog.Any("error", err))
	}
}

// announce tells the owners of the channel, each in the chat with them alone,
// that somebody asks to be admitted: once a day for each person, and no more than
// a few in an hour. Of the stranger's words nothing is passed on.
func (d *door) announce(ctx context.Context, in bus.Inbound, asked Pairing) {
	select {
	case d.asked <- struct{}{}:
	default:
	}
	person, now := in.From.ID, d.Now()
	day := now.UTC().Format(time.DateOnly)
	if !d.announced.first(person+" "+day, now) || !d.bells.AllowN(now, 1) {
		return
	}
	owners, err := d.ownersChats(ctx)
	if err != nil {
		d.Log.Warn("the owners could not be told of a request", slog.String("channel", d.Name), slog.Any("error", err))
		return
	}
	name := []rune(in.From.Name)
	text := fmt.Sprintf("%s (%s) asks to talk to me. This admits them, within the hour:\n\n```\nparley pairing approve %s\n```",
		verbatim(string(name[:min(len(name), longestName)])), verbatim(person), asked.Code)
	for _, at := range owners {
		id := noticeID(at.String()+" "+person, "#asks/"+day)
		d.tell(ctx, bus.Outbound{ID: id, To: at, Text: text, At: now, Expires: asked.Expires})
	}
}

// ownersChats are where the owners of the channel talk to the bot alone, as far as
// that is known.
func (d *door) ownersChats(ctx context.Context) ([]bus.Address, error) {
	pairings, err := d.Pairings.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for owners: %w", err)
	}
	named := d.Gate.settings().Owners
	var chats []bus.Address
	for _, p := range pairings {
		channel, user, _ := strings.Cut(p.Person, ":")
		at, err := bus.ParseAddress(p.Chat)
		if err == nil && channel == d.Name && p.Approved && (p.Owner || slices.Contains(named, user)) {
			chats = append(chats, at)
		}
	}
	for _, user := range named {
		if at, ok := d.owners.Load(d.Name + ":" + user); ok && !slices.Contains(chats, at.(bus.Address)) {
			chats = append(chats, at.(bus.Address))
		}
	}
	return chats, nil
}

// welcome tells those who have asked that they are admitted now, which happens in
// another process. It looks while somebody waits for that, and once in the
// beginning: a message's id is of the admission, so it is sent once.
func (d *door) welcome(ctx context.Context) {
	for {
		if waiting := d.welcomeAll(ctx); !waiting {
			select {
			case <-d.asked:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(welcomeEvery):
		case <-ctx.Done():
			return
		}
	}
}

// welcomeAll tells whether there is somebody still to be told.
func (d *door) welcomeAll(ctx context.Context) (waiting bool) {
	pairings, err := d.Pairings.Pairings(ctx)
	if err != nil {
		return true
	}
	for _, p := range pairings {
		at, err := bus.ParseAddress(p.Chat)
		switch {
		case err != nil || at.Channel != d.Name || p.Owner:
		case !p.Approved:
			waiting = true
		case d.Now().Sub(p.At) < welcomeWithin && d.Gate.settings().policy() == byPairing:
			admitted := fmt.Sprintf("#admitted/%d", p.At.UnixMicro())
			if !d.welcomed.first(p.Person+admitted, d.Now()) {
				continue
			}
			text := "You are admitted now: just write to me. What you wrote before was not kept, so please say it again."
			if !d.tell(ctx, bus.Outbound{ID: noticeID(p.Person, admitted), To: at, Text: text, At: d.Now()}) {
				d.welcomed.forget(p.Person + admitted)
				waiting = true
			}
		}
	}
	return waiting
}

// tell publishes something of the gateway's own, and tells whether it could.
func (d *door) tell(ctx context.Context, out bus.Outbound) bool {
	body, err := out.Encode()
	if err == nil {
		err = d.Bus.Publish(ctx, bus.OutboundTopic(d.Name), bus.Message{ID: out.ID, Key: out.To.String(), Body: body})
	}
	if err != nil {
		d.Log.Warn("somebody could not be told", slog.String("channel", d.Name), slog.String("id", out.ID), slog.Any("error", err))
	}
	return err == nil || errors.Is(err, bus.ErrInvalid)
}
