package discord_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

// A listener is a fake Discord and a channel that receives from it.
type listener struct {
	*testing.T
	server *discordtest.Server
	fake   *channelstest.FakeServer
	book   *book
	// mention is the rule for mentions of the channels that are started from now on.
	mention channels.MentionIn
	overlap time.Duration

	mu           sync.Mutex
	published    []bus.Inbound
	publishedIDs map[string]bool
}

func newListener(t *testing.T) *listener {
	l := &listener{T: t, server: discordtest.New(token), book: newBook("11", "12"), publishedIDs: map[string]bool{}, overlap: time.Second}
	l.server.SetHeartbeatInterval(200 * time.Millisecond)
	l.server.AddChannel("100", "general")
	l.server.AddThread("200", "100", "plans")
	l.fake = channelstest.StartServer(t, l.server)
	return l
}

// receiveUntilStopped starts a channel, as another process would, and waits until it is connected.
func (l *listener) receiveUntilStopped() (stop func() error) {
	l.Helper()
	before := l.server.Connected()
	stop = l.startReceiving(l.publish)
	channelstest.Until(l, "a session", func() bool { return l.server.Connected() > before })
	return stop
}

func (l *listener) startReceiving(publish func(context.Context, bus.Inbound) error) (stop func() error) {
	c := newChannel(l, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: l.book, Mention: l.mention})
	c.SetSaveInterval(10 * time.Millisecond)
	c.SetHelloTimeout(200 * time.Millisecond)
	c.SetOverlap(l.overlap)
	ctx, cancel := context.WithCancel(l.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Receive(ctx, publish) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	l.Cleanup(func() { _ = stop() }) // tests that need the error have called stop before
	return stop
}

// publish records a message, and drops it if it was published before.
func (l *listener) publish(_ context.Context, in bus.Inbound) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.publishedIDs[in.ID] {
		l.publishedIDs[in.ID] = true
		l.published = append(l.published, in)
	}
	return nil
}

func (l *listener) all() []bus.Inbound {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.published)
}

// waitFor waits until n messages were published, and returns them.
func (l *listener) waitFor(n int) []bus.Inbound {
	l.Helper()
	channelstest.Until(l, fmt.Sprint(n, " messages"), func() bool { return len(l.all()) >= n })
	return l.all()
}

// publishedSoFar posts a final message in a chat, waits until it is published, and returns the messages that
// were published before it.
func (l *listener) publishedSoFar() []bus.Inbound {
	l.Helper()
	l.server.Say("12", "502", "the end")
	isEnd := func(in bus.Inbound) bool { return in.Text == "the end" }
	var all []bus.Inbound
	channelstest.Until(l, "the end", func() bool {
		all = l.all()
		return slices.ContainsFunc(all, isEnd)
	})
	return slices.DeleteFunc(all, isEnd) // other channels don't wait for the final message of this one
}

const botMention = "<@" + discordtest.Bot + "> "

func threadAddress(chat, id string) bus.Address {
	return bus.Address{Channel: "dc", Chat: chat, Thread: id}
}

func TestMessagesAndTheirReplyAddresses(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	id := l.server.Say("11", "501", "hello")
	in := l.waitFor(1)[0]
	if in.ID != "dc:4242:11:"+id || in.Kind != bus.Said || in.At != address("11") || in.Group || !in.Mentioned || in.Text != "hello" ||
		in.ReplyTo != "" || in.From.ID != "dc:501" || in.From.Name != "user501" || time.Since(in.SentAt).Abs() > time.Minute {
		t.Errorf("a direct message became %+v", in)
	}
	id = l.server.Say("100", "501", botMention+"what is new?")
	in = l.waitFor(2)[1]
	if in.At != address("100") || !in.Group || !in.Mentioned || in.Text != "what is new?" || in.ReplyTo != id {
		t.Errorf("a mention became %+v", in)
	}
	l.server.Say("200", "501", botMention+"and here?")
	in = l.waitFor(3)[2]
	if in.At != threadAddress("100", "200") || !in.Group || in.Text != "and here?" {
		t.Errorf("a mention in a thread became %+v", in)
	}
	l.server.AddForum("300", "ideas")
	l.server.AddThread("301", "300", "a post")
	l.server.Say("301", "501", "<@&"+discordtest.BotRole+"> look")
	in = l.waitFor(4)[3]
	if in.At != threadAddress("300", "301") || in.Text != "look" {
		t.Errorf("a post in a forum that calls the bot's role became %+v", in)
	}
}

