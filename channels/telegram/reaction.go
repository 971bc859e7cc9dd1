package telegram

import (
	"slices"
	"strconv"

	"github.com/go-telegram/bot/models"

	"parley/bus"
)

// reactions are what somebody has changed about their reactions to a message: those that
// they have taken back, and then those that are new. Who reacts in the name of a group
// has no name here. Telegram does not tell whose message it is.
func (c *Channel) reactions(r *models.MessageReactionUpdated) []bus.Inbound {
	if r.User == nil || r.User.IsBot {
		return nil
	}
	before, after := emojis(r.OldReaction), emojis(r.NewReaction)
	chat, message := strconv.FormatInt(r.Chat.ID, 10), strconv.Itoa(r.MessageID)
	own := c.name + ":" + strconv.FormatInt(c.id, 10) + ":" + chat + ":"
	in := bus.Inbound{
		Kind: bus.Reacted, From: bus.Person{ID: c.person(r.User.ID), Name: displayName(r.User)}, Mentioned: true, Of: own + message,
		At: bus.Address{Channel: c.name, Chat: chat}, Group: r.Chat.Type != models.ChatTypePrivate, SentAt: date(r.Date),
	}
	var all []bus.Inbound
	add := func(list, except []string, removed bool) {
		for _, emoji := range list {
			if slices.Contains(except, emoji) {
				continue
			}
			one := in
			one.Reaction, one.Removed = emoji, removed
			one.ID = own + "reaction:" + message + ":" + strconv.FormatInt(r.User.ID, 10) + ":" + strconv.Itoa(r.Date) + ":" + emoji
			if removed {
				one.ID += ":removed"
			}
			all = append(all, one)
		}
	}
	add(before, after, true)
	add(after, before, false)
	return all
}

// emojis are the reactions that are emoji: those that people have made have a number.
func emojis(all []models.ReactionType) (list []string) {
	for _, one := range all {
		if one.ReactionTypeEmoji != nil {
			list = append(list, one.ReactionTypeEmoji.Emoji)
		}
	}
	return list
}
