package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/bus"
	"parley/channels"
)

const (
	welcomeInterval = 5 * time.Second
	welcomePeriod   = 24 * time.Hour // how long after the admission a person is still told of it
	maxShownName    = 64             // the length of the longest stranger's name that owners are shown, in characters
)

// rememberOwner remembers, in memory, an owner's private chat with the bot. This is for owners whom the
// configuration names, because it names their ids but not their chats.
func (d *receiver) rememberOwner(in bus.Inbound) {
	if in.From.Owner && !in.Group {
		d.ownerChats.Store(in.From.ID, bus.Address{Channel: in.At.Channel, Chat: in.At.Chat})
	}
}

// noteName stores the person's name on the platform, for people who list the pairings. Nothing else depends on it.
func (d *receiver) noteName(ctx context.Context, who bus.Person) {
	if who.Name == "" {
		return
	}
	if err := d.Pairings.SetName(ctx, who.ID, who.Name); err != nil {
		d.Log.Warn("name was not noted", slog.String("channel", d.Name), slog.String("person", who.ID), slog.Any("error", err))
	}
}

// announceRequest tells each owner of the channel, in the owner's private chat, that somebody asks to be admitted:
// once a day for each person who asks, and only a few times an hour in total. The stranger's words are not passed
// on.
func (d *receiver) announceRequest(ctx context.Context, in bus.Inbound, asked channels.Pairing) {
	select {
	case d.requestMade <- struct{}{}:
	default:
	}
	person, now := in.From.ID, d.Now()
	day := now.UTC().Format(time.DateOnly)
	if !d.announcedRequests.add(person+" "+day, now) || !d.announcementPace.AllowN(now, 1) {
		return
	}
	owners, err := d.findOwnerChats(ctx)
	if err != nil {
		d.Log.Warn("the owners could not be told of a request", slog.String("channel", d.Name), slog.Any("error", err))
		return
	}
	asked.Name = in.From.Name
	text, buttons := describePerson(asked)+textAsksToTalk, requestButtons(asked.Code)
	if len(channels.ShownButtons(d.Channel, buttons)) == 0 {
		text += fmt.Sprintf(textApproveCommand, asked.Code)
	}
	for _, at := range owners {
		id := bus.DerivedID(at.String()+" "+person, "#asks/"+day)
		d.publishOwn(ctx, bus.Outbound{ID: id, To: at, Text: text, Buttons: buttons, Subject: requestSubject(asked.Code), At: now, Expires: asked.Expires})
	}
}

// findOwnerChats returns those private chats of the channel's owners that are known.
func (d *receiver) findOwnerChats(ctx context.Context) ([]bus.Address, error) {
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
		if at, ok := d.ownerChats.Load(d.Name + ":" + user); ok && !slices.Contains(chats, at.(bus.Address)) {
			chats = append(chats, at.(bus.Address))
		}
	}
	return chats, nil
}

// runWelcomes tells people who asked to be admitted that they now are; another process may have admitted them. It
// reads the book once at the start, and repeatedly while somebody is waiting. The message's id is derived from the
// admission, so it is sent only once.
func (d *receiver) runWelcomes(ctx context.Context) {
	for {
		if waiting := d.welcomeAdmitted(ctx); !waiting {
			select {
			case <-d.requestMade:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(welcomeInterval):
		case <-ctx.Done():
			return
		}
	}
}

// welcomeAdmitted tells everybody who was newly admitted, under the policy "pairing". It reports whether it must be
// called again: somebody waits to be admitted or told, or the book can't be read.
func (d *receiver) welcomeAdmitted(ctx context.Context) (waiting bool) {
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
		case d.Now().Sub(p.At) < welcomePeriod && d.Gate.settings().policy() == policyPairing:
			admitted := fmt.Sprintf("#admitted/%d", p.At.UnixMicro())
			if !d.recentWelcomes.add(p.Person+admitted, d.Now()) {
				continue
			}
			text := textAdmitted
			if !d.publishOwn(ctx, bus.Outbound{ID: bus.DerivedID(p.Person, admitted), To: at, Text: text, At: d.Now()}) {
				d.recentWelcomes.forget(p.Person + admitted)
				waiting = true
			}
		}
	}
	return waiting
}

// publishOwn publishes one of the gateway's own messages. It reports false if the caller should try again.
func (d *receiver) publishOwn(ctx context.Context, out bus.Outbound) bool {
	err := bus.PublishOutbound(ctx, d.Bus, out)
	if err != nil {
		d.Log.Warn("somebody could not be told", slog.String("channel", d.Name), slog.String("id", out.ID), slog.Any("error", err))
	}
	return err == nil || errors.Is(err, bus.ErrInvalid)
}

// minOwnerCode is the minimum length of an owner's code. The book is asked only about texts that are long enough
// and contain no characters but those of codes.
const minOwnerCode = 20

// ownerCode returns the owner's code from "/start CODE" or "CODE"; "" if the text can't be one.
func ownerCode(text string) string {
	words := strings.Fields(text)
	if len(words) > 0 && strings.EqualFold(words[0], "/start") {
		words = words[1:]
	}
	if len(words) != 1 || len(words[0]) < minOwnerCode || len(words[0]) > 2*minOwnerCode {
		return ""
	}
	for _, r := range words[0] {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' {
			return ""
		}
	}
	return words[0]
}
