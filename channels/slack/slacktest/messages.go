package slacktest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Message is a message in a channel, as everybody there sees it.
type Message struct {
	TS                string `json:"ts"`
	Channel           string `json:"channel"`
	Thread            string `json:"thread,omitempty"`
	User              string `json:"user"`
	Text              string `json:"text"` // the text as it was sent, in mrkdwn
	Key               string `json:"key,omitempty"`
	File              string `json:"file,omitempty"` // the file's name
	Data              []byte `json:"-"`
	NotifiesEverybody bool   `json:"calls"`   // whether the message notifies everybody
	ShowsPreviews     bool   `json:"unfurls"` // whether links show previews
	Edits             int    `json:"edits,omitempty"`
	// Changed is when the text was last changed.
	Changed time.Time `json:"changed"`
	// Buttons are shown below the text. Shown is the text that people see: the text of the blocks, if there are
	// any.
	Buttons []Button `json:"buttons,omitempty"`
	Shown   string   `json:"shown"`
	// Markdown is the text of the message's markdown blocks.
	Markdown string `json:"markdown,omitempty"`
	// Streaming is true while the message may grow; To is the user for whom it was started.
	Streaming     bool   `json:"streaming,omitempty"`
	Cards         []Card `json:"cards,omitempty"`
	growsByChunks bool   // whether it grows by chunks, and not only by text
	To            string `json:"to,omitempty"`
	blocks        layout
	extraFields   map[string]any
}

// Say writes a message as that user and returns its ts. A channel whose id begins with D is the user's private chat
// with the bot.
func (s *Server) Say(channel, user, text string) string {
	return s.Post(channel, user, map[string]any{"text": text})
}

// Reply writes a message to a thread as that user and returns its ts.
func (s *Server) Reply(channel, thread, user, text string) string {
	return s.Post(channel, user, map[string]any{"text": text, "thread_ts": thread})
}

// Post writes a message of any kind as that user, with these fields of Slack's JSON. It returns the
// message's ts.
func (s *Server) Post(channel, user string, fields map[string]any) string {
	m := &Message{Channel: channel, User: user, extraFields: fields}
	m.Text, _ = fields["text"].(string)        // "" means the same as none
	m.Thread, _ = fields["thread_ts"].(string) // likewise
	s.mu.Lock()
	s.store(m)
	put := *m
	s.mu.Unlock()
	s.announce(put)
	return put.TS
}

// store gives a message its ts and keeps it. The caller holds s.mu.
func (s *Server) store(m *Message) {
	s.lastTS = max(s.lastTS+1, time.Now().UnixMicro())
	m.TS = fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
	m.Changed = time.Now()
	s.channels[m.Channel] = append(s.channels[m.Channel], m)
}

// announce sends the app the event for a message and, if the message mentions the bot in a channel, a second one.
func (s *Server) announce(m Message) {
	event := m.asJSON()
	event["channel"], event["event_ts"] = m.Channel, m.TS
	event["channel_type"] = map[byte]string{'D': "im", 'G': "group"}[m.Channel[0]]
	if event["channel_type"] == "" {
		event["channel_type"] = "channel"
	}
	s.sockets.sendEvent(event, "Ev"+m.TS)
	if strings.Contains(m.Text, "<@"+Bot+">") && m.Channel[0] != 'D' {
		event["type"] = "app_mention"
		delete(event, "channel_type")
		s.sockets.sendEvent(event, "Ev-m"+m.TS)
	}
}

// asJSON returns a message in Slack's JSON.
func (m *Message) asJSON() map[string]any {
	e := map[string]any{"type": "message", "user": m.User, "text": m.Text, "ts": m.TS, "team": Team}
	if m.Thread != "" {
		e["thread_ts"] = m.Thread
	}
	if m.User == Bot {
		e["bot_id"] = botID
	}
	if m.File != "" {
		e["files"] = []map[string]any{{"id": "F" + m.TS, "name": m.File, "title": m.File}}
	}
	maps.Copy(e, m.extraFields)
	return e
}

// SendEvent sends the app an event with these fields of Slack's JSON.
func (s *Server) SendEvent(fields map[string]any) {
	s.mu.Lock()
	s.lastTS++
	id := fmt.Sprint("Ev", s.lastTS)
	s.mu.Unlock()
	s.sockets.sendEvent(fields, id)
}

// Sent returns the messages that the bot has sent to a channel and its threads, in order.
func (s *Server) Sent(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent(channel)
}

// sent does what Sent does, for callers that hold s.mu.
func (s *Server) sent(channel string) []Message {
	sent := []Message{}
	for _, m := range s.channels[channel] {
		if m.User == Bot {
			sent = append(sent, *m)
		}
	}
	return sent
}

// WaitSent waits until the bot has sent at least n messages to a channel, and returns them. If ctx ends first, it
// returns an error.
func (s *Server) WaitSent(ctx context.Context, channel string, n int) ([]Message, error) {
	for {
		s.mu.Lock()
		sent, wake := s.sent(channel), s.wake
		s.mu.Unlock()
		if len(sent) >= n {
			return sent, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d messages in channel %s: %w", len(sent), n, channel, ctx.Err())
		}
	}
}

// Sends returns how many messages the bot has sent to all channels together.
func (s *Server) Sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, all := range s.channels {
		for _, m := range all {
			if m.User == Bot {
				n++
			}
		}
	}
	return n
}

// Reactions returns the bot's reactions to a message.
func (s *Server) Reactions(channel, ts string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reactions[channel+" "+ts])
}

// A Whisper is a message that only one user sees.
type Whisper struct{ Channel, User, Thread, Text string }

// Whispers returns the whispers that the bot has sent, in order.
func (s *Server) Whispers() []Whisper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.whispers)
}

// find returns the message with that ts; nil if there is none. The caller holds s.mu.
func (s *Server) find(channel, ts string) *Message {
	for _, m := range s.channels[channel] {
		if m.TS == ts {
			return m
		}
	}
	return nil
}
