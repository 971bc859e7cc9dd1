package slack

import (
	"context"

	"parley/bus"
)

// ReplyAddress implements channels.Replier: in a channel a reply stands in the
// message's thread, and what was sent to a person is replied to in the chat with
// them.
func (c *Channel) ReplyAddress(ctx context.Context, to bus.Address, id string) (bus.Address, error) {
	chat, err := c.chat(ctx, to)
	if err != nil {
		return bus.Address{}, err
	}
	to.Chat = chat
	if to.Thread == "" && isTS(id) && (&message{Channel: chat}).isGroup() {
		to.Thread = id
	}
	return to, nil
}
