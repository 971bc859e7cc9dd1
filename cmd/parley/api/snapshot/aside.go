package snapshot

import (
	"bytes"
	"slices"

	"parley/agent/blocks"
	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/web"
	"parley/sessions"
)

// kindReply is the kind of what a turn that failed or was stopped told its person.
const kindReply = "reply"

// isAside reports whether an entry contains what an operator said, or a command's reply that was announced to
// watchers when it was given: these occur in sessions that no platform shows. It is cheap for most other entries.
func (c *builder) isAside(e sessions.Entry) bool {
	if e.Kind == sessions.KindCommand {
		key, err := sessions.ParseKey(c.key)
		return err == nil && (key.Channel == web.Name || key.Channel == console.Name)
	}
	if !bytes.Contains(e.Data, []byte(`"`+sessions.NoticeOperator+`"`)) {
		return false
	}
	n, err := sessions.Decode[sessions.Notice](e)
	return err == nil && n.Code == sessions.NoticeOperator
}

// addAside adds what an operator said, or the reply to a command, to the snapshot.
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

// addReplies adds what a turn told its person when it failed or was stopped, which is in no block. Each reply has the
// same id as its event.
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

// asideOf returns what an entry contains, without its place among the turns. A reply has the same id as its event.
func (c *builder) asideOf(e sessions.Entry) (Aside, error) {
	if e.Kind == sessions.KindCommand {
		cmd, err := sessions.Decode[sessions.Command](e)
		id := channels.PartKey(cmd.Reply.ID, 0)
		return Aside{Call: id, Kind: bus.Command, Turn: e.Cause, Command: cmd.Name, Text: c.redact.Text(cmd.Reply.Text)}, err
	}
	n, err := sessions.Decode[sessions.Notice](e)
	b := blocks.ShowOperator(n, c.redact)
	return Aside{Call: b.Call, Kind: b.Kind, Name: b.Name, Text: b.Text, Cut: b.Cut}, err
}
