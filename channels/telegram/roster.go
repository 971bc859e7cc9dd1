package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"parley/bus"
	"parley/channels"
)

// A roster knows who is in the bot's groups. Telegram reliably says so only to bots that are administrators of a
// group; it may refuse to tell others.
type roster struct {
	*api
	moves *movedGroups
}

// IsIn implements channels.Roster.
func (r *roster) IsIn(ctx context.Context, chat, person string) (bool, error) {
	current, err := r.moves.currentID(ctx, chat)
	if err != nil {
		return false, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
	}
	id, _, err := parseAddress(bus.Address{Chat: current})
	if err != nil {
		return false, err
	}
	_, number, _ := strings.Cut(person, ":")
	user, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return false, &channels.SendError{Fault: channels.Rejected, Code: "bad_person", Err: errors.New("the person is not a number")}
	}
	var member struct {
		Status string `json:"status"`
		// IsMember says whether somebody whose status is restricted is in the group.
		IsMember bool `json:"is_member"`
	}
	if err := r.call(ctx, "getChatMember", map[string]any{"chat_id": id, "user_id": user}, &member); err != nil {
		return false, err
	}
	switch member.Status {
	case "creator", "administrator", "member":
		return true, nil
	case "restricted":
		return member.IsMember, nil
	}
	return false, nil
}
