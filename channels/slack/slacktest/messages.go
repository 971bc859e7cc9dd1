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
	TS      string `json:"ts"`
	Channel string `json:"channel"`
	Thread  string `json:"thread,omitempty"`
	User    string `json:"user"`
	Text    string `json:"text"` // as it came, in mrkdwn
	Key     string `json:"key,omitempty"`
	File    string `json:"file,omitempty"` // its name
	Data    []byte `json:"-"`
	Calls   bool   `json:"calls"`   // it calls everybody
	Unfurls bool   `json:"unfurls"` // links show what is behind them
	Edits   int    `json:"edits,omitempty"`
	// Changed is since when the text is this.
	Changed time.Time `json:"changed"`
	// Buttons are below the text, and Shown is the text as people see it: that of the
	// blocks, if there are any.
	Buttons []Button `json:"buttons,omitempty"`
	Shown   string   `json:"shown"`
	// Markdown is that of the message's markdown block.
	Markdown string `json:"markdown,omitempty"`
	// Streaming says that the message may grow, and To for whom it was begun.
	Streaming bool   `json:"streaming,omitempty"`
	Cards     []Card `json:"cards,omitempty"`
	chunked   bool   // it grows by chunks
	To        string `json:"to,omitempty"`
	blocks    layout
	more      map[string]any
}

// Say lets a user write into a channel and returns the message's ts. A channel
// that begins with D is the user's own with the bot.
func (s *Server) Say(channel, user, text string) string {
	return s.Post(channel, user, map[string]any{"text": text})
}

// Reply is Say in a thread.
func (s *Server) Reply(channel, thread, user, text string) string {
	return s.Post(channel, user, map[string]any{"text": text, "thread_ts": thread})
}

// Post lets a user put a message of any kind into a channel: the fields are
// Slack's. It returns the message's ts.
func (s *Server) Post(channel, user string, fields map[string]any) string {
	m := &Message{Channel: channel, User: user, more: fields}
	m.Text, _ = fields["text"].(string)        // "" is as good as left out
	m.Thread, _ = fields["thread_ts"].(string) // likewise
	s.mu.Lock()
	s.put(m)
	put := *m
	s.mu.Unlock()
	s.announce(put)
	return put.TS
}

// put gives a message its ts and keeps it. s.mu is held.
func (s *Server) put(m *Message) {
	s.lastTS = max(s.lastTS+1, time.Now().UnixMicro())
	m.TS = fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
	m.Changed = time.Now()
	s.channels[m.Channel] = append(s.channels[m.Channel], m)
}

// announce tells the app of a message: of a mention in a channel twice.
func (s *Server) announce(m Message) {
	event := m.event()
	event["channel"], event["event_ts"] = m.Channel, m.TS
	event["channel_type"] = map[byte]string{'D': "im", 'G': "group"}[m.Channel[0]]
	if event["channel_type"] == "" {
		event["channel_type"] = "channel"
	}
	s.sockets.send(event, "Ev"+m.TS)
	if strings.Contains(m.Text, "<@"+Bot+">") && m.Channel[0] != 'D' {
		event["type"] = "app_mention"
		delete(event, "channel_type")
		s.sockets.send(event, "Ev-m"+m.TS)
	}
}

// event is a message as Slack writes it.
func (m *Message) event() map[string]any {
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
	maps.Copy(e, m.more)
	return e
}

// Event tells the app of something else; the fields are Slack's.
func (s *Server) Event(fields map[string]any) {
	s.mu.Lock()
	s.lastTS++
	id := fmt.Sprint("Ev", s.lastTS)
	s.mu.Unlock()
	s.sockets.send(fields, id)
}

// Sent is what the bot has sent to a channel, threads included, in order.
func (s *Server) Sent(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent(channel)
}

// sent is Sent. s.mu is held.
func (s *Server) sent(channel string) []Message {
	sent := []Message{}
	for _, m := range s.channels[channel] {
		if m.User == Bot {
			sent = append(sent, *m)
		}
	}
	return sent
}

// WaitSent waits until the bot has sent at least n messages to a channel and
// returns them.
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

// Sends is how many messages the bot has sent, all channels together.
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

// Reactions are the bot's at a message.
func (s *Server) Reactions(channel, ts string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.marks[channel+" "+ts])
}

// A Whisper is a message that one user alone sees.
type Whisper struct{ Channel, User, Thread, Text string }

// Whispers are those that the bot has sent, in order.
func (s *Server) Whispers() []Whisper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.whispers)
}

// find gives a message. s.mu is held.
func (s *Server) find(channel, ts string) *Message {
	for _, m := range s.channels[channel] {
		if m.TS == ts {
			return m
		}
	}
	return nil
}