func TestMessagesNotMeantForTheBotAreSkipped(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	l.server.Say("100", "501", "among people")
	l.server.Say("200", "501", "in a thread among people")
	l.server.Say("100", "501", "<@999> and <@&998>")
	l.server.Say("100", discordtest.Bot, botMention+"my own words")
	l.server.Post("11", discordtest.Bot, map[string]any{"content": "my own, unmarked", "author": map[string]any{"id": discordtest.Bot}})
	l.server.Post("11", "777", map[string]any{"content": "beep", "author": map[string]any{"id": "777", "username": "other", "bot": true}})
	l.server.Post("100", "501", map[string]any{"content": botMention + "by a webhook", "webhook_id": "5"})
	l.server.Post("11", "501", map[string]any{"content": "", "type": 6}) // a notice that a message was pinned
	l.server.SendEvent("MESSAGE_UPDATE", map[string]any{"id": "1", "channel_id": "11", "content": botMention + "with a preview", "author": map[string]any{"id": "501"}})
	if got := l.publishedSoFar(); len(got) != 0 {
		t.Errorf("published %+v", got)
	}
}

// A message is recognized by its own id, so it is published even if newer ones were published before.
func TestLateMessagesArePublished(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	first := l.server.Say("11", "501", "said last")
	l.waitFor(1)
	n, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	late := map[string]any{"id": strconv.FormatUint(n-1<<22, 10), "channel_id": "11", "content": "said first", "author": map[string]any{"id": "501", "username": "ada"}}
	l.server.SendEvent("MESSAGE_CREATE", late)
	l.server.SendEvent("MESSAGE_CREATE", late) // Discord delivers it again
	l.server.Say("11", "501", "said behind it")
	if got := l.waitFor(3); len(got) != 3 || got[1].Text != "said first" || got[2].Text != "said behind it" {
		t.Errorf("heard %+v", got)
	}
}

func TestAJoinedThreadNeedsNoMention(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	l.server.Say("200", "501", "before it joined")
	l.book.join(threadAddress("100", "200"), time.Now())
	channelstest.Until(t, "a later moment", func() bool {
		l.server.Say("200", "502", "after it")
		return len(l.all()) > 0
	})
	for _, in := range l.all() {
		if in.Text != "after it" || !in.Mentioned || !in.Group || in.At != threadAddress("100", "200") {
			t.Errorf("heard %+v", in)
		}
	}
}

