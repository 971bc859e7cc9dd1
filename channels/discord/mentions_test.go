package discord_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/discord"
)

// calling is a text that names everybody, those who are there, a role and a person.
const calling = "@everyone @here <@&300> <@501> look"

// By no way does what the bot says call the people whom it names: they are named by
// strangers and models.
func TestNobodyIsCalled(t *testing.T) {
	for _, where := range []bus.Address{at("11"), at("100"), thread("100", "200"), thread("150", "250")} { // the last one is a post of a forum
		t.Run(where.String(), func(t *testing.T) {
			r := newRig(t)
			chat := where.Thread
			if chat == "" {
				chat = where.Chat
			}
			asked := r.server.Say(chat, "501", "a question")
			for i, p := range []channels.Part{
				{Text: calling}, {Text: calling, ReplyTo: asked}, {Text: calling, Under: asked},
				{Text: calling, Buttons: []bus.Button{{Label: calling, Says: calling}}},
			} {
				p.Key = fmt.Sprint("k/", i)
				id, err := r.Send(t.Context(), where, p)
				if err == nil {
					err = r.Edit(t.Context(), where, id, channels.Part{Key: p.Key, Text: "edited " + calling, Buttons: p.Buttons})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.SendFile(t.Context(), where, bus.File{Name: "a.txt", Data: []byte(calling)}, channels.Part{Key: "k/file", Text: calling, ReplyTo: asked}); err != nil {
				t.Fatal(err)
			}
			all := r.server.Sent(chat)
			if len(all) != 5 {
				t.Fatalf("%d messages were sent", len(all))
			}
			for i, m := range all {
				if m.Calls || !strings.HasSuffix(m.Text, calling) || m.Edits != 1 && i < 4 {
					t.Errorf("message %d calls people: %+v", i, m)
				}
			}
		})
	}
}

// So it is with the answers to what somebody did, at once and after a while.
func TestNobodyIsCalledByAnAnswerToAnInteraction(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": patience, "after a while": 1} {
		t.Run(name, func(t *testing.T) {
			l := newListener(t)
			c := channel(t, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: l.book})
			c.SetAnswer(wait)
			ctx, cancel := context.WithCancel(t.Context())
			ended, open := make(chan error, 1), make(chan struct{})
			go func() {
				ended <- c.Receive(ctx, func(ctx context.Context, in bus.Inbound) error {
					<-open
					return l.publish(ctx, in)
				})
			}()
			channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
			id := l.server.GiveCommand("100", "501", "deny", calling)
			if wait == 1 {
				channelstest.Until(t, "a word", func() bool { return l.server.InteractionResult(id).Deferred })
			}
			close(open)
			channelstest.Until(t, "an answer", func() bool { return l.server.InteractionResult(id).Answered })
			if d := l.server.InteractionResult(id); d.Calls || !d.Hidden || d.Deferred != (wait == 1) || !strings.Contains(d.Words, calling) {
				t.Errorf("it was answered by %+v", d)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
