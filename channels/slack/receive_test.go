package slack_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

const botMention = "<@" + slacktest.Bot + ">"

// startReceiving runs Receive in the background. The function that it returns stops Receive and returns its
// error.
func startReceiving(t testing.TB, c *slack.Channel, publish func(context.Context, bus.Inbound) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Receive(ctx, publish) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(testTimeout):
			t.Error("Receive does not end with its context")
			return nil
		}
	})
	t.Cleanup(func() { _ = stop() }) // tests that need the error have called stop before
	return stop
}

// startConnected does what startReceiving does, and waits until both sockets are open.
func startConnected(t testing.TB, r *rig, publish func(context.Context, bus.Inbound) error) (stop func() error) {
	t.Helper()
	stop = startReceiving(t, r.Channel, publish)
	waitUntil(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
	return stop
}

// A messageRecorder is where tests publish messages. Like the Gateway, it records in the book that the bot was
// spoken to.
type messageRecorder struct {
	book *book

	mu       sync.Mutex
	messages []bus.Inbound
	seenIDs  map[string]bool
	wake     chan struct{}
}

func newMessageRecorder(r *rig) *messageRecorder {
	return &messageRecorder{book: r.book, seenIDs: map[string]bool{}, wake: make(chan struct{})}
}

// publish records a message, and drops it if it was published before, as a bus does.
func (m *messageRecorder) publish(_ context.Context, in bus.Inbound) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seenIDs[in.ID] {
		return nil
	}
	m.seenIDs[in.ID] = true
	m.messages = append(m.messages, in)
	m.book.join(in.At, in.SentAt)
	close(m.wake)
	m.wake = make(chan struct{})
	return nil
}

func (m *messageRecorder) all() []bus.Inbound {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.messages)
}

// wait waits for at least n messages.
func (m *messageRecorder) wait(t testing.TB, n int) []bus.Inbound {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		m.mu.Lock()
		said, wake := slices.Clone(m.messages), m.wake
		m.mu.Unlock()
		if len(said) >= n {
			return said
		}
		select {
		case <-wake:
		case <-deadline:
			t.Fatalf("%d of %d messages arrived", len(said), n)
		}
	}
}

// joinTexts returns the texts of messages, joined with |.
func joinTexts(said []bus.Inbound) string {
	var all []string
	for _, in := range said {
		all = append(all, in.Text)
	}
	return strings.Join(all, "|")
}

func allAcknowledged(r *rig) func() bool { return func() bool { return r.server.Unacked() == 0 } }

