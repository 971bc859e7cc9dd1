package telegram

import (
	"slices"
	"strconv"

	"github.com/go-telegram/bot/models"

	"parley/bus"
)

// reactionsInbound translates a change to somebody's reactions to a message into one message for the agent for each
// reaction: first those that were removed, then those that were added. It returns nil if somebody reacts in the
// name of a group, because Telegram then does not name the person. Telegram does not say who wrote the message.
func (t *translator) reactionsInbound(r *models.MessageReactionUpdated) []bus.Inbound {
	if r.User == nil || r.User.IsBot {
		return nil
	}
	before, after := emojisOf(r.OldReaction), emojisOf(r.NewReaction)
	chat, message := strconv.FormatInt(r.Chat.ID, 10), strconv.Itoa(r.MessageID)
	own := t.name + ":" + strconv.FormatInt(t.id, 10) + ":" + chat + ":"
	in := bus.Inbound{
		Kind: bus.Reacted, From: bus.Person{ID: t.personID(r.User.ID), Name: displayName(r.User)}, Mentioned: true, Of: own + message,
		At: bus.Address{Channel: t.name, Chat: chat}, Group: r.Chat.Type != models.ChatTypePrivate, SentAt: unixTime(r.Date),
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

// emojisOf returns the reactions that are plain emojis: custom ones only have a number.
func emojisOf(all []models.ReactionType) (list []string) {
	for _, one := range all {
		if one.ReactionTypeEmoji != nil {
			list = append(list, one.ReactionTypeEmoji.Emoji)
		}
	}
	return list
}
