package discord_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

// A thread counts as closed unless Discord says that it is public.
func TestWhichThreadsAreClosed(t *testing.T) {
	l := newListener(t)
	l.server.AddChannel("300", "incident")
	l.server.AddThread("310", "300", "open")
	l.server.AddPrivateThread("311", "300", "invited")
	c := newChannel(l, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: newBook("11")})
	for thread, want := range map[string]bool{"": false, "310": false, "311": true, "399": true} {
		if closed, err := channels.IsClosed(t.Context(), c, bus.Address{Channel: "dc", Chat: "300", Thread: thread}); err != nil || closed != want {
			t.Errorf("thread %q is closed: %v, %v", thread, closed, err)
		}
	}
}

// Messages in private threads are not read with the channel, because the channel's members may not have been
// invited to them.
func TestPrivateThreadsAreNotReadWithTheirChannel(t *testing.T) {
	l := newListener(t)
	l.server.AddChannel("300", "incident")
	l.server.AddThread("310", "300", "open")
	l.server.AddPrivateThread("311", "300", "invited")
	c := newChannel(l, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: newBook("11")})
	for _, place := range []string{"300", "310", "311"} {
		l.server.Say(place, "11", "said in "+place)
		if _, err := channels.IsClosed(t.Context(), c, bus.Address{Channel: "dc", Chat: "300", Thread: place}); err != nil { // from now on the directory knows the thread
			t.Fatal(err)
		}
	}
	said, _, err := c.History(t.Context(), bus.Address{Channel: "dc", Chat: "300"}, time.Time{}, 10)
	var texts []string
	for _, u := range said {
		texts = append(texts, u.Text)
	}
	if want := []string{"said in 300", "said in 310"}; err != nil || !slices.Equal(texts, want) {
		t.Errorf("the channel has %q, %v, want %q", texts, err, want)
	}
}

func TestOnlyMembersAreInAChannel(t *testing.T) {
	l := newListener(t)
	l.server.AddChannel("300", "incident")
	l.server.AddChannel("301", "twin")
	l.server.AddChannel("302", "twin")
	l.server.HideFrom("300", "12")
	for i := range 130 {
		l.server.Say("300", "11", fmt.Sprint("said ", i))
	}
	c := newChannel(l, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: newBook("11")})
	for name, want := range map[string]string{"#incident": "300", "Incident": "300", "300": "300", "#nowhere": "", "twin": "", "77": ""} {
		if got, err := c.FindChat(t.Context(), name); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	for person, want := range map[string]bool{"dc:11": true, "dc:12": false, "dc:" + discordtest.Stranger: false} {
		if in, err := c.IsIn(t.Context(), "300", person); err != nil || in != want {
			t.Errorf("%s is in it: %t, %v", person, in, err)
		}
	}
	at := bus.Address{Channel: "dc", Chat: "300"}
	said, more, err := c.History(t.Context(), at, time.Time{}, 120)
	if err != nil || !more || len(said) != 120 || said[0].Text != "said 10" || said[119].Text != "said 129" || said[0].From.ID != "dc:11" {
		t.Errorf("%d messages, more %t, %v, the first %+v, the last %+v", len(said), more, err, said[0], said[len(said)-1])
	}
	if said, more, err := c.History(t.Context(), at, time.Now().Add(time.Hour), 120); err != nil || more || len(said) != 0 {
		t.Errorf("since later on: %d messages, more %t, %v", len(said), more, err)
	}
	l.server.HideHistory("300")
	_, _, err = c.History(t.Context(), at, time.Time{}, 10)
	if refusal, ok := errors.AsType[*channels.SendError](err); !ok || refusal.Fault != channels.Rejected || strings.Contains(err.Error(), token) {
		t.Errorf("of a channel that the bot may not read it says %v", err)
	}
}