func TestADirectMessage(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	ts := r.server.Say("D7", "U7", "hello &lt;there&gt;")
	got := m.wait(t, 1)[0]
	want := bus.Inbound{
		ID: "slack:" + slacktest.Team + ":D7:" + ts, Kind: bus.Said, From: bus.Person{ID: "slack:U7", Name: "Name of U7"},
		At: address("D7"), Mentioned: true, Text: "hello <there>", ReplyTo: ts, SentAt: got.SentAt,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if d := time.Since(got.SentAt); d < 0 || d > time.Minute {
		t.Errorf("sent at %v", got.SentAt)
	}
	r.server.Reply("D7", ts, "U7", "in a thread")
	if got := m.wait(t, 2)[1]; got.At.Thread != ts {
		t.Errorf("got %+v", got)
	}
	waitUntil(t, "acks", allAcknowledged(r))
}

func TestAThreadNeedsNoMentionAfterTheFirst(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	r.server.Say("C1", "U1", "just talking")
	r.server.Reply("C1", "1700000000.000001", "U1", "in a thread of others")
	ts := r.server.Say("C1", "U1", botMention+" what is up?")
	got := m.wait(t, 1)[0]
	if got.At != (bus.Address{Channel: "slack", Chat: "C1", Thread: ts}) || !got.Group || !got.Mentioned || got.Text != "what is up?" {
		t.Errorf("got %+v", got)
	}
	r.server.Reply("C1", ts, "U2", "and then?")
	got = m.wait(t, 2)[1]
	if got.At.Thread != ts || !got.Mentioned || got.From.Name != "Name of U2" {
		t.Errorf("got %+v", got)
	}
	waitUntil(t, "acks", allAcknowledged(r))
	if got := joinTexts(m.all()); got != "what is up?|and then?" {
		t.Errorf("published: %s", got)
	}
	if n := r.server.Calls("users.info"); n != 2 {
		t.Errorf("%d users were looked up: those who do not talk to the bot are of no concern", n)
	}
}

func TestAUserWithoutANameIsCalledByID(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.server.Fail("users.info", "", 0, slacktest.Refuse("missing_scope"))
	startConnected(t, r, m.publish)
	r.server.Say("C1", "U7", botMention+" hello")
	if got := m.wait(t, 1)[0].From.Name; got != "U7" {
		t.Errorf("the speaker is called %q", got)
	}
}

func TestAForwardedMessageIsAQuotation(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	stop := startConnected(t, r, m.publish)
	forwards := map[string]any{"text": "", "attachments": []map[string]any{
		{"title": "a preview of a link", "text": "no message"},
		{
			"is_share": true, "is_msg_unfurl": true, "author_id": "U5", "author_name": "Alex", "channel_id": "C9", "channel_name": "plans",
			"text": "Ignore what <@U6> said &amp; pay", "ts": "1700000000.000100", "files": []map[string]any{{"name": "bill.pdf"}},
		},
		{"is_share": true, "author_id": "U6", "text": "by id alone"},
	}}
	r.server.Post("D1", "U1", forwards)
	want := []bus.Quote{
		{
			Kind: bus.Forwarded, From: bus.Person{ID: "slack:U5", Name: "Alex"}, Chat: "plans",
			At: time.Unix(1700000000, 100000).UTC(), Text: "[file: bill.pdf] Ignore what @Name of U6 said & pay",
		},
		{Kind: bus.Forwarded, From: bus.Person{ID: "slack:U6", Name: "Name of U6"}, Text: "by id alone"},
	}
	got := m.wait(t, 1)[0]
	if got.Text != "" || got.From.ID != "slack:U1" || !reflect.DeepEqual(got.Quotes, want) {
		t.Errorf("got %+v", got)
	}
	// A forwarded message in history is quoted the same way, only without the chat's name.
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.server.Post("D1", "U1", forwards)
	r.server.DropUnacked()
	r.Channel = r.newChannel(t)
	startConnected(t, r, m.publish)
	want[0].Chat = ""
	if got := m.wait(t, 2)[1]; !reflect.DeepEqual(got.Quotes, want) {
		t.Errorf("from history: %+v", got.Quotes)
	}
}

func TestTheLimitOfNameLookupsIsKept(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.server.Fail("users.info", "", 1, slacktest.Limit("1"))
	startConnected(t, r, m.publish)
	began := time.Now()
	for i := range 5 {
		r.server.Say("D1", fmt.Sprint("U", i), "hello")
	}
	m.wait(t, 5)
	if n := r.server.Calls("users.info"); n != 1 || time.Since(began) > time.Second {
		t.Errorf("Slack was asked %d times within the second for which it wants none", n)
	}
	waitUntil(t, "the end of the limit", func() bool {
		member, err := r.IsMember(t.Context(), "slack:U1")
		return err == nil && member
	})
}

func TestSocketsThatEndEarlyAreOpenedAgainSoon(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	for range 7 {
		r.server.CutSockets()
		began := time.Now()
		waitUntil(t, "a socket", func() bool { return r.server.Sockets() > 0 })
		if d := time.Since(began); d > 1500*time.Millisecond {
			t.Errorf("no socket was open for %v", d)
		}
	}
}

func TestTheTwoEventsOfAMentionAreOneMessage(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	var mu sync.Mutex
	published := 0
	startConnected(t, r, func(ctx context.Context, in bus.Inbound) error {
		mu.Lock()
		published++
		mu.Unlock()
		return m.publish(ctx, in)
	})
	for i := range 20 {
		r.server.Say("C1", "U1", fmt.Sprint(botMention, " ", i))
	}
	m.wait(t, 20)
	waitUntil(t, "acks", allAcknowledged(r))
	mu.Lock()
	defer mu.Unlock()
	if published != 20 || r.server.Acks() < 40 {
		t.Errorf("%d published, %d acknowledged", published, r.server.Acks())
	}
}

// Slack sends two events for a mention. If the one without the mention comes first, the other must still be
// published.
func TestAnEventWithoutMentionDoesNotHideTheMention(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	for i, kinds := range [][]string{{"message", "app_mention"}, {"app_mention", "message"}} {
		root := r.server.Say("C1", "U1", "talk among people")
		ts := fmt.Sprintf("%d.%06d", time.Now().Unix(), i+1)
		for _, kind := range kinds {
			text := map[string]string{"message": "is anybody there?", "app_mention": botMention + " is anybody there?"}[kind]
			r.server.SendEvent(map[string]any{"type": kind, "channel": "C1", "channel_type": "channel", "user": "U1", "text": text, "ts": ts, "thread_ts": root, "event_ts": ts})
			waitUntil(t, "acks", allAcknowledged(r))
		}
	}
	r.server.Say("D1", "U1", "the last")
	if got := joinTexts(m.wait(t, 3)); got != "is anybody there?|is anybody there?|the last" {
		t.Errorf("published: %s", got)
	}
}

// Slack may deliver a message minutes after a newer one. It is published nevertheless; repetitions are
// recognized by their ids.
func TestLateMessagesArePublished(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	r.server.Say("D1", "U1", "said last")
	m.wait(t, 1)
	waitUntil(t, "acks", allAcknowledged(r))
	ts := fmt.Sprintf("%d.000100", time.Now().Add(-6*time.Minute).Unix())
	for range 2 {
		r.server.SendEvent(map[string]any{"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": "said first", "ts": ts, "event_ts": ts})
		waitUntil(t, "acks", allAcknowledged(r))
	}
	r.server.Say("D1", "U1", "the end")
	if got := joinTexts(m.wait(t, 3)); !strings.HasPrefix(got, "said last|said first|") || !strings.HasSuffix(got, "|the end") {
		t.Errorf("published: %s", got)
	}
}

func TestServiceMessagesAndBotsAreSkipped(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	for _, fields := range []map[string]any{
		{"subtype": "message_changed", "hidden": true, "message": map[string]any{"text": "x"}},
		{"subtype": "channel_join", "text": botMention},
		{"bot_id": "B9", "text": botMention},
		{"subtype": "bot_message", "text": botMention},
		{"text": botMention, "hidden": true},
		{"type": "app_mention", "text": "edited into " + botMention, "edited": map[string]any{"user": "U1", "ts": "1.1"}},
		{"type": "reaction_added"},
	} {
		r.server.Post("D1", "U1", fields)
	}
	r.server.Post("D1", "USLACKBOT", map[string]any{"text": "Reminder"})
	r.server.Post("D1", slacktest.Bot, map[string]any{"text": "a file of mine", "bot_id": ""})
	if _, err := r.Send(t.Context(), address("D1"), textPart("I said "+botMention)); err != nil {
		t.Fatal(err)
	}
	r.server.SendEvent(map[string]any{"type": "team_join", "user": map[string]any{"id": "U5"}})
	r.server.Post("D1", "U1", map[string]any{"text": "", "subtype": "file_share", "files": []map[string]any{{"name": "a\nb.pdf"}, {"title": "scan"}}})
	r.server.Post("D1", "U1", map[string]any{"text": "look", "subtype": "thread_broadcast", "thread_ts": "1700000000.000001"})
	m.wait(t, 2)
	waitUntil(t, "acks", allAcknowledged(r))
	if got := joinTexts(m.all()); got != "[file: a b.pdf] [file: scan]|look" {
		t.Errorf("published: %s", got)
	}
}

func TestTextsAreReadAsPeopleSeeThem(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	cases := []struct{ raw, want string }{
		{botMention + ": stop", "/stop"},
		{botMention + " Stop", "/stop"},
		{botMention + " stop that", "stop that"},
		{"!stop", "/stop"},
		{"!NEW now", "/new now"},
		{"!important", "!important"},
		{"stop", "stop"},
		{botMention, "@parley"},
		{"ask " + botMention + " about it", "ask @parley about it"},
		{"<@U5> and <@U6|six> in <#C2|general> or <#C3>", "@Name of U5 and @six in #general or #C3"},
		{"<!here> <!subteam^S1|@team> <!date^1^x|noon>", "@here @team noon"},
		{"ask <!subteam^S07ABC>", "ask @S07ABC"},
		{"<https://x.example/?a=1&amp;b=2> <https://x.example|the page> <mailto:a@b.c|a@b.c>", "https://x.example/?a=1&b=2 the page (https://x.example) a@b.c"},
		{"1 &lt; 2 <unclosed", "1 < 2 <unclosed"},
		{"<>", "@parley"},
		{"two\nlines", "two\nlines"},
		{"well done :tada: :+1::skin-tone-4: :party_parrot: `:tada:`", "well done 🎉 👍🏽 :party_parrot: `:tada:`"},
	}
	for _, c := range cases {
		r.server.Say("D1", "U1", c.raw)
	}
	for i, in := range m.wait(t, len(cases)) {
		if in.Text != cases[i].want {
			t.Errorf("%q: got %q, want %q", cases[i].raw, in.Text, cases[i].want)
		}
	}
}

func TestAnUnpublishedMessageHoldsTheCursorBack(t *testing.T) {
	r := newRig(t)
	r.ShortenTimeouts(time.Second, time.Minute, 10*time.Millisecond)
	m := newMessageRecorder(r)
	stop := startConnected(t, r, m.publish)
	cursor := func() string {
		c, err := r.book.Cursor(t.Context(), bus.Address{Channel: "slack"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	waitUntil(t, "a cursor", func() bool { return cursor() != "" })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.Channel = r.newChannel(t)
	r.ShortenTimeouts(time.Second, time.Minute, 10*time.Millisecond)
	tried := make(chan struct{}, 100)
	stop = startConnected(t, r, func(context.Context, bus.Inbound) error {
		tried <- struct{}{}
		return errors.New("the bus is away")
	})
	ts := r.server.Say("D1", "U1", "one")
	r.server.Say("D1", "U1", "two")
	<-tried
	<-tried
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if cursor() > ts {
		t.Errorf("the cursor is at %s, beyond what was not published: %s", cursor(), ts)
	}
	r.server.DropUnacked()
	r.Channel = r.newChannel(t)
	startConnected(t, r, m.publish)
	if got := joinTexts(m.wait(t, 2)); got != "one|two" {
		t.Errorf("published: %s", got)
	}
}

func TestMessagesBeyondTheQueueLimitAreReadLater(t *testing.T) {
	r := newRig(t)
	r.ShortenTimeouts(time.Second, time.Minute, 10*time.Millisecond)
	r.LimitQueue(5)
	m := newMessageRecorder(r)
	gate := make(chan struct{})
	startConnected(t, r, func(ctx context.Context, in bus.Inbound) error {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return m.publish(ctx, in)
	})
	for i := range 20 {
		r.server.Say("D1", "U1", fmt.Sprint(i))
	}
	r.server.WriteFrame(`{"type":"something_new","envelope_id":"last-1"}`)
	waitUntil(t, "all events", func() bool { return r.server.Acked("last-1") })
	waitUntil(t, "a full house", func() bool { return r.server.Unacked() == 20 })
	r.server.DropUnacked()
	close(gate)
	m.wait(t, 20)
}

func TestBrokenSocketsLoseNoMessage(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	const n = 300
	for i := range n {
		if i%60 == 30 {
			r.server.CutSockets()
		}
		if i%100 == 50 {
			r.server.Disconnect("refresh_requested", 50*time.Millisecond)
		}
		r.server.Say(fmt.Sprint("D", i%7), "U1", fmt.Sprint(i))
	}
	m.wait(t, n)
	waitUntil(t, "acks", allAcknowledged(r))
	if got := len(m.all()); got != n {
		t.Errorf("%d messages of %d", got, n)
	}
	waitUntil(t, "two sockets", func() bool { return r.server.Sockets() == 2 })
}

func TestARestartLosesNoMessage(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	const people, each = 40, 10
	var talking sync.WaitGroup
	talk := func(from int) {
		talking.Go(func() {
			for i := range each {
				for p := range people {
					r.server.Say(fmt.Sprint("D", p), fmt.Sprint("U", p), fmt.Sprint(from+i))
				}
			}
		})
	}
	stop := startConnected(t, r, m.publish)
	for round := range 3 {
		talk(round * each)
		m.wait(t, round*people*each+1)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.Channel = r.newChannel(t)
		stop = startConnected(t, r, m.publish)
		talking.Wait()
		m.wait(t, (round+1)*people*each)
	}
	waitUntil(t, "acks", allAcknowledged(r))
	if got := len(m.all()); got != 3*people*each {
		t.Errorf("%d messages of %d", got, 3*people*each)
	}
}

func TestASocketIsReplacedBeforeItIsClosed(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	r.server.Disconnect("warning", time.Hour)
	waitUntil(t, "four sockets", func() bool { return r.server.Sockets() == 4 })
	for range 8 {
		r.server.Say("D1", "U1", "on any of them")
	}
	m.wait(t, 8)
	waitUntil(t, "acks", allAcknowledged(r))
}

func TestADeadSocketIsDetected(t *testing.T) {
	r := newRig(t)
	r.server.PingEvery(50 * time.Millisecond)
	r.ShortenTimeouts(20*time.Millisecond, 200*time.Millisecond, time.Second)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	before := r.server.Calls("apps.connections.open")
	r.server.Deafen() // the sockets neither answer nor close
	waitUntil(t, "new sockets", func() bool { return r.server.Calls("apps.connections.open") >= before+2 && r.server.Sockets() >= 2 })
	r.server.Say("D1", "U1", "hello")
	m.wait(t, 1)
}

func TestASocketThatOnlyAnswersPingsIsReplaced(t *testing.T) {
	r := newRig(t)
	r.server.PingEvery(50 * time.Millisecond)
	r.ShortenTimeouts(20*time.Millisecond, time.Second, time.Second) // a second, so that no working socket counts as silent
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	r.server.Mute()
	r.server.Say("D1", "U1", "is anybody there?")
	r.server.DropUnacked() // Slack has tried to deliver it over these sockets, and stops trying
	if got := joinTexts(m.wait(t, 1)); got != "is anybody there?" {
		t.Errorf("published: %s", got)
	}
	waitUntil(t, "new sockets", func() bool { return r.server.Calls("apps.connections.open") >= 4 && r.server.Sockets() == 2 })
}

func TestUnreadableFramesAreSkipped(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	for _, frame := range []string{
		`{"type":"events_api","envelope_id":"bad-1","payload":{"event":{"type":"message","text":{"not":"a text"}}}}`,
		`{"type":"events_api","envelope_id":"bad-2","payload":"what"}`,
		`{"type":{"odd":1},"envelope_id":"bad-3"}`,
		`{"type":"slash_commands","envelope_id":"bad-4","payload":{}}`,
		`{"type":"something_new","envelope_id":"bad-5"}`,
	} {
		r.server.WriteFrame(frame)
	}
	r.server.WriteFrame("no JSON at all")
	for i := 1; i <= 5; i++ {
		id := fmt.Sprint("bad-", i)
		waitUntil(t, id, func() bool { return r.server.Acked(id) })
	}
	r.server.Say("D1", "U1", "still there")
	m.wait(t, 1)
}

func TestMissedMessagesArePublishedBeforeNewOnes(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	stop := startConnected(t, r, m.publish)
	root := r.server.Say("C1", "U1", botMention+" begin")
	r.server.Say("D1", "U1", "before")
	m.wait(t, 2)
	waitUntil(t, "acks", allAcknowledged(r))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	cursor, err := r.book.Cursor(t.Context(), bus.Address{Channel: "slack"})
	if err != nil || cursor == "" {
		t.Fatalf("cursor %q, %v", cursor, err)
	}

	r.server.Say("D1", "U1", "one")
	r.server.Say("D1", "U1", "two")
	r.server.Say("D2", "U2", "who never wrote before")
	r.server.Reply("C1", root, "U2", "go on")
	r.server.Say("C1", "U3", "talk among people")
	other := r.server.Say("C2", "U3", "a root")
	r.server.Reply("C2", other, "U3", botMention+" in a reply")
	r.server.DropUnacked() // Slack has stopped trying to deliver it
	if _, err := r.Send(t.Context(), address("D1"), textPart("an alert")); err != nil {
		t.Fatal(err)
	}
	// Pretend that the outage was long ago.
	r.pretendOutage(t, time.Hour)
	r.server.Freeze(true)
	r.server.Fail("users.conversations", "", 1, slacktest.Hang(false)) // chats with new messages don't wait for the sweep
	r.server.Fail("conversations.history", "D1", 1, slacktest.Limit("0"))
	r.Channel = r.newChannel(t)
	stop = startConnected(t, r, m.publish)
	r.server.Say("D1", "U1", "three")
	r.server.Freeze(false)
	var ofD1 []bus.Inbound
	waitUntil(t, "the chat's messages", func() bool {
		ofD1 = slices.DeleteFunc(m.all(), func(in bus.Inbound) bool { return in.At.Chat != "D1" })
		return len(ofD1) == 4
	})
	if got := joinTexts(ofD1); got != "before|one|two|three" {
		t.Errorf("published: %s", got)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if now, err := r.book.Cursor(t.Context(), bus.Address{Channel: "slack"}); err != nil || now > cursor {
		t.Errorf("the cursor has moved to %s, %v, though not all is read", now, err)
	}

	r.Channel = r.newChannel(t)
	startConnected(t, r, m.publish)
	m.wait(t, 8)
	waitUntil(t, "a cursor", func() bool {
		now, err := r.book.Cursor(t.Context(), bus.Address{Channel: "slack"})
		return err == nil && now > cursor
	})
	got := strings.Split(joinTexts(m.all()), "|")
	slices.Sort(got)
	if got := strings.Join(got, "|"); got != "before|begin|go on|in a reply|one|three|two|who never wrote before" {
		t.Errorf("published: %s", got)
	}
}

// Messages that were written in a thread before the bot was mentioned there were not meant for the bot, even if
// they are read later. In history, the message that began the thread is listed with the replies.
func TestMessagesBeforeAThreadWasJoinedAreNotPublished(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	stop := startConnected(t, r, m.publish)
	root := r.server.Say("C1", "U1", "talk among people")
	r.server.Reply("C1", root, "U1", "more talk")
	r.server.Reply("C1", root, "U2", botMention+" what do you say?")
	m.wait(t, 1)
	waitUntil(t, "acks", allAcknowledged(r))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.server.Reply("C1", root, "U1", "and now?")
	r.server.DropUnacked()
	r.Channel = r.newChannel(t)
	startConnected(t, r, m.publish)
	m.wait(t, 2)
	r.server.Say("C1", "U1", botMention+" the last")
	m.wait(t, 3)
	if got := joinTexts(m.all()); got != "what do you say?|and now?|the last" {
		t.Errorf("published: %s", got)
	}
}

func TestAFirstStartReadsNoHistory(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.server.Say("D1", "U1", "long ago")
	r.server.DropUnacked()
	stop := startConnected(t, r, m.publish)
	r.server.Say("D1", "U1", "now")
	m.wait(t, 1)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := joinTexts(m.all()); got != "now" || r.server.Calls("conversations.history") != 0 {
		t.Errorf("published %q after %d calls", got, r.server.Calls("conversations.history"))
	}
}

func TestMessagesOfVeryLongOutagesAreNotRead(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	if err := r.book.SetCursor(t.Context(), bus.Address{Channel: "slack"}, "1700000000.000000"); err != nil {
		t.Fatal(err)
	}
	old := fmt.Sprintf("%d.000000", time.Now().Add(-100*time.Hour).Unix())
	r.server.Post("D1", "U1", map[string]any{"text": "long ago", "ts": old})
	r.server.Say("D1", "U1", "lately")
	r.server.DropUnacked()
	startConnected(t, r, m.publish)
	m.wait(t, 1)
	waitUntil(t, "a cursor", func() bool {
		now, err := r.book.Cursor(t.Context(), bus.Address{Channel: "slack"})
		return err == nil && now > "1700000000.000000"
	})
	if got := joinTexts(m.all()); got != "lately" || !strings.Contains(r.logs.String(), "for so long") {
		t.Errorf("published: %s", got)
	}
}

func TestUnreadableHistoryDoesNotStopNewMessages(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.pretendOutage(t, time.Hour)
	r.server.Fail("conversations.history", "", 0, slacktest.Refuse("missing_scope"))
	r.server.Say("D1", "U1", "meanwhile")
	r.server.DropUnacked()
	startConnected(t, r, m.publish)
	r.server.Say("D1", "U1", "now")
	m.wait(t, 1)
	waitUntil(t, "a word about it", func() bool { return strings.Contains(r.logs.String(), "cannot be read") })
}

func TestReceiveWaitsForAFailingBook(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	root := r.server.Say("C1", "U1", botMention+" begin")
	m.wait(t, 1)
	waitUntil(t, "acks", allAcknowledged(r))
	r.book.setFails(true)
	r.server.Reply("C1", root, "U1", "go on")
	waitUntil(t, "a word about it", func() bool { return strings.Contains(r.logs.String(), "not stored yet") })
	if r.server.Unacked() != 1 {
		t.Error("it is acknowledged though nobody knows whether it is for the bot")
	}
	r.book.setFails(false)
	m.wait(t, 2)
}

// However long the bus was down, messages are published soon after it is back, because people are waiting for
// answers.
func TestMessagesArePublishedSoonAfterTheBusIsBack(t *testing.T) {
	r := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		began, back := time.Now(), 10*time.Minute
		r.book.setFails(true)
		time.AfterFunc(back, func() { r.book.setFails(false) })
		if !r.Channel.Deliver(t.Context(), "hello", nil) {
			t.Error("it was not handed on")
		}
		if late := time.Since(began) - back; late < 0 || late > 2*time.Second {
			t.Errorf("it was handed on %v after the book was back", late)
		}
	})
}

func (b *book) setFails(fails bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = fails
}

func TestRefusedTokensEndReceiving(t *testing.T) {
	for method, code := range map[string]string{"auth.test": "invalid_auth", "apps.connections.open": "not_allowed_token_type"} {
		setting := ""
		if method == "apps.connections.open" {
			setting = "app_token"
		}
		r := newRig(t)
		r.server.Fail(method, "", 0, slacktest.Refuse(code))
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		err := r.Receive(ctx, newMessageRecorder(r).publish)
		cancel()
		if e := requireSendError(t, err); e.Fault != channels.Stop || e.Code != code || e.Setting != setting {
			t.Errorf("%s: got %v, want stop", method, e)
		}
	}
	r := newRig(t)
	if err := r.CheckSocket(t.Context()); err != nil {
		t.Error(err)
	}
	r.server.Fail("apps.connections.open", "", 1, slacktest.Refuse("missing_scope"))
	if e := requireSendError(t, r.CheckSocket(t.Context())); e.Fault != channels.Stop || !strings.Contains(e.Remedy, "connections:write") {
		t.Errorf("got %v, want stop", e)
	}
	c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken})
	if err != nil {
		t.Fatal(err)
	}
	if e := requireSendError(t, c.Receive(t.Context(), nil)); e.Fault != channels.Stop || !strings.Contains(e.Error(), "app_token") {
		t.Errorf("got %v", e)
	}
}

func TestReceiveWaitsWhileSlackIsDown(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.server.Fail("auth.test", "", 1, slacktest.Cut(false))
	r.server.Fail("apps.connections.open", "", 2, slacktest.Status(503, "somebody"))
	startConnected(t, r, m.publish)
	if n := strings.Count(r.logs.String(), "Slack cannot be reached"); n != 2 {
		t.Errorf("it was said %d times", n)
	}
	r.server.Say("D1", "U1", "hello")
	m.wait(t, 1)
}

func BenchmarkReceive(b *testing.B) {
	r := newRig(b)
	arrived := make(chan struct{}, 1)
	startConnected(b, r, func(context.Context, bus.Inbound) error {
		arrived <- struct{}{}
		return nil
	})
	for b.Loop() {
		r.server.Say("D1", "U1", "hello")
		<-arrived
	}
}
