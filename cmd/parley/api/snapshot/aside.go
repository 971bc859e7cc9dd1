package snapshot

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"parley/agent/blocks"
	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/web"
	"parley/sessions"
)

// kindReply is the Kind of an Aside that contains what a turn that failed or was stopped told its person.
const kindReply = "reply"

// kindSent is the Kind of an Aside that contains what the agent has sent to the conversation with its tool message.
const (
	kindSent    = "sent"
	toolMessage = "message"
)

// isAside reports whether an entry becomes an Aside: words of an operator, words on somebody's behalf, or a command's
// reply in a session that only watchers see. It is cheap for most other entries.
func (c *builder) isAside(e sessions.Entry) bool {
	if e.Kind == sessions.KindCommand {
		_, ok := c.watchedAddress()
		return ok
	}
	if !bytes.Contains(e.Data, []byte(`"`+sessions.NoticeOperator+`"`)) && !bytes.Contains(e.Data, []byte(`"`+sessions.NoticeTold+`"`)) {
		return false
	}
	n, err := sessions.Decode[sessions.Notice](e)
	return err == nil && (n.Code == sessions.NoticeOperator || n.Code == sessions.NoticeTold)
}

// watchedAddress returns the address of the session if people see the session only by watching; false if a platform
// shows it.
func (c *builder) watchedAddress() (bus.Address, bool) {
	key, err := sessions.ParseKey(c.key)
	at := bus.Address{Channel: key.Channel, Chat: key.Chat, Thread: key.Thread}
	return at, err == nil && (key.Channel == web.Name || key.Channel == console.Name)
}

// addAside adds the Aside that an entry contains to the snapshot.
func (c *builder) addAside(e sessions.Entry) error {
	said, err := c.asideOf(e)
	if err != nil || said.Text == "" {
		return err
	}
	if len(c.turns) > 0 {
		said.After = c.turns[len(c.turns)-1].state.Turn
	}
	c.keepAside(said)
	return nil
}

// addReplies adds what a turn told its person when it failed or was stopped, because no block contains that. Each
// reply has the same id as its event.
func (c *builder) addReplies(turn string, done sessions.TurnDone) {
	if done.State == sessions.TurnCompleted {
		return
	}
	for _, r := range done.Outbound {
		if r.Text != "" {
			c.keepAside(Aside{Call: channels.PartKey(r.ID, 0), Kind: kindReply, Turn: turn, Text: c.redact.Text(r.Text), After: turn})
		}
	}
}

// addSent adds what the agent has sent to its own conversation with the tool message, if b is the result of such a
// call: where people only watch, nothing else shows it. It has the same id as its event.
func (c *builder) addSent(t *turnBlocks, b Block) {
	if b.Kind != string(sessions.KindToolResult) || b.Tool != toolMessage || b.Failed {
		return
	}
	at, ok := c.watchedAddress()
	if !ok {
		return
	}
	for _, use := range t.blocks {
		if use.Call != b.Call || use.Kind != string(sessions.KindToolUse) {
			continue
		}
		if text := sentTo(at, use.Input); strings.TrimSpace(text) != "" {
			id := channels.PartKey(t.state.Turn+"#"+b.Call, 0) // the same id as turn.Call.Key returns
			c.keepAside(Aside{Call: id, Kind: kindSent, Text: text, Cut: use.Cut, After: t.state.Turn})
		}
	}
}

// sentTo returns the text that a call of the tool message has sent to an address; "" if it was sent elsewhere, or by the
// name of a target, which may stand for another address by now.
func sentTo(at bus.Address, args json.RawMessage) string {
	var sent struct {
		Channel string `json:"channel"`
		ChatID  string `json:"chat_id"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(args, &sent); err != nil {
		return ""
	}
	to := strings.TrimSpace(sent.Channel)
	if chat := strings.TrimSpace(sent.ChatID); chat != "" {
		to += ":" + chat
	}
	if to != at.String() {
		return ""
	}
	return sent.Content
}

// keepAside adds a message to the snapshot, and drops the oldest messages if there are too many.
func (c *builder) keepAside(said Aside) {
	c.said = append(c.said, said)
	size := 0
	for i, m := range slices.Backward(c.said) {
		if size += len(m.Text); len(c.said)-i > MaxMessages || size > maxMessageBytes {
			c.said = slices.Delete(c.said, 0, i+1)
			break
		}
	}
}

// asideOf returns the Aside that an entry contains, without its place among the turns. A reply has the same id as its
// event.
func (c *builder) asideOf(e sessions.Entry) (Aside, error) {
	if e.Kind == sessions.KindCommand {
		cmd, err := sessions.Decode[sessions.Command](e)
		id := channels.PartKey(cmd.Reply.ID, 0)
		return Aside{Call: id, Kind: bus.Command, Turn: e.Cause, Command: cmd.Name, Text: c.redact.Text(cmd.Reply.Text)}, err
	}
	n, err := sessions.Decode[sessions.Notice](e)
	b := blocks.ShowOperator(n, c.redact)
	if n.Code == sessions.NoticeTold {
		b = blocks.ShowTold(e.Cause, n, c.redact)
	}
	return Aside{Call: b.Call, Kind: b.Kind, Name: b.Name, Text: b.Text, Cut: b.Cut}, err
}
