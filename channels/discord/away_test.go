package discord_test

import (
	"slices"
	"strings"
	"testing"

	"parley/channels/channelstest"
)

// Discord tells nobody of the chat with a person who has not talked to the bot yet. What
// they said while it was away is heard once they write again, however often it was away
// since; what they said while it was there is not heard again.
func TestAnUnknownPersonIsHeardOnceTheyWriteAgain(t *testing.T) {
	l := newListener(t)
	l.overlap = 0
	stop := l.receive()
	l.server.Say("77", "507", "there") // nobody who is admitted, as the book has no chat with them
	l.wait(1)
	l.server.Say("100", "501", called+"hello")
	l.wait(2)
	for _, text := range []string{"away", "away again"} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		l.server.Expire()
		l.server.Say("77", "507", text)
		stop = l.receive()
		l.server.Say("100", "501", called+"somebody else "+text)
		channelstest.Until(t, "somebody else", func() bool {
			return slices.ContainsFunc(l.texts(at("100")), func(heard string) bool { return strings.HasSuffix(heard, text) })
		})
		channelstest.Until(t, "the cursor", func() bool { return l.server.Since(l.book.cursor()) == 0 })
	}
	l.mu.Lock()
	clear(l.known) // as if nobody dropped what comes twice
	l.mu.Unlock()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l.server.Expire()
	l.receive()
	l.server.Say("77", "507", "at last")
	channelstest.Until(t, "the last", func() bool { return slices.Contains(l.texts(at("77")), "at last") })
	if got := l.texts(at("77")); !slices.Equal(got, []string{"there", "away", "away again", "at last"}) {
		t.Errorf("heard %q", got)
	}
}