func TestTextsAreReadAsTyped(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	l.server.Say("100", "501", botMention+"I know the server by now")
	l.waitFor(1)
	first := l.server.Say("11", "501", "first")
	l.waitFor(2)
	for i, c := range []struct {
		fields map[string]any
		want   string
	}{
		{map[string]any{"content": "<#100> <@&" + discordtest.BotRole + "> <:party:55> <a:wave:56> <t:1700000000:R> </help:57> a < b > c <@501x>"}, "#general @Parley :party: :wave: 2023-11-14T22:13:20Z /help a < b > c <@501x>"},
		{map[string]any{"content": "hi <@501>", "mentions": []any{map[string]any{"id": "501", "username": "ada", "global_name": "Ada\nLovelace"}}}, "hi @Ada Lovelace"},
		{map[string]any{"content": "", "attachments": []any{map[string]any{"id": "1", "filename": "a.txt"}}}, ""},
		{map[string]any{"content": "look", "sticker_items": []any{map[string]any{"name": "Wave"}}}, "[sticker: Wave] look"},
		{map[string]any{"content": botMention + "stop"}, "/stop"},
		{map[string]any{"content": botMention}, "@parley"},
		{map[string]any{"content": "", "poll": map[string]any{"question": map[string]any{"text": "Tea?"}}}, "[poll: Tea?]"},
		{map[string]any{"content": "say stop"}, "say stop"},
	} {
		l.server.Post("11", "501", c.fields)
		if got := l.waitFor(i + 3)[i+2]; got.Text != c.want {
			t.Errorf("%q became %q, want %q", c.fields["content"], got.Text, c.want)
		}
	}
	n := len(l.all())
	l.server.Reply("11", "501", first, "about this")
	if got := l.waitFor(n + 1)[n]; got.Text != "about this" || len(got.Quotes) != 1 || got.Quotes[0].Kind != bus.Answered ||
		got.Quotes[0].Text != "first" || got.Quotes[0].From.ID != "dc:501" {
		t.Errorf("a reply became %+v", got)
	}
	l.server.Post("11", "501", map[string]any{"content": "", "message_reference": map[string]any{"type": 1, "message_id": "1", "channel_id": "100"},
		"message_snapshots": []any{map[string]any{"message": map[string]any{"content": "/stop <@501>", "timestamp": "2024-01-01T00:00:00Z"}}}})
	if got := l.waitFor(n + 2)[n+1]; got.Text != "" || len(got.Quotes) != 1 || got.Quotes[0].Kind != bus.Forwarded || got.Quotes[0].Text != "/stop @501" || got.Quotes[0].Chat != "general" {
		t.Errorf("a forwarded message became %+v", got)
	}
}

// A reply to the bot's message counts as a mention even if its sender has turned off the notification.
func TestAReplyToTheBotCountsAsAMention(t *testing.T) {
	l := newListener(t)
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL})
	id, err := c.Send(t.Context(), address("100"), textPart("hi"))
	if err != nil {
		t.Fatal(err)
	}
	l.receiveUntilStopped()
	l.server.Reply("100", "501", id, "thanks")
	if in := l.waitFor(1)[0]; in.Text != "thanks" || !in.Mentioned {
		t.Errorf("heard %+v", in)
	}
}

func TestAFailedPublishHoldsUpOnlyItsChannel(t *testing.T) {
	l := newListener(t)
	var once sync.Once
	l.startReceiving(func(ctx context.Context, in bus.Inbound) (err error) {
		once.Do(func() { err = errors.New("the store is away") })
		if err != nil {
			return err
		}
		return l.publish(ctx, in)
	})
	l.server.Say("11", "501", "a")
	l.server.Say("11", "501", "b")
	if got := l.waitFor(2); got[0].Text != "a" || got[1].Text != "b" {
		t.Errorf("published %+v", got)
	}
}

// textsAt returns the published texts of an address, in order.
func (l *listener) textsAt(at bus.Address) (texts []string) {
	for _, in := range l.all() {
		if in.At == at {
			texts = append(texts, in.Text)
		}
	}
	return texts
}

// numberTexts returns the numbers from one up to another as texts.
func numberTexts(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint("m", i))
	}
	return all
}

