package slack

import (
	"context"
	"errors"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// conversations knows the chats of the workspace: their ids, their names, and who is in them.
type conversations struct {
	api         *slackgo.Client
	name        string         // the channel's configured name
	directChats *cache[string] // by user: their chat with the bot
}

// chatID returns the id of an address's Slack channel. For posting, a user's id can be used instead, but every
// other call needs the id of the chat with that user.
func (cs *conversations) chatID(ctx context.Context, to bus.Address) (string, error) {
	if !strings.HasPrefix(to.Chat, "U") && !strings.HasPrefix(to.Chat, "W") {
		return to.Chat, nil
	}
	if chat, ok := cs.directChats.get(to.Chat); ok {
		return chat, nil
	}
	ctx, t, done := startCall(ctx)
	defer done()
	open, _, _, err := cs.api.OpenConversationContext(ctx, &slackgo.OpenConversationParameters{Users: []string{to.Chat}})
	if err != nil {
		return "", asRepeatable(sendError(err, t))
	}
	if open == nil || open.ID == "" {
		return "", &channels.SendError{Fault: channels.Retry, Code: "unreadable", Err: errors.New("the answer is not what Slack gives")}
	}
	cs.directChats.put(to.Chat, open.ID)
	return open.ID, nil
}

// noteDirectChat remembers which chat a message to a user went to.
func (cs *conversations) noteDirectChat(user, chat string) { cs.directChats.put(user, chat) }

// describeChat returns the name that people see for a chat, and whether the bot is in the chat; "" and false for a
// chat that the bot can't see.
func (cs *conversations) describeChat(ctx context.Context, chat string) (name string, takesPart bool, err error) {
	if chat == "" {
		return "", false, nil
	}
	var info *slackgo.Channel
	err = callRepeatable(ctx, func(ctx context.Context) (err error) {
		info, err = cs.api.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: chat})
		return err
	})
	if err == nil {
		return markup.OneLine(info.Name, maxName), info.IsIM || info.IsMember, nil
	}
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Code == "channel_not_found" {
		return "", false, nil // a private channel, or a chat between other people
	}
	return "", false, err
}

// PrivateChat implements channels.Whisperer: it returns the address of a person's private chat with the bot.
func (cs *conversations) PrivateChat(ctx context.Context, person string) (bus.Address, error) {
	_, user, _ := strings.Cut(person, ":")
	chat, err := cs.chatID(ctx, bus.Address{Channel: cs.name, Chat: user})
	return bus.Address{Channel: cs.name, Chat: chat}, err
}

// ReplyAddress implements channels.Replier: it returns the address of replies to a message that was sent. In a
// channel, that is the message's thread; for a message to a person, it is the chat with that person.
func (cs *conversations) ReplyAddress(ctx context.Context, to bus.Address, id string) (bus.Address, error) {
	chat, err := cs.chatID(ctx, to)
	if err != nil {
		return bus.Address{}, err
	}
	to.Chat = chat
	if to.Thread == "" && isTS(id) && (&message{Channel: chat}).isGroup() {
		to.Thread = id
	}
	return to, nil
}

// maxMemberPages is the maximum number of pages of members that are read, each with a thousand members.
const maxMemberPages = 50

// IsIn implements channels.Roster: it reports whether a person is a member of a chat.
func (cs *conversations) IsIn(ctx context.Context, chat, person string) (bool, error) {
	_, user, _ := strings.Cut(person, ":")
	cursor := ""
	for range maxMemberPages {
		ctx, t, done := startCall(ctx)
		users, next, err := cs.api.GetUsersInConversationContext(ctx, &slackgo.GetUsersInConversationParameters{ChannelID: chat, Cursor: cursor, Limit: 1000})
		done()
		if err != nil {
			return false, asRepeatable(sendError(err, t))
		}
		if slices.Contains(users, user) {
			return true, nil
		}
		if cursor = next; cursor == "" {
			return false, nil
		}
	}
	return false, &channels.SendError{Fault: channels.Unknown, Code: "too_much", Err: errHistoryTooLong}
}

// FindChat implements channels.Historian: it returns the id of the channel with that id or
// name, with or without #; "" if there is none.
func (cs *conversations) FindChat(ctx context.Context, name string) (string, error) {
	name = strings.TrimPrefix(name, "#")
	cursor := ""
	for range maxPages {
		ctx, t, done := startCall(ctx)
		page, next, err := cs.api.GetConversationsForUserContext(ctx, &slackgo.GetConversationsForUserParameters{
			Cursor: cursor, Limit: pageSize, ExcludeArchived: true, Types: []string{"public_channel", "private_channel", "mpim", "im"},
		})
		done()
		if err != nil {
			return "", asRepeatable(sendError(err, t))
		}
		for _, one := range page {
			if one.ID == name || one.Name != "" && strings.EqualFold(one.Name, name) {
				return one.ID, nil
			}
		}
		if cursor = next; cursor == "" {
			return "", nil
		}
	}
	return "", nil
}
