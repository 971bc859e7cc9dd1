package telegramtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sendMessage checks a message as Telegram would, and stores it.
func (s *Server) sendMessage(p params) ([]byte, error) {
	m, err := p.newMessage(p["text"])
	if err != nil {
		return nil, err
	}
	if m.Text == "" {
		return nil, badRequest("message text is empty")
	}
	if utf16Length(m.Text) > maxTextUnits {
		return nil, badRequest("message is too long")
	}
	return s.store(m, p)
}

// sendFile checks a message with a file, which is in the parameter with that name, and stores it.
func (s *Server) sendFile(p params, field string) ([]byte, error) {
	m, err := p.newMessage(p["caption"])
	if err != nil {
		return nil, err
	}
	name, attached := p[field+fileName]
	if !attached || name == "" {
		return nil, badRequest("there is no " + field + " in the request")
	}
	m.File = &File{Name: name, Size: len(p[field]), Data: []byte(p[field]), Photo: field == "photo"}
	// Telegram shows a voice note that isn't Ogg/Opus as another file.
	m.File.Voice = field == "voice" && bytes.HasPrefix(m.File.Data, []byte("OggS")) && bytes.Contains(m.File.Data, []byte("OpusHead"))
	if m.File.Size == 0 {
		return nil, badRequest("file must be non-empty")
	}
	if m.File.Photo {
		_, notPNG := png.Decode(bytes.NewReader(m.File.Data))
		if _, err := jpeg.Decode(bytes.NewReader(m.File.Data)); err != nil && notPNG != nil {
			return nil, badRequest("IMAGE_PROCESS_FAILED")
		}
	}
	if utf16Length(m.Text) > maxCaptionUnits {
		return nil, badRequest("message caption is too long")
	}
	return s.store(m, p)
}

// newMessage returns a message with that text from a call's parameters, without an id.
func (p params) newMessage(raw string) (Message, error) {
	m := Message{
		Chat:   p.intParam("chat_id"),
		Thread: int(p.intParam("message_thread_id")),
		At:     time.Now(),
	}
	if m.Chat == 0 {
		return Message{}, badRequest("chat not found")
	}
	if m.Thread == 1 {
		return Message{}, badRequest("message thread not found") // the first topic has no thread
	}
	var err error
	if m.Buttons, err = p.parseButtons(); err != nil {
		return Message{}, err
	}
	return m, p.setText(&m, raw)
}

// setText sets a message's text, as Telegram reads it in the call's parse mode.
func (p params) setText(m *Message, raw string) error {
	m.Raw, m.Mode, m.Text, m.Entities, m.Unformatted = raw, p["parse_mode"], strings.TrimSpace(raw), 0, 0
	if m.Mode != "HTML" {
		return nil
	}
	if len(raw) > maxRawBytes {
		return badRequest("message is too long")
	}
	h, err := readHTML(raw)
	if err != nil {
		return badRequest("can't parse entities: " + err.Error())
	}
	if h.weight > maxEntityWeight {
		return badRequest("ENTITIES_TOO_LONG")
	}
	m.Text = strings.TrimSpace(h.text)
	m.Entities = min(h.entities, maxEntities)
	m.Unformatted = h.entities - m.Entities
	return nil
}

// store gives a message its id and puts it into its chat.
func (s *Server) store(m Message, p params) ([]byte, error) {
	var reply struct {
		ID     int  `json:"message_id"`
		Anyway bool `json:"allow_sending_without_reply"`
	}
	if quoted := p["reply_parameters"]; quoted != "" {
		if err := json.Unmarshal([]byte(quoted), &reply); err != nil {
			return nil, badRequest("can't parse reply parameters JSON object")
		}
		m.ReplyTo = reply.ID
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.findChat(m.Chat)
	if m.ReplyTo > c.lastID {
		if !reply.Anyway {
			return nil, badRequest("message to be replied not found")
		}
		m.ReplyTo = 0
	}
	c.lastID++
	m.ID = c.lastID
	c.sent, c.drafts = append(c.sent, m), nil
	s.sends++
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
	return sentAnswer(m), nil
}

// editMessageText answers the method with that name.
func (s *Server) editMessageText(p params) ([]byte, error) {
	var now Message
	err := p.setText(&now, p["text"])
	if err == nil {
		now.Buttons, err = p.parseButtons()
	}
	switch {
	case err != nil:
		return nil, err
	case now.Text == "":
		return nil, badRequest("message text is empty")
	case utf16Length(now.Text) > maxTextUnits:
		return nil, badRequest("message is too long")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, id := s.findChat(p.intParam("chat_id")), int(p.intParam("message_id"))
	i := slices.IndexFunc(c.sent, func(m Message) bool { return m.ID == id })
	if i < 0 {
		if id > 0 && id <= c.lastID {
			return nil, badRequest("message can't be edited") // somebody else wrote it
		}
		return nil, badRequest("message to edit not found")
	}
	m := &c.sent[i]
	if m.File != nil {
		return nil, badRequest("there is no text in the message to edit")
	}
	if m.Raw == p["text"] && m.Mode == p["parse_mode"] && slices.Equal(m.Buttons, now.Buttons) {
		return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the same")
	}
	// What has been returned for the message must not change.
	m.Earlier = append(slices.Clip(m.Earlier), m.Text)
	m.Text, m.Raw, m.Mode, m.Entities, m.Unformatted = now.Text, now.Raw, now.Mode, now.Entities, now.Unformatted
	m.Buttons = now.Buttons
	m.Edited = time.Now()
	return sentAnswer(*m), nil
}

// sentAnswer returns Telegram's answer about a message that it has accepted.
func sentAnswer(m Message) []byte {
	out := make([]byte, 0, 160+len(m.Text))
	out = append(out, `{"ok":true,"result":{"message_id":`...)
	out = strconv.AppendInt(out, int64(m.ID), 10)
	out = append(out, `,"date":`...)
	out = strconv.AppendInt(out, m.At.Unix(), 10)
	out = append(out, `,"chat":{"id":`...)
	out = strconv.AppendInt(out, m.Chat, 10)
	out = append(out, `,"type":"`+chatType(m.Chat)+`"},"text":`...)
	text, _ := json.Marshal(m.Text) // a string always encodes
	out = append(out, text...)
	return append(out, "}}"...)
}

// A refusal is an answer that is not ok.
type refusal struct {
	status     int
	text       string
	retryAfter int
	migrateTo  int64
}

// Error returns Telegram's description.
func (r refusal) Error() string { return r.text }

// badRequest returns a refusal with status 400.
func badRequest(text string) refusal {
	return refusal{status: http.StatusBadRequest, text: "Bad Request: " + text}
}

// writeError answers with a refusal.
func writeError(w http.ResponseWriter, r refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	text, _ := json.Marshal(r.text) // a string always encodes
	parameters := ""
	switch {
	case r.retryAfter > 0:
		parameters = fmt.Sprintf(`,"parameters":{"retry_after":%d}`, r.retryAfter)
	case r.migrateTo != 0:
		parameters = fmt.Sprintf(`,"parameters":{"migrate_to_chat_id":%d}`, r.migrateTo)
	}
	_, _ = fmt.Fprintf(w, `{"ok":false,"error_code":%d,"description":%s%s}`, r.status, text, parameters) // the caller may be gone
}
