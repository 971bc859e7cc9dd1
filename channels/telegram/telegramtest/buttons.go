package telegramtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What Telegram accepts for buttons.
const (
	maxButtons      = 100
	maxButtonsInRow = 8
	maxPressData    = 64 // the maximum number of bytes of a button's data
	maxPressText    = 200
)

// A Button is one button below a message.
type Button struct {
	Label string `json:"text"`
	Data  string `json:"callback_data"`
}

// A Press records how the bot answered a button press.
type Press struct {
	Answered     bool
	Text         string // the text that is shown to the person who pressed the button
	ShownAsAlert bool   // whether the text is shown in a window
}

// parseButtons reads the keyboard of a call, and refuses what Telegram refuses.
func (p params) parseButtons() ([]Button, error) {
	raw := p["reply_markup"]
	if raw == "" {
		return nil, nil
	}
	var keyboard struct {
		Rows [][]Button `json:"inline_keyboard"`
	}
	if err := json.Unmarshal([]byte(raw), &keyboard); err != nil {
		return nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	for _, row := range keyboard.Rows {
		if len(row) > maxButtonsInRow {
			return nil, badRequest("REPLY_MARKUP_TOO_LONG")
		}
	}
	all := slices.Concat(keyboard.Rows...)
	if len(all) > maxButtons {
		return nil, badRequest("REPLY_MARKUP_TOO_LONG")
	}
	for _, b := range all {
		switch {
		case b.Label == "":
			return nil, badRequest("can't parse inline keyboard button: text must be non-empty")
		case b.Data == "":
			return nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
		case len(b.Data) > maxPressData:
			return nil, badRequest("BUTTON_DATA_INVALID")
		}
	}
	return all, nil
}

// PressButton presses the button with that label below one of the bot's messages, as that user, and returns the id
// of the press. It panics if there is no such button.
func (s *Server) PressButton(chat, user int64, message int, label string) string {
	s.mu.Lock()
	c := s.findChat(chat)
	data, thread := "", 0
	for _, m := range c.sent {
		if i := slices.IndexFunc(m.Buttons, func(b Button) bool { return b.Label == label }); m.ID == message && i >= 0 {
			data, thread = m.Buttons[i].Data, m.Thread
		}
	}
	s.mu.Unlock()
	if data == "" {
		panic(fmt.Sprintf("telegramtest: message %d of chat %d has no button %q", message, chat, label))
	}
	fields := map[string]any{}
	if thread != 0 {
		fields["message_thread_id"], fields["is_topic_message"] = thread, true
	}
	return s.Press(chat, user, message, data, fields)
}

// Press makes a user press a button with that data, even if the message no longer has it, because the user's app
// may not have shown an edit yet. fields are added to the message in the update. Press returns the id of the press. A
// bot that has not asked for presses receives none.
func (s *Server) Press(chat, user int64, message int, data string, fields map[string]any) string {
	shown := s.messageJSON(chat, message)
	maps.Copy(shown, fields)
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprint("press", len(s.presses)+1)
	s.presses[id] = new(Press)
	if s.allowedUpdates != "" && !strings.Contains(s.allowedUpdates, `"callback_query"`) {
		return id // the bot has not asked for presses
	}
	s.enqueue(map[string]any{"callback_query": map[string]any{
		"id": id, "from": userFields(user), "message": shown, "chat_instance": "1", "data": data,
	}})
	return id
}

// PressResult returns a press with the bot's answer so far. It panics if there is no such press.
func (s *Server) PressResult(id string) Press {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.presses[id]
}

// answerPress handles the bot's answer to a press: it accepts one answer, to a press that
// exists.
func (s *Server) answerPress(p params) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	press := s.presses[p["callback_query_id"]]
	if press == nil || press.Answered {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	if utf16Length(p["text"]) > maxPressText {
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	*press = Press{Answered: true, Text: p["text"], ShownAsAlert: p["show_alert"] == "true"}
	return []byte(`{"ok":true,"result":true}`), nil
}
