package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"parley/bus"
	"parley/channels"
)

// generalTopic is the thread of a forum's first topic. Telegram refuses this thread in a message, but requires it
// in a chat action.
const generalTopic = 1

// isGroup reports whether a chat's id is that of a group or a channel, as opposed to a person's: it is negative or
// a name.
func isGroup(chat string) bool {
	return strings.HasPrefix(chat, "-") || strings.HasPrefix(chat, "@")
}

// parseAddress returns the chat and thread of an address. The chat is a number, or the @name of a public chat.
func parseAddress(to bus.Address) (chat any, thread int, err error) {
	chat = to.Chat
	if !strings.HasPrefix(to.Chat, "@") {
		if chat, err = strconv.ParseInt(to.Chat, 10, 64); err != nil {
			return nil, 0, &channels.SendError{Fault: channels.Rejected, Code: "bad_address", Err: errors.New("the chat is not a number")}
		}
	}
	if to.Thread != "" {
		if thread, err = strconv.Atoi(to.Thread); err != nil {
			return nil, 0, &channels.SendError{Fault: channels.Rejected, Code: "bad_address", Err: errors.New("the thread is not a number")}
		}
	}
	return chat, thread, nil
}

// messageThread returns the thread in the form that a message needs: 0 for the general topic.
func messageThread(thread int) int {
	if thread == generalTopic {
		return 0
	}
	return thread
}

// In the Bot API, a supergroup's id is supergroupBase minus the id in its links. So it lies between lowestSupergroups
// and supergroupBase.
const (
	supergroupBase    = -1_000_000_000_000
	lowestSupergroups = 2 * supergroupBase
)

// Link implements channels.Linker. Telegram has web addresses only for messages in supergroups.
func (i *identity) Link(_ context.Context, _ bus.Address, message string) (string, error) {
	parts := strings.Split(message, ":") // in the form that messageID makes
	if len(parts) != 4 || parts[0] != i.name {
		return "", nil
	}
	chat, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || chat >= supergroupBase || chat <= lowestSupergroups {
		return "", nil //nolint:nilerr // it is not the id of such a message
	}
	if n, err := strconv.Atoi(parts[3]); err != nil || n <= 0 {
		return "", nil //nolint:nilerr // as above
	}
	return fmt.Sprintf("https://t.me/c/%d/%s", supergroupBase-chat, parts[3]), nil
}

// IsGroupID reports whether a text is the id of a group, which is negative, as opposed to a name or a person's id.
func IsGroupID(id string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && n < 0
}

// IsUserID reports whether a text is the id of a Telegram user, which is positive, as opposed to a name or a
// group's id.
func IsUserID(id string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && n > 0
}
