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

// textNamingEverybody mentions everybody, everybody who is online, a role and a person.
const textNamingEverybody = "@everyone @here <@&300> <@501> look"

// No text that the bot sends notifies the people it names, because strangers and models decide which names are
// in it.
func TestSentTextsMentionNobody(t *testing.T) {
	for _, where := range []bus.Address{address("11"), address("100"), threadAddress("100", "200"), threadAddress("150", "250")} { // the last address is a post in a forum
		t.Run(where.String(), func(t *testing.T) {
			r := newRig(t)
			chat := where.Thread
			if chat == "" {
				chat = where.Chat
			}
			asked := r.server.Say(chat, "501", "a question")
			for i, p := range []channels.Part{
				{Text: textNamingEverybody}, {Text: textNamingEverybody, ReplyTo: asked}, {Text: textNamingEverybody, Under: asked},
				{Text: textNamingEverybody, Buttons: []bus.Button{{Label: textNamingEverybody, Says: textNamingEverybody}}},
			} {
				p.Key = fmt.Sprint("k/", i)
				id, err := r.Send(t.Context(), where, p)
				if err == nil {
					err = r.Edit(t.Context(), where, id, channels.Part{Key: p.Key, Text: "edited " + textNamingEverybody, Buttons: p.Buttons})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.SendFile(t.Context(), where, bus.File{Name: "a.txt", Data: []byte(textNamingEverybody)}, channels.Part{Key: "k/file", Text: textNamingEverybody, ReplyTo: asked}); err != nil {
				t.Fatal(err)
			}
			all := r.server.Sent(chat)
			if len(all) != 5 {
				t.Fatalf("%d messages were sent", len(all))
			}
			for i, m := range all {
				if m.NotifiesPeople || !strings.HasSuffix(m.Text, textNamingEverybody) || m.Edits != 1 && i < 4 {
					t.Errorf("message %d calls people: %+v", i, m)
				}
			}
		})
	}
}

// The same holds for answers to interactions, immediate and deferred ones.
func TestAnswersToInteractionsMentionNobody(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": testTimeout, "after a while": 1} {
		t.Run(name, func(t *testing.T) {
			l := newListener(t)
			c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: l.book})
			c.SetAnswerTimeout(wait)
			ctx, cancel := context.WithCancel(t.Context())
			ended, open := make(chan error, 1), make(chan struct{})
			go func() {
				ended <- c.Receive(ctx, func(ctx context.Context, in bus.Inbound) error {
					<-open
					return l.publish(ctx, in)
				})
			}()
			channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
			id := l.server.GiveCommand("100", "501", "deny", textNamingEverybody)
			if wait == 1 {
				channelstest.Until(t, "a word", func() bool { return l.server.InteractionResult(id).Deferred })
			}
			close(open)
			channelstest.Until(t, "an answer", func() bool { return l.server.InteractionResult(id).Answered })
			if d := l.server.InteractionResult(id); d.NotifiesPeople || !d.Hidden || d.Deferred != (wait == 1) || !strings.Contains(d.Text, textNamingEverybody) {
				t.Errorf("it was answered by %+v", d)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
