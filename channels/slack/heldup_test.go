package slack_test

import (
	"fmt"
	"testing"

	"parley/channels/slack"
)

// Slack delivers the events of a lost socket again seconds later, after newer ones. In this test it never does,
// so they must be read from history.
func TestMessagesLostBySocketAreReadBeforeNewerOnes(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	root := r.server.Say("C1", "U2", botMention+" begin")
	r.server.Say("D1", "U1", "begin")
	m.wait(t, 2)
	waitUntil(t, "acks", allAcknowledged(r))
	waitUntil(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
	r.server.CutOneSocket()
	waitUntil(t, "another socket", func() bool { return r.server.Sockets() == 1 })
	waitUntil(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
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

// Slack allows few reads of history. If more chats need a read than are allowed at the moment, the others wait
// a few seconds, and their messages keep their order.
func TestHeldUpMessagesOfManyChatsKeepTheirOrder(t *testing.T) {
	const chats = 22 // two more than the rate limit allows at once
	r := newRig(t)
	paced, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, AppToken: appToken, APIURL: r.url, JoinedThreads: r.book, Cursors: r.book})
	if err != nil {
		t.Fatal(err)
	}
	r.Channel = paced
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	say := func(text string) {
		for i := range chats {
			r.server.Say(fmt.Sprintf("D%d", i), fmt.Sprintf("U%d", i), text)
		}
	}
	say("begin")
	m.wait(t, chats)
	waitUntil(t, "acks", allAcknowledged(r))
	r.server.CutOneSocket()
	waitUntil(t, "another socket", func() bool { return r.server.Sockets() == 1 })
	waitUntil(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
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

// As long as sockets work, history is not read, because that would use up the rate limit.
func TestNoHistoryIsReadWhileSocketsWork(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	for range 5 {
		r.server.Say("D1", "U1", "hello")
	}
	m.wait(t, 5)
	if n := r.server.Calls("conversations.history"); n != 0 {
		t.Errorf("history was read %d times", n)
	}
}
