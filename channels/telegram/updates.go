package telegram

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-telegram/bot/models"

	"parley/tools/plainjson"
)

// An update holds its message undecoded: a message that we can't decode must not keep the other updates from being
// read.
type update struct {
	ID       int64           `json:"update_id"`
	Message  json.RawMessage `json:"message"`
	Edited   json.RawMessage `json:"edited_message"`
	Press    json.RawMessage `json:"callback_query"`
	Reaction json.RawMessage `json:"message_reaction"`
}

// An updateContent is the content of one update: a message, a button press, or a change to reactions.
type updateContent struct {
	update   int64
	chat     int64
	message  *models.Message
	edited   bool                           // whether the message is an older one whose text has changed
	press    *models.CallbackQuery          // set instead of message
	reaction *models.MessageReactionUpdated // set instead of message
}

// decode decodes an update; false if it contains neither a message nor a press nor a reaction.
func (u update) decode() (updateContent, bool, error) {
	h := updateContent{update: u.ID}
	switch {
	case len(u.Message)+len(u.Edited) > 0:
		m, err := readMessage(slices.Concat(u.Message, u.Edited)) // an update has only one of them
		if err != nil {
			return h, false, err
		}
		h.message, h.chat, h.edited = m, m.Chat.ID, len(u.Edited) > 0
	case len(u.Press) > 0:
		q := new(models.CallbackQuery)
		if err := json.Unmarshal(u.Press, q); err != nil {
			return h, false, fmt.Errorf("read a press: %w", err)
		}
		h.press, h.chat = q, pressedMessage(q).Chat.ID
	case len(u.Reaction) > 0:
		r := new(models.MessageReactionUpdated)
		if err := json.Unmarshal(u.Reaction, r); err != nil {
			return h, false, fmt.Errorf("read a reaction: %w", err)
		}
		h.reaction, h.chat = r, r.Chat.ID
	default:
		return h, false, nil
	}
	return h, true, nil
}

// readMessage decodes a message. Its origin, or the message that it replies to, may be of a newer kind than this
// release knows. In that case the rest is decoded, and a forwarded message counts as one of unknown origin.
func readMessage(raw json.RawMessage) (*models.Message, error) {
	m := new(models.Message)
	err := json.Unmarshal(raw, m)
	if err == nil {
		return m, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	if _, forwarded := fields["forward_origin"]; forwarded {
		fields["forward_origin"] = json.RawMessage(`{"type":"hidden_user"}`)
	}
	delete(fields, "reply_to_message")
	delete(fields, "external_reply")
	again, encoding := plainjson.Marshal(fields)
	m = new(models.Message)
	if encoding != nil || json.Unmarshal(again, m) != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

// pressedMessage returns the message that contains the pressed button, as far as Telegram describes it.
func pressedMessage(q *models.CallbackQuery) *models.Message {
	switch {
	case q.Message.Message != nil:
		return q.Message.Message
	case q.Message.InaccessibleMessage != nil: // the message is too old for Telegram to describe
		return &models.Message{ID: q.Message.InaccessibleMessage.MessageID, Chat: q.Message.InaccessibleMessage.Chat}
	}
	return new(models.Message) // the message of a chat that the bot is not in
}
