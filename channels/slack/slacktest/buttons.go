package slacktest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// What Slack accepts in blocks.
const (
	maxBlocks  = 50
	maxSection = 3000
	// maxMarkdown is the maximum length of the texts of all markdown blocks in a message together, and
	// maxAllBlocks that of all its blocks.
	maxMarkdown     = 12000
	maxAllBlocks    = 13200
	maxRows         = 100 // the maximum number of rows in the one table that a message may have
	maxColumns      = 20
	maxButtonsInRow = 25
	maxLabel        = 75
	maxValue        = 2000
	maxActionID     = 255
)

// A Button is one button below a message.
type Button struct {
	Label  string `json:"label"`
	Value  string `json:"value"`
	Action string `json:"action_id"`
}

// A layout is what a message shows besides its text.
type layout struct {
	Blocks    []block
	Attached  []attachment
	isInvalid bool
}

type attachment struct {
	Blocks []block `json:"blocks"`
}

type block struct {
	Type     string    `json:"type"`
	Text     blockText `json:"text"`
	Elements []struct {
		Type   string `json:"type"`
		Value  string `json:"value"`
		Action string `json:"action_id"`
		Text   struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"text"`
	} `json:"elements"`
}

// A blockText is the text of a block. In JSON it is an object or, for a markdown block, a string.
type blockText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// UnmarshalJSON implements json.Unmarshaler: it reads an object or a string.
func (t *blockText) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &t.Text)
	}
	type object blockText
	return json.Unmarshal(data, (*object)(t))
}

// markdown returns the texts of the markdown blocks.
func (l layout) markdown() (texts []string) {
	for _, b := range l.Blocks {
		if b.Type == "markdown" {
			texts = append(texts, b.Text.Text)
		}
	}
	return texts
}

// changed returns the layout after a call has changed it. What the call does not name stays as it is.
func (l layout) changed(form url.Values) layout {
	l.isInvalid = false
	if form.Has("blocks") {
		l.Blocks = nil
		l.isInvalid = json.Unmarshal([]byte(form.Get("blocks")), &l.Blocks) != nil
	}
	if form.Has("attachments") {
		l.Attached = nil
		l.isInvalid = json.Unmarshal([]byte(form.Get("attachments")), &l.Attached) != nil || l.isInvalid
	}
	return l
}

// all returns all blocks: first the message's own, then the ones in attachments.
func (l layout) all() []block {
	all := slices.Clone(l.Blocks)
	for _, a := range l.Attached {
		all = append(all, a.Blocks...)
	}
	return all
}

// refusalCode returns the code with which Slack refuses a layout; "" if it accepts the layout.
func (l layout) refusalCode() string {
	if l.isInvalid || len(l.Blocks) > maxBlocks {
		return "invalid_blocks"
	}
	if code := markdownRefusalCode(l.markdown()); code != "" {
		return code
	}
	seen := map[string]bool{}
	together := 0
	for _, b := range l.all() {
		if together += utf16Length(b.Text.Text); together > maxAllBlocks {
			return "msg_blocks_too_long"
		}
		switch b.Type {
		case "markdown":
			if b.Text.Type != "" {
				return "invalid_blocks"
			}
		case "section":
			if n := utf16Length(b.Text.Text); n == 0 || n > maxSection || b.Text.Type != "mrkdwn" {
				return "invalid_blocks"
			}
		case "actions":
			if len(b.Elements) == 0 || len(b.Elements) > maxButtonsInRow {
				return "invalid_blocks"
			}
			for _, e := range b.Elements {
				n := utf16Length(e.Text.Text)
				if e.Type != "button" || e.Text.Type != "plain_text" || n == 0 || n > maxLabel ||
					len(e.Value) > maxValue || len(e.Action) > maxActionID || seen[e.Action] {
					return "invalid_blocks"
				}
				seen[e.Action] = true
			}
		default:
			return "invalid_blocks"
		}
	}
	return ""
}

// utf16Length returns the length of a text in UTF-16 units.
func utf16Length(s string) int { return len(utf16.Encode([]rune(s))) }

// markdownRefusalCode returns the code with which Slack refuses markdown blocks; "" if it
// accepts them.
func markdownRefusalCode(texts []string) string {
	length, tables := 0, 0
	for _, text := range texts {
		n := utf16Length(text)
		if length += n; n == 0 || length > maxMarkdown {
			return "invalid_blocks"
		}
		for _, rows := range tablesOf(text) {
			if tables++; tables > 1 || len(rows) > maxRows || strings.Count(rows[0], "|") > maxColumns+1 {
				return "invalid_blocks"
			}
		}
	}
	return ""
}

// tablesOf returns the tables in a Markdown text, each as its lines without the one below the header.
func tablesOf(text string) (tables [][]string) {
	fenced := false
	var rows []string
	for _, line := range append(strings.Split(text, "\n"), "") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "|") {
			rows = append(rows, line)
			continue
		}
		if len(rows) > 1 && strings.Trim(rows[1], "|:- ") == "" {
			tables = append(tables, append(rows[:1:1], rows[2:]...))
		}
		rows = nil
	}
	return tables
}

// shown returns the text that people see, which is the blocks' text if there are any blocks and otherwise text, and
// the buttons.
func (l layout) shown(text string) (string, []Button) {
	var sections []string
	var buttons []Button
	for _, b := range l.all() {
		for _, e := range b.Elements {
			buttons = append(buttons, Button{e.Text.Text, e.Value, e.Action})
		}
	}
	for _, b := range l.Blocks {
		sections = append(sections, b.Text.Text)
	}
	if len(l.Blocks) > 0 {
		text = strings.TrimSpace(strings.Join(sections, "\n"))
	}
	return text, buttons
}

// PressButton presses the button with that label below one of the bot's messages, as that user, and returns the id
// of the envelope. Slack sends it once: if it is not acknowledged in time, Slack tells the user that it failed. It
// panics if there is no such button.
func (s *Server) PressButton(channel, user, ts, label string) (envelope string) {
	s.mu.Lock()
	m := s.find(channel, ts)
	i := -1
	if m != nil {
		i = slices.IndexFunc(m.Buttons, func(b Button) bool { return b.Label == label })
	}
	var b Button
	if i >= 0 {
		b = m.Buttons[i]
	}
	s.mu.Unlock()
	if i < 0 {
		panic(fmt.Sprintf("slacktest: message %s of %s has no button %q", ts, channel, label))
	}
	return s.Press(channel, user, ts, b)
}

// Press makes a user press a button, even if the message no longer has it, because the user's app may not have shown
// an edit yet. It returns the id of the envelope, and panics if there is no such message.
func (s *Server) Press(channel, user, ts string, b Button) (envelope string) {
	s.mu.Lock()
	m := s.find(channel, ts)
	if m == nil {
		s.mu.Unlock()
		panic(fmt.Sprintf("slacktest: %s has no message %s", channel, ts))
	}
	shown := m.asJSON()
	s.lastTS = max(s.lastTS+1, time.Now().UnixMicro())
	at := fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
	s.mu.Unlock()
	payload, err := json.Marshal(map[string]any{
		"type": "block_actions", "trigger_id": "1." + at, "response_url": "https://hooks.slack.com/actions/1",
		"user":    map[string]any{"id": user, "username": strings.ToLower(user), "name": strings.ToLower(user), "team_id": Team},
		"team":    map[string]any{"id": Team, "domain": "team"},
		"channel": map[string]any{"id": channel}, "message": shown,
		"container": map[string]any{"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": false},
		"actions": []any{map[string]any{
			"type": "button", "action_id": b.Action, "block_id": "b1", "value": b.Value, "action_ts": at,
			"text": map[string]any{"type": "plain_text", "text": b.Label, "emoji": false},
		}},
	})
	if err != nil {
		panic("slacktest: a press that is no JSON: " + err.Error()) // the test's mistake
	}
	return s.sockets.enqueue(interactive, channel, payload)
}
