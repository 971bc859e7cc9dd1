package telegramtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What Telegram takes of buttons.
const (
	mostButtons   = 100
	mostInRow     = 8
	mostPressData = 64 // bytes
	mostPressText = 200
)

// A Button is one below a message.
type Button struct {
	Label string `json:"text"`
	Data  string `json:"callback_data"`
}

// A Press is what became of a press of a button.
type Press struct {
	Answered bool
	Text     string // that the presser is shown
	Alert    bool   // in a window
}

// buttons reads the keyboard of a call as Telegram does.
func (p params) buttons() ([]Button, error) {
	raw := p["reply_markup"]
	if raw == "" {
		return nil, nil
	}
	var keyboard struct {
		Rows [][]Button `json:"inline_keyboard"`
	}
	if err := json.Unmarshal([]byte(raw), &keyboard); err != nil {
		return nil, bad("can't parse reply keyboard markup JSON object")
	}
	for _, row := range keyboard.Rows {
		if len(row) > mostInRow {
			return nil, bad("REPLY_MARKUP_TOO_LONG")
		}
	}
	all := slices.Concat(keyboard.Rows...)
	if len(all) > mostButtons {
		return nil, bad("REPLY_MARKUP_TOO_LONG")
	}
	for _, b := range all {
		switch {
		case b.Label == "":
			return nil, bad("can't parse inline keyboard button: text must be non-empty")
		case b.Data == "":
			return nil, bad("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
		case len(b.Data) > mostPressData:
			return nil, bad("BUTTON_DATA_INVALID")
		}
	}
	return all, nil
}

// PressButton lets a user press the button with that label below a message of the
// bot's, and returns the id of the press. A test that names none has a mistake.
func (s *Server) PressButton(chat, user int64, message int, label string) string {
	s.mu.Lock()
	c := s.chat(chat)
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

// Press lets a user press a button that brings the data, whether it is still there or
// not, as an app may that has not seen the edit yet. The fields are added to the
// message of the update.
func (s *Server) Press(chat, user int64, message int, data string, fields map[string]any) string {
	shown := s.shown(chat, message)
	maps.Copy(shown, fields)
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprint("press", len(s.presses)+1)
	s.presses[id] = new(Press)
	if s.allowed != "" && !strings.Contains(s.allowed, `"callback_query"`) {
		return id // the bot has not asked for presses
	}
	s.enqueue(map[string]any{"callback_query": map[string]any{
		"id": id, "from": userFields(user), "message": shown, "chat_instance": "1", "data": data,
	}})
	return id
}

// Pressed is what became of a press.
func (s *Server) Pressed(id string) Press {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.presses[id]
}

// answerPress takes the answer to a press: one, and of a press that there was.
func (s *Server) answerPress(p params) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	press := s.presses[p["callback_query_id"]]
	if press == nil || press.Answered {
		return nil, bad("query is too old and response timeout expired or query ID is invalid")
	}
	if units(p["text"]) > mostPressText {
		return nil, bad("MESSAGE_TOO_LONG")
	}
	*press = Press{Answered: true, Text: p["text"], Alert: p["show_alert"] == "true"}
	return []byte(`{"ok":true,"result":true}`), nil
}