// Each of these faults happens while people keep talking. Each message is published once, in the order of its
// channel.
func TestConnectionFaultsLoseNoMessage(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(l *listener, again func()){
		"the connection is cut":         func(l *listener, _ func()) { l.server.CutGateway() },
		"the session is gone":           func(l *listener, _ func()) { l.server.ExpireSessions(); l.server.CutGateway() },
		"Discord asks to connect anew":  func(l *listener, _ func()) { l.server.WriteFrame(`{"op":7,"d":null}`) },
		"the session can go on":         func(l *listener, _ func()) { l.server.WriteFrame(`{"op":9,"d":true}`) },
		"the session is invalid":        func(l *listener, _ func()) { l.server.ExpireSessions(); l.server.WriteFrame(`{"op":9,"d":false}`) },
		"Discord closes with 4000":      func(l *listener, _ func()) { l.server.CloseGateway(4000) },
		"Discord closes with 4007":      func(l *listener, _ func()) { l.server.CloseGateway(4007) },
		"Discord closes with 4008":      func(l *listener, _ func()) { l.server.CloseGateway(4008) },
		"Discord closes with 4009":      func(l *listener, _ func()) { l.server.CloseGateway(4009) },
		"Discord closes with 1001":      func(l *listener, _ func()) { l.server.CloseGateway(1001) },
		"Discord closes with 1000":      func(l *listener, _ func()) { l.server.CloseGateway(1000) },
		"the connection brings nothing": func(l *listener, _ func()) { l.server.MuteConnections() },
		"nobody says hello":             func(l *listener, _ func()) { l.server.SkipHello(2); l.server.CutGateway() },
		"asked to connect anew too early": func(l *listener, _ func()) {
			l.server.ExpireSessions()
			l.server.AskEarlyReconnect(2)
			l.server.CutGateway()
		},
		"a heartbeat is asked for": func(l *listener, _ func()) { l.server.WriteFrame(`{"op":1,"d":null}`) },
		"what comes cannot be read": func(l *listener, _ func()) {
			l.server.WriteFrame(`{"op":`)
			l.server.WriteFrame(`{"op":0,"t":"MESSAGE_CREATE","s":1,"d":7}`)
		},
		"Discord is away for a long time":    func(l *listener, _ func()) { l.fake.Down(); l.server.ExpireSessions(); l.sayAll(20, 30); l.fake.Up() },
		"Discord is away for a moment":       func(l *listener, _ func()) { l.fake.Down(); l.sayAll(20, 30); l.fake.Up() },
		"another process takes its place":    func(_ *listener, again func()) { again() },
		"another process receives beside it": func(l *listener, _ func()) { l.startReceiving(l.publish) },
	} {
		from := 20
		if name == "Discord is away for a long time" || name == "Discord is away for a moment" || name == "another process takes its place" {
			from = 30
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newListener(t).checkSurvives(fault, from, false)
		})
		t.Run(name+", all was quiet", func(t *testing.T) {
			t.Parallel()
			newListener(t).checkSurvives(fault, from, true)
		})
	}
}

// checkSurvives has people post fifty numbers in three places, with a fault in between, which itself posts the
// numbers before from. It checks that each number is published once, in order. If quiet is true, it waits
// before the fault until the history from before the start has been read, so that only the connection can
// deliver the rest.
func (l *listener) checkSurvives(fault func(l *listener, again func()), from int, quiet bool) {
	l.sayAll(0, 10) // before the channel receives
	stop := l.receiveUntilStopped()
	l.sayAll(10, 20)
	if quiet {
		l.waitFor(3 * 20)
	}
	fault(l, func() {
		if err := stop(); err != nil {
			l.Error(err)
		}
		l.sayAll(20, 30)
		l.startReceiving(l.publish)
	})
	l.sayAll(from, 50)
	l.waitFor(3 * 50)
	for _, where := range []bus.Address{address("11"), address("100"), threadAddress("100", "200")} {
		if got := l.textsAt(where); !slices.Equal(got, numberTexts(0, 50)) {
			l.Errorf("at %v was heard %q", where, got)
		}
	}
	for _, code := range l.server.ClosedWith() {
		if code == 1000 || code == 1001 {
			l.Errorf("closed with %d, which ends the session", code)
		}
	}
}

// sayAll posts numbers in a chat, a channel and a thread.
func (l *listener) sayAll(from, to int) {
	for _, text := range numberTexts(from, to) {
		l.server.Say("11", "501", text)
		l.server.Say("100", "501", botMention+text)
		l.server.Say("200", "502", botMention+text)
	}
}

// If Discord closes the connection for good, Receive ends with an error that says what to do.
func TestCloseCodesThatEndReceive(t *testing.T) {
	for code, remedy := range map[int]string{4004: "", 4010: "newer release", 4011: "servers", 4012: "newer release", 4013: "newer release", 4014: "Message Content Intent"} {
		l := newListener(t)
		ended := make(chan error, 1)
		c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL, Book: l.book})
		go func() { ended <- c.Receive(t.Context(), l.publish) }()
		channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
		l.server.CloseGateway(code)
		refused := requireSendError(t, <-ended)
		if refused.Fault != channels.Stop || refused.Code != fmt.Sprint(code) || remedy != "" && !strings.Contains(refused.Remedy, remedy) {
			t.Errorf("%d: %+v", code, refused)
		}
	}
}

