package slack_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/slacktest"
)

// openChannel makes a channel known to Slack, with one message in it, and returns the message's ts.
func openChannel(r *rig, channel, user, text string) string { return r.server.Say(channel, user, text) }

func TestSlashCommandWordsAreTranslated(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	openChannel(r, "C1", "U1", "just talking")
	id := strings.Repeat("a2", bus.AskIDLength/2)
	for i, one := range []struct{ channel, words, text, shown string }{
		{"C1", "what did <@U5|alex> &amp; I plan?", "what did @alex & I plan?", `{"response_type":"in_channel"}`},
		{"C1", " ", "/help", ""},
		{"C1", "Stop", "/Stop", ""},
		{"C1", "!new", "/new", ""},
		{"C1", "status of the build?", "status of the build?", `{"response_type":"in_channel"}`},
		{"C1", "deny " + id + " not now", "/deny " + id + " not now", ""},
		{"D7", "forget yes", "/forget yes", ""},
		{"C1", "deny it all", "deny it all", `{"response_type":"in_channel"}`},
		{"D7", "start ABCDE-FGHIJ-KLMNO-PQRST", "/start ABCDE-FGHIJ-KLMNO-PQRST", ""},
		{"D7", "hello", "hello", `{"response_type":"in_channel"}`},
	} {
		envelope := r.server.Command(one.channel, "U7", one.words)
		in := m.wait(t, i+1)[i]
		waitUntil(t, "the acknowledgement", func() bool { return r.server.Acked(envelope) })
		if in.Text != one.text || in.At != address(one.channel) || in.Kind != bus.Said || !in.Mentioned || in.Pressed || in.SentAt.IsZero() || in.ReplyTo != "" ||
			in.Group != (one.channel == "C1") || in.From != (bus.Person{ID: "slack:U7", Name: "Name of U7"}) {
			t.Errorf("%q says %+v", one.words, in)
		}
		if got := r.server.Shown(envelope); got != one.shown {
			t.Errorf("%q has Slack show %s, want %s", one.words, got, one.shown)
		}
		// A slash command has no message that a reaction could mark.
		if err := r.MarkSeen(t.Context(), in.At, in.ID); err != nil || r.server.Calls("reactions.add") > 0 {
			t.Errorf("a mark was set at no message, %v", err)
		}
	}
}

