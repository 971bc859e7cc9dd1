package slacktest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// mostStreamed is the maximum length of the text that one call may append, in bytes.
const mostStreamed = 12000

// startStream answers chat.startStream: it starts a growing message.
func (s *Server) startStream(w http.ResponseWriter, form url.Values) {
	m := &Message{Channel: formValue(form, "channel", "?"), User: Bot, Thread: form.Get("thread_ts"), To: form.Get("recipient_user_id"), Streaming: true}
	s.mu.Lock()
	code := ""
	switch {
	case s.channels[m.Channel] == nil:
		code = "channel_not_found"
	case s.absent[m.Channel]:
		code = "not_in_channel"
	case m.Thread == "" || s.find(m.Channel, m.Thread) == nil:
		code = "invalid_thread_ts"
	case m.Channel[0] != 'D' && m.To == "":
		code = "missing_recipient_user_id"
	case m.Channel[0] != 'D' && form.Get("recipient_team_id") == "":
		code = "missing_recipient_team_id"
	default:
		m.growsByChunks = form.Get("chunks") != ""
		code = m.grow(form)
	}
	if code != "" {
		s.mu.Unlock()
		writeError(w, code)
		return
	}
	put := s.storeSent(m)
	s.mu.Unlock()
	s.announce(put)
	writeResult(w, map[string]any{"channel": put.Channel, "ts": put.TS})
}

// changeStream answers chat.appendStream or, if ends is true, chat.stopStream.
func (s *Server) changeStream(w http.ResponseWriter, form url.Values, ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(form.Get("channel"), form.Get("ts"))
	switch {
	case m == nil:
		writeError(w, "message_not_found")
	case m.User != Bot:
		writeError(w, "message_not_owned_by_app")
	case !m.Streaming:
		writeError(w, "message_not_in_streaming_state")
	case form.Get("markdown_text")+form.Get("chunks") == "" && !ends:
		writeError(w, "no_text")
	default:
		if code := m.grow(form); code != "" {
			writeError(w, code)
			return
		}
		m.Streaming = !ends
		writeResult(w, map[string]any{"channel": m.Channel, "ts": m.TS})
	}
}

// A Card shows in a growing message what the bot is doing.
type Card struct{ ID, Title, Status string }

// grow appends to a message, and returns the code with which Slack refuses that; "" if Slack accepts it. A
// message's text comes either alone or in chunks among cards, always in the same way.
func (m *Message) grow(form url.Values) (code string) {
	text, chunked := form.Get("markdown_text"), form.Get("chunks") != ""
	switch {
	case text != "" && chunked:
		return "cannot_provide_both_markdown_text_and_chunks"
	case chunked != m.growsByChunks && (text != "" || chunked):
		return "streaming_mode_mismatch"
	}
	var chunks []struct {
		Type, Text, ID, Title, Status string
	}
	if chunked && (json.Unmarshal([]byte(form.Get("chunks")), &chunks) != nil || len(chunks) == 0) {
		return "invalid_chunks"
	}
	var cards []Card
	for _, c := range chunks {
		switch {
		case c.Type == "markdown_text" && c.Text != "":
			text += c.Text
		case c.Type == "task_update" && c.ID != "" && c.Title != "" && slices.Contains([]string{"pending", "in_progress", "complete", "error"}, c.Status):
			cards = append(cards, Card{c.ID, c.Title, c.Status})
		default:
			return "invalid_chunks"
		}
	}
	if len(text) > mostStreamed {
		return "msg_too_long"
	}
	for _, c := range cards {
		if i := slices.IndexFunc(m.Cards, func(k Card) bool { return k.ID == c.ID }); i >= 0 {
			m.Cards[i] = c
			continue
		}
		m.Cards = append(m.Cards, c)
	}
	m.Text += text
	m.Shown = m.Text
	for _, all := range []string{"<!channel", "<!here", "<!everyone", "<!subteam", "@channel", "@here", "@everyone"} {
		m.NotifiesEverybody = m.NotifiesEverybody || strings.Contains(m.Text, all)
	}
	return ""
}

// EndStreams ends all growing messages, as Slack does by itself after some minutes.
func (s *Server) EndStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.channels {
		for _, m := range all {
			m.Streaming = false
		}
	}
}
