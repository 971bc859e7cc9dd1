package slacktest

import (
	"net/http"
	"net/url"
	"strings"
)

// mostStreamed is how long a text may be by which a stream grows.
const mostStreamed = 12000

// startStream begins a message that grows.
func (s *Server) startStream(w http.ResponseWriter, form url.Values) {
	m := &Message{Channel: formOf(form, "channel", "?"), User: Bot, Thread: form.Get("thread_ts"), To: form.Get("recipient_user_id"), Streaming: true}
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
	case len(form.Get("markdown_text")) > mostStreamed:
		code = "msg_too_long"
	}
	if code != "" {
		s.mu.Unlock()
		refuse(w, code)
		return
	}
	m.grow(form.Get("markdown_text"))
	put := s.say(m)
	s.mu.Unlock()
	s.announce(put)
	reply(w, map[string]any{"channel": put.Channel, "ts": put.TS})
}

// changeStream has a message grow, or ends it.
func (s *Server) changeStream(w http.ResponseWriter, form url.Values, ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := form.Get("markdown_text")
	m := s.find(form.Get("channel"), form.Get("ts"))
	switch {
	case m == nil:
		refuse(w, "message_not_found")
	case m.User != Bot:
		refuse(w, "message_not_owned_by_app")
	case !m.Streaming:
		refuse(w, "message_not_in_streaming_state")
	case text == "" && !ends:
		refuse(w, "no_text")
	case len(text) > mostStreamed:
		refuse(w, "msg_too_long")
	default:
		m.grow(text)
		m.Streaming = !ends
		reply(w, map[string]any{"channel": m.Channel, "ts": m.TS})
	}
}

// grow appends to a message.
func (m *Message) grow(text string) {
	m.Text += text
	m.Shown = m.Text
	for _, all := range []string{"<!channel", "<!here", "<!everyone", "<!subteam", "@channel", "@here", "@everyone"} {
		m.Calls = m.Calls || strings.Contains(m.Text, all)
	}
}

// EndStreams ends all messages that grow, as Slack does by itself after some minutes.
func (s *Server) EndStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.channels {
		for _, m := range all {
			m.Streaming = false
		}
	}
}
