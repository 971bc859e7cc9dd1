package slack_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/slacktest"
)

func TestEarlierMessagesOfAThreadAreRead(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	root := r.server.Say("C1", "U1", "the root &amp; all")
	for i := range 30 {
		r.server.Reply("C1", root, "U2", fmt.Sprint("reply ", i))
	}
	r.server.Post("C1", "U3", map[string]any{"subtype": "channel_join", "text": "has joined", "thread_ts": root})
	r.server.Post("C1", "", map[string]any{"subtype": "bot_message", "text": "an alert", "thread_ts": root, "bot_id": "B9"})
	r.server.Reply("C1", root, "U2", botMention+" what is this?")
	in := m.wait(t, 1)[0]
	r.server.Reply("C1", root, "U2", "said later")
	m.wait(t, 2)

	fresh := newBook() // a book that doesn't know the thread yet, as when the message was accepted
	joined := r.book
	r.book = fresh
	c := r.newChannel(t)
	quotes, err := c.MessagesBefore(t.Context(), in, 20, false)
	if err != nil || len(quotes) != 20 {
		t.Fatalf("%d quotes, %v", len(quotes), err)
	}
	if q := quotes[0]; q.Kind != bus.Earlier || q.Text != "the root & all" || q.From != (bus.Person{ID: "slack:U1", Name: "Name of U1"}) || q.At.IsZero() {
		t.Errorf("the first is %+v", q)
	}
	if q := quotes[1]; q.Text != "reply 12" {
		t.Errorf("the second is %+v", q)
	}
	if q := quotes[19]; q.Text != "an alert" || q.From.ID != "" {
		t.Errorf("the last is %+v", q)
	}
	r.server.Fail("conversations.replies", "", 1, slacktest.Refuse("missing_scope"))
	_, err = c.MessagesBefore(t.Context(), in, 20, false)
	if fault := requireSendError(t, err); fault.Fault != channels.Rejected || !strings.Contains(fault.Code, "missing_scope") {
		t.Errorf("got %v", fault)
	}

	r.book = joined // the bot has joined the thread by now
	calls := r.server.Calls("conversations.replies")
	if quotes, err := r.newChannel(t).MessagesBefore(t.Context(), in, 20, false); err != nil || len(quotes) > 0 {
		t.Errorf("of a joined thread: %+v, %v", quotes, err)
	}
	begins := in
	begins.At.Thread = in.ReplyTo
	if quotes, err := c.MessagesBefore(t.Context(), begins, 20, false); err != nil || len(quotes) > 0 || r.server.Calls("conversations.replies") != calls {
		t.Errorf("of a message that begins its thread: %+v, %v", quotes, err)
	}
}
