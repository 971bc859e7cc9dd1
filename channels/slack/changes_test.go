package slack_test

import (
	"fmt"
	"maps"
	"testing"

	"parley/bus"
	"parley/channels/slack/slacktest"
)

// People's edits and deletions are published with the id of the changed message, in its thread. Link previews
// and the changes of bots are not edits.
func TestChangesNameTheChangedMessage(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	root := r.server.Say("C1", "U7", "<@"+slacktest.Bot+"> root")
	ts := r.server.Reply("C1", root, "U7", "frist")
	said := m.wait(t, 2)
	was := map[string]any{"type": "message", "user": "U7", "text": "frist", "ts": ts, "thread_ts": root}
	now := map[string]any{"type": "message", "user": "U7", "text": "first", "ts": ts, "thread_ts": root, "edited": map[string]any{"user": "U7", "ts": "1700000000.000100"}}
	event := func(more map[string]any) {
		fields := map[string]any{"type": "message", "hidden": true, "channel": "C1", "channel_type": "channel"}
		maps.Copy(fields, more)
		r.server.SendEvent(fields)
	}
	event(map[string]any{"subtype": "message_changed", "event_ts": "1700000001.000100", "message": was, "previous_message": was}) // a link preview appears
	bot := map[string]any{"type": "message", "user": slacktest.Bot, "bot_id": "B1", "text": "x", "ts": ts}
	event(map[string]any{"subtype": "message_changed", "event_ts": "1700000001.000200", "message": bot, "previous_message": was})
	event(map[string]any{"subtype": "message_changed", "event_ts": "1700000002.000100", "message": now, "previous_message": was})
	event(map[string]any{"subtype": "message_deleted", "event_ts": "1700000003.000100", "deleted_ts": ts, "previous_message": now})
	waitUntil(t, "everything acknowledged", allAcknowledged(r))
	got := m.wait(t, 4)[2:]
	if len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
	for i, kind := range []string{bus.Edited, bus.Deleted} {
		in := got[i]
		if in.Kind != kind || in.Of != said[1].ID || in.ID == in.Of || in.At != said[1].At || in.From.ID != "slack:U7" || !in.Group {
			t.Errorf("the change is %+v", in)
		}
	}
	if got[0].Text != "first" || got[1].Text != "" || got[0].ID == got[1].ID {
		t.Errorf("got %+v", got)
	}
}

// Slack also changes messages by itself. It adds link previews, and when a thread's first message is deleted,
// it sends the replies again, including those that were edited long ago. None of these is an edit.
func TestSlacksOwnChangesAreNotEdits(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	root := r.server.Say("C1", "U7", botMention+" root")
	ts := r.server.Reply("C1", root, "U7", "see http://x.example")
	m.wait(t, 2)
	reply := func(more map[string]any) map[string]any {
		all := map[string]any{"type": "message", "user": "U7", "text": "see <http://x.example>", "ts": ts, "thread_ts": root}
		maps.Copy(all, more)
		return all
	}
	edited := map[string]any{"user": "U7", "ts": "1700000000.000100"}
	for i, now := range []map[string]any{
		reply(map[string]any{"text": "see <http://x.example|x.example>", "attachments": []any{map[string]any{"text": "a page", "from_url": "http://x.example"}}}),
		reply(map[string]any{"text": "see <http://x.example|x.example>", "edited": nil}),
		reply(map[string]any{"edited": edited}),
		reply(map[string]any{"edited": edited, "root": nil}),
	} {
		r.server.SendEvent(map[string]any{
			"type": "message", "subtype": "message_changed", "hidden": true, "channel": "C1", "channel_type": "channel",
			"event_ts": fmt.Sprintf("1700000001.%06d", i), "message": now, "previous_message": reply(map[string]any{"edited": now["edited"]}),
		})
	}
	waitUntil(t, "everything acknowledged", allAcknowledged(r))
	r.server.Reply("C1", root, "U7", "the last")
	if got := m.wait(t, 3); len(got) != 3 || got[2].Text != "the last" {
		t.Errorf("got %+v", got[2:])
	}
}
