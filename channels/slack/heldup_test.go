package slack_test

import (
	"fmt"
	"testing"

	"parley/channels/slack"
)

// What a lost socket has swallowed comes seconds later, after what was said next:
// here it never does.
func TestWhatALostSocketHasSwallowedIsReadBeforeWhatIsSaidNext(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	connected(t, r, m.publish)
	root := r.server.Say("C1", "U2", called+" begin")
	r.server.Say("D1", "U1", "begin")
	m.wait(t, 2)
	until(t, "acks", acked(r))
	until(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
	r.server.CutOneSocket()
	until(t, "another socket", func() bool { return r.server.Sockets() == 1 })
	until(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
	r.server.Freeze(true)
	r.server.Say("D1", "U1", "one")
	r.server.Reply("C1", root, "U2", "one")
	r.server.DropUnacked()
	r.server.Freeze(false)
	r.server.Say("D1", "U1", "two")
	r.server.Reply("C1", root, "U2", "two")
	said := map[string]string{}
	for _, in := range m.wait(t, 6) {
		said[in.At.Chat] += in.Text + "|"
	}
	if said["D1"] != "begin|one|two|" || said["C1"] != "begin|one|two|" {
		t.Errorf("published: %v", said)
	}
}

// Slack allows only so many reads of history. Where more chats need one at a moment, the next ones wait
// for their turn, a few seconds at most, and keep their order.
func TestWhatWasHeldUpIsReadInTurnWhereManyChatsNeedIt(t *testing.T) {
	const chats = 22 // two more than may be read at once
	r := newRig(t)
	paced, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, AppToken: appToken, APIURL: r.url, Joins: r.book, Cursors: r.book})
	if err != nil {
		t.Fatal(err)
	}
	r.Channel = paced
	m := newMailbox(r)
	connected(t, r, m.publish)
	say := func(text string) {
		for i := range chats {
			r.server.Say(fmt.Sprintf("D%d", i), fmt.Sprintf("U%d", i), text)
		}
	}
	say("begin")
	m.wait(t, chats)
	until(t, "acks", acked(r))
	r.server.CutOneSocket()
	until(t, "another socket", func() bool { return r.server.Sockets() == 1 })
	until(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
	r.server.Freeze(true)
	say("one")
	r.server.DropUnacked()
	r.server.Freeze(false)
	say("two")
	said := map[string]string{}
	for _, in := range m.wait(t, 3*chats) {
		said[in.At.Chat] += in.Text + "|"
	}
	for chat, texts := range said {
		if texts != "begin|one|two|" {
			t.Errorf("in %s: %s", chat, texts)
		}
	}
}

// As long as sockets last, nothing is read that need not be.
func TestSettledSocketsReadNoHistory(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	connected(t, r, m.publish)
	for range 5 {
		r.server.Say("D1", "U1", "hello")
	}
	m.wait(t, 5)
	if n := r.server.Calls("conversations.history"); n != 0 {
		t.Errorf("history was read %d times", n)
	}
}
