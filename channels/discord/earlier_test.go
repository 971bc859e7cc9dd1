package discord_test

import (
	"fmt"
	"testing"

	"parley/bus"
	"parley/channels/discord"
)

func TestEarlierMessagesOfAThreadAreRead(t *testing.T) {
	l := newListener(t)
	for i := range 30 {
		l.server.Say("200", "11", fmt.Sprint("said ", i))
	}
	last := l.server.Say("200", "12", "the question")
	l.server.Say("200", "11", "said later")
	c := newChannel(l, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: newBook("11", "12")})
	in := bus.Inbound{Kind: bus.Said, Group: true, At: bus.Address{Channel: "discord", Chat: "100", Thread: "200"}, ReplyTo: last}
	quotes, err := c.MessagesBefore(t.Context(), in, 20, false)
	if err != nil || len(quotes) != 20 {
		t.Fatalf("%d quotes, %v", len(quotes), err)
	}
	if q := quotes[19]; q.Kind != bus.Earlier || q.Text != "said 29" || q.From.ID == "" || q.From.Name == "" || q.At.IsZero() {
		t.Errorf("the last is %+v", q)
	}
	in.At.Thread = ""
	if quotes, err := c.MessagesBefore(t.Context(), in, 20, false); err != nil || len(quotes) > 0 {
		t.Errorf("outside of a thread: %+v, %v", quotes, err)
	}
}
