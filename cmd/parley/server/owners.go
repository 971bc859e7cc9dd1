package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels/problems"
	"parley/cmd/parley/config"
)

// ownerNoticeTimeout limits how long a caller waits until the owners are notified.
const ownerNoticeTimeout = 5 * time.Second

// owners tells the owners of the bot what needs their attention.
type owners struct{ foundation }

// notify sends each owner a text about something that needs their attention, in their private chat
// with the bot: once a day for each subject.
func (o *owners) notify(ctx context.Context, subject, text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerNoticeTimeout)
	defer cancel()
	chats, err := o.chats(ctx)
	if err != nil {
		o.log.Warn("the owners could not be told", slog.Any("error", err))
		return
	}
	suffix := "#owner/" + time.Now().UTC().Format(time.DateOnly)
	for _, at := range chats {
		if err := o.publish(ctx, at, bus.DerivedID(at.String()+" "+subject, suffix), text); err != nil {
			o.log.Warn("an owner could not be told", slog.String("chat", at.String()), slog.Any("error", err))
		}
	}
}

// notifyOnce sends the owners a text about something that needs their attention. The ids of these
// messages are derived from suffix, so a caller may repeat the call after an error, and nobody gets
// the text twice.
func (o *owners) notifyOnce(ctx context.Context, suffix, text string) error {
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
func (o *owners) publish(ctx context.Context, at bus.Address, id, text string) error {
	now := time.Now()
	return bus.PublishOutbound(ctx, o.home.Bus, bus.Outbound{ID: id, To: at, Text: text, At: now, Expires: now.Add(24 * time.Hour)})
}

// chats returns the addresses to which notices for the owners are sent: those in the list `to` in
// the section [notices], or, if it is empty, the owners' private chats with the bot.
func (o *owners) chats(ctx context.Context) ([]bus.Address, error) {
	c := o.settings.Load()
	chats := o.settings.places(c.Tell.To)
	if len(chats) > 0 {
		return chats, nil
	}
	chats, err := o.ownersChats(ctx)
	if err == nil && len(chats) == 0 {
		err = problems.ErrNobody
	}
	return chats, err
}

// ownersChats returns the private chats of the channels' owners with the bot, as far as the book
// knows them.
func (o *owners) ownersChats(ctx context.Context) ([]bus.Address, error) {
	owns := map[string]bool{}
	for name, c := range o.settings.Load().Channels {
		for _, user := range c.Access.Owners {
			owns[name+":"+user] = true
		}
	}
	pairings, err := o.home.Book.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for owners: %w", err)
	}
	for _, p := range pairings {
		owns[p.Person] = owns[p.Person] || p.OwnsBot()
	}
	known, err := o.home.Book.Chats(ctx)
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

// own reports whether anybody owns the bot on a channel.
func (o *owners) own(ctx context.Context, channel string) (bool, error) {
	if len(o.settings.Load().Channels[channel].Access.Owners) > 0 {
		return true, nil
	}
	pairings, err := o.home.Book.Pairings(ctx)
	if err != nil {
		return false, fmt.Errorf("look for an owner: %w", err)
	}
	for _, p := range pairings {
		if p.OwnsBot() && channelOf(p.Person) == channel {
			return true, nil
		}
	}
	return false, nil
}

// isOwner reports whether a person, CHANNEL:USER, owns the bot on their channel.
func (o *owners) isOwner(ctx context.Context, person string) (bool, error) {
	channel, user, _ := strings.Cut(person, ":")
	if slices.Contains(o.settings.Load().Channels[channel].Access.Owners, user) {
		return true, nil
	}
	paired, _, err := o.home.Book.Paired(ctx, person)
	if err != nil {
		return false, fmt.Errorf("look whether %s is an owner: %w", person, err)
	}
	return paired.OwnsBot(), nil
}

// names returns the platform's names for a channel's owners, or their ids if no name is known.
func (o *owners) names(ctx context.Context, c config.Channel) ([]string, error) {
	pairings, err := o.home.Book.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for owners: %w", err)
	}
	var all []string
	for _, user := range c.Access.Owners {
		all = append(all, c.Name+":"+user)
	}
	paired := map[string]string{}
	for _, p := range pairings {
		paired[p.Person] = p.Name
		if p.OwnsBot() && channelOf(p.Person) == c.Name {
			all = append(all, p.Person)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	names, err := o.home.Book.Names(ctx, all...)
	if err != nil {
		return nil, fmt.Errorf("look for the names of owners: %w", err)
	}
	for i, person := range all {
		all[i] = cmp.Or(paired[person], names[person], person)
	}
	return all, nil
}