func TestSlashCommandInAChatWithoutTheBotIsAnsweredPrivately(t *testing.T) {
	r := newRig(t)
	r.mention = func(chat string) channels.Mention {
		return map[string]channels.Mention{"C3": channels.MentionNowhere}[chat]
	}
	r.Channel = r.newChannel(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	r.server.RemoveBot("C2")
	r.server.RemoveBot("D9") // a private chat between other people
	for i, channel := range []string{"C2", "D9", "C3"} {
		envelope := r.server.Command(channel, "U7", "hello")
		in := m.wait(t, i+1)[i]
		if in.At != address("D7") || in.Group || in.Text != "hello" {
			t.Errorf("in %s it says %+v", channel, in)
		}
		waitUntil(t, "what is shown", func() bool { return strings.Contains(r.server.Shown(envelope), "in our own chat") })
	}
}

func TestTheShortcutAsksAboutAMessage(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	root := openChannel(r, "C1", "U5", "the server of <@U6> is down &amp; out")
	reply := r.server.Reply("C1", root, "U6", "on it")
	own := r.server.Say("D7", "U7", "a note")
	m.wait(t, 1) // wait until the note is published
	r.server.RemoveBot("C2")
	elsewhere := openChannel(r, "C2", "U5", "secret")
	for i, one := range []struct{ channel, ts, text, user, thread, chat string }{
		{"C1", root, "the server of @Name of U6 is down & out", "U5", root, "C1"},
		{"C1", reply, "on it", "U6", root, "C1"},
		{"D7", own, "a note", "U7", "", "D7"},
		{"C2", elsewhere, "secret", "U5", "", "D7"},
	} {
		envelope := r.server.Ask(one.channel, "U7", one.ts, "ask")
		in := m.wait(t, i+2)[i+1]
		waitUntil(t, "the acknowledgement", func() bool { return r.server.Acked(envelope) })
		want := bus.Address{Channel: "slack", Chat: one.chat, Thread: one.thread}
		if in.At != want || in.Kind != bus.Said || !in.Mentioned || in.From.ID != "slack:U7" || in.Text == "" || in.Group != (one.chat == "C1") || len(in.Quotes) != 1 {
			t.Fatalf("it says %+v", in)
		}
		q := in.Quotes[0]
		if q.Kind != bus.Answered || q.Text != one.text || q.From != (bus.Person{ID: "slack:" + one.user, Name: "Name of " + one.user}) || q.At.IsZero() {
			t.Errorf("it quotes %+v", q)
		}
		if strings.Contains(in.Text, one.text) {
			t.Errorf("the words of another stand in %q", in.Text)
		}
	}
	other := r.server.Ask("C1", "U7", root, "another")
	waitUntil(t, "the acknowledgement of a shortcut that is none of ours", func() bool { return r.server.Acked(other) })
	if all := m.all(); len(all) != 5 {
		t.Errorf("published %+v", all)
	}
}

// Slack delivers an action only once, and tells the person that it failed if it isn't acknowledged in time. So
// an action must be published before it is acknowledged.
func TestAnActionIsAcknowledgedAfterItIsPublished(t *testing.T) {
	r := newRig(t)
	openChannel(r, "C1", "U1", "just talking")
	var tries atomic.Int32
	heard := make(chan bus.Inbound, 3)
	startConnected(t, r, func(ctx context.Context, in bus.Inbound) error {
		if tries.Add(1) == 1 {
			return errors.New("the bus is away")
		}
		heard <- in
		return nil
	})
	r.server.Fail("conversations.info", "", 1, slacktest.Status(500, ""))
	envelope := r.server.Command("C1", "U1", "hello")
	first := <-heard
	waitUntil(t, "the acknowledgement", func() bool { return r.server.Acked(envelope) })
	if first.Text != "hello" || tries.Load() != 2 {
		t.Errorf("it was published in %d tries: %+v", tries.Load(), first)
	}
}

func TestAnActionThatCannotBePublishedIsNotAcknowledged(t *testing.T) {
	r := newRig(t)
	openChannel(r, "C1", "U1", "just talking")
	gaveUp := make(chan struct{}, 1)
	startConnected(t, r, func(ctx context.Context, in bus.Inbound) error {
		<-ctx.Done()
		select {
		case gaveUp <- struct{}{}:
		default:
		}
		return ctx.Err()
	})
	envelope := r.server.Command("C1", "U1", "hello")
	select {
	case <-gaveUp:
	case <-time.After(testTimeout):
		t.Fatal("it is tried for longer than Slack waits")
	}
	waitUntil(t, "the warning", func() bool { return strings.Contains(r.logs.String(), "was not stored in time") })
	if r.server.Acked(envelope) {
		t.Error("Slack was told that it has arrived")
	}
}

func TestUnreadableActionsAreSkipped(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	for kind, payload := range map[string]string{
		"slash_commands": `{"user_id": 7}`, "interactive": `{"type": "message_action", "callback_id": "ask", "message": 3}`, "events_api": `{"event": {"type": 3}}`,
	} {
		r.server.WriteFrame(`{"type":"` + kind + `","envelope_id":"bad-` + kind + `","payload":` + payload + `}`)
		waitUntil(t, kind, func() bool { return r.server.Acked("bad-" + kind) })
	}
	r.server.Say("D1", "U1", "hello")
	if got := m.wait(t, 1)[0]; !reflect.DeepEqual(m.all(), []bus.Inbound{got}) || got.Text != "hello" {
		t.Errorf("published %+v", m.all())
	}
}

func TestReactionsToTheBotsMessages(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	var tries atomic.Int32
	startConnected(t, r, func(ctx context.Context, in bus.Inbound) error {
		if tries.Add(1) == 1 {
			return errors.New("the bus is away")
		}
		return m.publish(ctx, in)
	})
	root := openChannel(r, "C1", "U1", "just talking")
	answer, err := r.Send(t.Context(), address("C1"), textPart("an answer"))
	if err != nil {
		t.Fatal(err)
	}
	r.server.React("C1", "U7", root, "+1", false)              // a reaction to a person's message
	r.server.React("C1", slacktest.Bot, answer, "eyes", false) // the bot's own reaction
	waitUntil(t, "acks", allAcknowledged(r))
	r.server.React("C1", "U7", answer, "+1::skin-tone-3", false) // not acknowledged at first, so Slack delivers it again
	first := m.wait(t, 1)[0]
	want := bus.Inbound{
		ID: first.ID, Kind: bus.Reacted, From: bus.Person{ID: "slack:U7", Name: "Name of U7"}, At: address("C1"), Group: true, Mentioned: true,
		Of: "slack:" + slacktest.Team + ":C1:" + answer, Reaction: "👍", SentAt: first.SentAt,
	}
	if !reflect.DeepEqual(first, want) || first.ID == "" || first.SentAt.IsZero() {
		t.Errorf("got %+v, want %+v", first, want)
	}
	r.server.React("C1", "U7", answer, "+1", true)
	r.server.React("C1", "U7", answer, "our-own", false)
	all := m.wait(t, 3)[1:]
	if all[0].Reaction != "👍" {
		all[0], all[1] = all[1], all[0] // reactions may be published in any order
	}
	if !all[0].Removed || all[0].Reaction != "👍" || all[1].Reaction != ":our-own:" || all[1].Removed || all[0].ID == first.ID {
		t.Errorf("got %+v", all)
	}
	waitUntil(t, "acks", allAcknowledged(r))
}
