// Package owners knows who owns the bot, tells the owners what needs their attention, and invites the operator to
// become the owner of a bot that has none.
package owners

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/problems"
)

// noticeTimeout limits how long a caller waits until the owners are notified.
const noticeTimeout = 5 * time.Second

// A Book is the part of the channels' book (the record of sends, chats, people and asks) that Owners
// needs.
type Book interface {
	Pairings(ctx context.Context) ([]channels.Pairing, error)
	FindPairing(ctx context.Context, person string) (p channels.Pairing, known bool, err error)
	Chats(ctx context.Context) ([]channels.Chat, error)
	Names(ctx context.Context, people ...string) (map[string]string, error)
}

// Owners are the people who own the bot: those whom the settings name, and those who were paired as
// owners.
type Owners struct {
	Bus  bus.Bus
	Book Book
	// ConfiguredOwners returns the ids of the owners whom the settings name, by channel.
	ConfiguredOwners func() map[string][]string
	// Places returns the addresses to which the settings send notices for the owners; none means the
	// owners' private chats with the bot.
	Places func() []bus.Address
	Log    *slog.Logger
}

// Notify sends the owners a text about something that needs their attention, once a day for each subject: to Places,
// or else to their private chats with the bot. If that fails, it only logs that.
func (o *Owners) Notify(ctx context.Context, subject, text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noticeTimeout)
	defer cancel()
	chats, err := o.chats(ctx)
	if err != nil {
		o.Log.Warn("the owners could not be told", slog.Any("error", err))
		return
	}
	suffix := "#owner/" + time.Now().UTC().Format(time.DateOnly)
	for _, at := range chats {
		if err := o.publish(ctx, at, bus.DerivedID(at.String()+" "+subject, suffix), text); err != nil {
			o.Log.Warn("an owner could not be told", slog.String("chat", at.String()), slog.Any("error", err))
		}
	}
}

// NotifyOnce sends the owners a text about something that needs their attention. The ids of these
// messages are derived from suffix, so a caller may repeat the call after an error, and nobody gets the text twice.
// It returns problems.ErrNobody if no chat is known.
func (o *Owners) NotifyOnce(ctx context.Context, suffix, text string) error {
	chats, err := o.chats(ctx)
	if err != nil {
		return err
	}
	for _, at := range chats {
		if err := o.publish(ctx, at, bus.DerivedID(at.String(), suffix), text); err != nil && !bus.IsRefusal(err) {
			return err
		}
	}
	return nil
}

// publish publishes a notice for one chat. A notice that is more than a day old is no longer sent.
func (o *Owners) publish(ctx context.Context, at bus.Address, id, text string) error {
	now := time.Now()
	return bus.PublishOutbound(ctx, o.Bus, bus.Outbound{ID: id, To: at, Text: text, At: now, Expires: now.Add(24 * time.Hour)})
}

// chats returns the addresses to which notices for the owners are sent: those in Places, or, if there are none, the
// owners' private chats with the bot. It returns problems.ErrNobody if no such chat is known either.
func (o *Owners) chats(ctx context.Context) ([]bus.Address, error) {
	chats := o.Places()
	if len(chats) > 0 {
		return chats, nil
	}
	chats, err := o.privateChats(ctx)
	if err == nil && len(chats) == 0 {
		err = problems.ErrNobody
	}
	return chats, err
}

// privateChats returns the private chats of the owners with the bot, as far as the book
// knows them.
func (o *Owners) privateChats(ctx context.Context) ([]bus.Address, error) {
	owns := map[string]bool{}
	for channel, users := range o.ConfiguredOwners() {
		for _, user := range users {
			owns[channel+":"+user] = true
		}
	}
	pairings, err := o.Book.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for owners: %w", err)
	}
	for _, p := range pairings {
		owns[p.Person] = owns[p.Person] || p.OwnsBot()
	}
	known, err := o.Book.Chats(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for chats with owners: %w", err)
	}
	var chats []bus.Address
	for _, chat := range known {
		if !chat.Group && owns[chat.Person] {
			chats = append(chats, bus.Address{Channel: chat.Address.Channel, Chat: chat.Address.Chat})
		}
	}
	slices.SortFunc(chats, func(a, b bus.Address) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(chats), nil
}

// HasAny reports whether anybody owns the bot on a channel.
func (o *Owners) HasAny(ctx context.Context, channel string) (bool, error) {
	if len(o.ConfiguredOwners()[channel]) > 0 {
		return true, nil
	}
	pairings, err := o.Book.Pairings(ctx)
	if err != nil {
		return false, fmt.Errorf("look for an owner: %w", err)
	}
	for _, p := range pairings {
		if p.OwnsBot() && strings.HasPrefix(p.Person, channel+":") {
			return true, nil
		}
	}
	return false, nil
}

// Includes reports whether a person, CHANNEL:USER, owns the bot on their channel.
func (o *Owners) Includes(ctx context.Context, person string) (bool, error) {
	channel, user, _ := strings.Cut(person, ":")
	if slices.Contains(o.ConfiguredOwners()[channel], user) {
		return true, nil
	}
	paired, _, err := o.Book.FindPairing(ctx, person)
	if err != nil {
		return false, fmt.Errorf("find out whether %s is an owner: %w", person, err)
	}
	return paired.OwnsBot(), nil
}

// Names returns the platform's names for a channel's owners, or their ids if no name is known.
func (o *Owners) Names(ctx context.Context, channel string) ([]string, error) {
	pairings, err := o.Book.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for owners: %w", err)
	}
	var all []string
	for _, user := range o.ConfiguredOwners()[channel] {
		all = append(all, channel+":"+user)
	}
	paired := map[string]string{}
	for _, p := range pairings {
		paired[p.Person] = p.Name
		if p.OwnsBot() && strings.HasPrefix(p.Person, channel+":") {
			all = append(all, p.Person)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	names, err := o.Book.Names(ctx, all...)
	if err != nil {
		return nil, fmt.Errorf("look for the names of owners: %w", err)
	}
	for i, person := range all {
		all[i] = cmp.Or(paired[person], names[person], person)
	}
	return all, nil
}