func TestReceiveNeedsTheMessageContentIntent(t *testing.T) {
	l := newListener(t)
	l.server.AllowContent(false)
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL, Book: l.book})
	if refused := requireSendError(t, c.Receive(t.Context(), l.publish)); refused.Code != "4014" || refused.Fault != channels.Stop {
		t.Errorf("got %+v", refused)
	}
}

func TestWhenMentionsAreNeeded(t *testing.T) {
	l := newListener(t)
	l.mention = func(chat string) channels.Mention {
		return map[string]channels.Mention{"100": channels.MentionNever, "101": channels.MentionNowhere, "102": channels.MentionAlways}[chat]
	}
	l.server.AddChannel("101", "elsewhere")
	l.server.AddChannel("102", "calm")
	l.server.AddThread("202", "102", "in it")
	l.book.join(threadAddress("102", "202"), time.Now().Add(-time.Hour))
	l.receiveUntilStopped()
	l.server.Say("100", "501", "all is heard")
	l.server.Say("200", "501", "in threads too")
	l.server.Say("101", "501", botMention+"nothing is heard")
	l.server.Say("202", "501", "not called")
	l.server.Say("202", "501", "/stop")
	l.server.Say("102", "501", botMention+"this")
	l.waitFor(4)
	var got []string
	for _, in := range l.publishedSoFar() {
		got = append(got, fmt.Sprint(in.At, " ", in.Text, " ", in.Mentioned))
	}
	slices.Sort(got)
	want := []string{"dc:100 all is heard true", "dc:100/200 in threads too true", "dc:102 this true", "dc:102/202 /stop false"}
	if !slices.Equal(got, want) {
		t.Errorf("published %q, want %q", got, want)
	}
}

// Discord limits how many sessions a bot may start, and no more are started. A server in place of Discord that
// reports no limit has none.
func TestNoMoreSessionsAreStartedThanAllowed(t *testing.T) {
	l := newListener(t)
	l.server.SessionsLeft(0)
	l.startReceiving(l.publish)
	channelstest.Until(t, "a second look", func() bool { return l.server.Calls("GET gateway") >= 2 })
	if n := l.server.Identifies(); n != 0 {
		t.Errorf("%d sessions were asked for", n)
	}
	l.server.Fail("GET gateway", "", 1, discordtest.Answer(200, fmt.Sprintf(`{"url": "ws%s/gateway/"}`, strings.TrimSuffix(strings.TrimPrefix(l.fake.URL, "http"), "/api/v9"))))
	channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
}

func TestEditsAndDeletionsArePublished(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	id := l.server.Say("100", "501", botMention+"the frist")
	among := l.server.Say("100", "501", "among people")
	said := l.waitFor(1)[0]
	l.server.Rewrite("100", id, botMention+"the first")
	l.server.Rewrite("100", among, "among people still")
	edited := l.waitFor(2)[1]
	if edited.Kind != bus.Edited || edited.Of != said.ID || edited.ID == said.ID || edited.Text != "the first" || edited.From.ID != "dc:501" || edited.At != address("100") {
		t.Errorf("an edit became %+v", edited)
	}
	l.server.Remove("100", among)
	unknown := l.waitFor(3)[2] // Discord does not say who wrote the deleted message
	if unknown.Kind != bus.Deleted || unknown.From.ID != "" || !strings.HasSuffix(unknown.Of, among) || unknown.At != address("100") {
		t.Errorf("a deletion of what was not published became %+v", unknown)
	}
	l.server.Remove("100", id)
	deleted := l.waitFor(4)[3]
	if deleted.Kind != bus.Deleted || deleted.Of != said.ID || deleted.ID == said.ID || deleted.From.ID != "dc:501" || deleted.At != address("100") || !deleted.Group {
		t.Errorf("a deletion became %+v", deleted)
	}
	if rest := l.publishedSoFar(); len(rest) != 4 {
		t.Errorf("heard %+v", rest)
	}
}
