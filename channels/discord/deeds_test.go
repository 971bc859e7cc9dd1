package discord_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/discord"
)

func TestSlashCommandsBecomeTypedText(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	direct := l.server.GiveCommand("11", "501", "start", "THE-CODE")
	in := l.waitFor(1)[0]
	if in.Text != "/start THE-CODE" || in.At != address("11") || in.Group || in.Pressed || !in.Mentioned || in.From.ID != "dc:501" || in.ReplyTo != "" {
		t.Errorf("a command in a direct message became %+v", in)
	}
	l.server.GiveCommand("200", "501", "deny", "abc", "too dear")
	in = l.waitFor(2)[1]
	if in.Text != "/deny abc too dear" || in.At != threadAddress("100", "200") || !in.Group || !in.Pressed {
		t.Errorf("a command in a thread became %+v", in)
	}
	channelstest.Until(t, "an answer", func() bool { return l.server.InteractionResult(direct).Answered })
	if d := l.server.InteractionResult(direct); !d.Hidden || !strings.Contains(d.Text, "/start") {
		t.Errorf("it was answered by %+v", d)
	}
}

func TestSlashCommandsAreOfferedOnce(t *testing.T) {
	l := newListener(t)
	stop := l.receiveUntilStopped()
	want := append(channels.Commands(), "start")
	slices.Sort(want)
	channelstest.Until(t, "the commands", func() bool { return slices.Equal(l.server.OfferedCommands(), want) })
	if err := stop(); err != nil {
		t.Error(err)
	}
	l.startReceiving(l.publish)
	channelstest.Until(t, "a look at them", func() bool { return l.server.Calls("GET applications") >= 2 })
	if n := l.server.Calls("PUT applications"); n != 1 {
		t.Errorf("they were set %d times", n)
	}
}

func TestAPersonWhoIsNotAdmittedIsToldPrivately(t *testing.T) {
	l := newListener(t)
	l.startReceiving(func(context.Context, bus.Inbound) error { return channels.ErrNotAdmitted })
	channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
	id := l.server.GiveCommand("100", "501", "status")
	channelstest.Until(t, "an answer", func() bool { return l.server.InteractionResult(id).Answered })
	if d := l.server.InteractionResult(id); !d.Hidden || d.Text != channels.TextNotAdmitted {
		t.Errorf("it was answered by %+v", d)
	}
}

// Discord waits three seconds for an answer to an interaction, and longer only if it is told to wait.
func TestDiscordIsToldToWait(t *testing.T) {
	l := newListener(t)
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: l.book})
	c.SetAnswerTimeout(1)
	ctx, cancel := context.WithCancel(t.Context())
	ended, open := make(chan error, 1), make(chan struct{})
	failed := false
	go func() {
		ended <- c.Receive(ctx, func(ctx context.Context, in bus.Inbound) error {
			<-open
			if !failed {
				failed = true
				return errors.New("the store is away")
			}
			return l.publish(ctx, in)
		})
	}()
	channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
	id := l.server.GiveCommand("100", "501", "stop")
	channelstest.Until(t, "a word", func() bool { return l.server.InteractionResult(id).Deferred })
	if d := l.server.InteractionResult(id); d.Answered || !d.Hidden {
		t.Errorf("before it was published it was answered by %+v", d)
	}
	close(open)
	l.waitFor(1)
	channelstest.Until(t, "an answer", func() bool { return l.server.InteractionResult(id).Answered })
	if d := l.server.InteractionResult(id); !strings.Contains(d.Text, "/stop") {
		t.Errorf("it was answered by %+v", d)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestReactionsAndTyping(t *testing.T) {
	l := newListener(t)
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL})
	id := l.server.Say("200", "501", "hello")
	where, message := threadAddress("100", "200"), "dc:4242:200:"+id
	for range 2 {
		for _, show := range []func(context.Context, bus.Address, string) error{c.MarkSeen, c.MarkAnswered, c.MarkFailed} {
			if err := show(t.Context(), where, message); err != nil {
				t.Error(err)
			}
		}
	}
	if got := l.server.Reactions("200", id); !slices.Equal(got, []string{"👀", "✅", "⚠️"}) {
		t.Errorf("the message has %q", got)
	}
	if e := requireSendError(t, c.MarkSeen(t.Context(), where, "dc:4242:200:press:x")); e.Fault != channels.Rejected {
		t.Errorf("a reaction at what is no message gives %v", e)
	}
	if fades, err := c.Typing(t.Context(), where); err != nil || fades <= 0 || l.server.Calls("POST typing") != 1 {
		t.Errorf("Typing = %v, %v", fades, err)
	}
}

func TestReactionsToTheBotsMessages(t *testing.T) {
	l := newListener(t)
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL})
	id, err := c.Send(t.Context(), threadAddress("100", "200"), textPart("an answer"))
	if err != nil {
		t.Fatal(err)
	}
	others := l.server.Say("200", "502", "a person's")
	l.receiveUntilStopped()
	l.server.React("200", "501", others, "👍")
	l.server.React("200", "4242", id, "👀")
	l.server.React("200", "501", id, "👍")
	l.server.Unreact("200", "501", id, "👍")
	got := l.waitFor(2)
	for i, in := range got {
		if in.Kind != bus.Reacted || in.Of != "dc:4242:200:"+id || in.Reaction != "👍" || in.Removed != (i == 1) || in.At != threadAddress("100", "200") ||
			!in.Group || in.From.ID != "dc:501" {
			t.Errorf("heard %+v", in)
		}
	}
	if rest := l.publishedSoFar(); len(rest) != 2 {
		t.Errorf("heard %+v", rest)
	}
}
