package discord_test

import (
	"strings"
	"testing"

	"parley/channels"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

func TestMessagesHaveAddressesInTheirServer(t *testing.T) {
	l := newListener(t)
	l.receiveUntilStopped()
	want := map[string]string{}
	for place, server := range map[string]string{"100": discordtest.Guild, "200": discordtest.Guild, "11": "@me"} {
		id := l.server.Say(place, "11", "<@"+discordtest.Bot+"> hello")
		want[id] = "https://discord.com/channels/" + server + "/" + place + "/" + id
	}
	fresh := newChannel(l, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: l.book}) // as in a process that receives nothing
	all := l.waitFor(len(want))
	asked := l.server.Calls("GET channels")
	for range 2 {
		for _, in := range all {
			id := in.ID[strings.LastIndexByte(in.ID, ':')+1:]
			if got, err := channels.LinkTo(t.Context(), fresh, in.At, in.ID); err != nil || got != want[id] {
				t.Errorf("%s is at %q, %v, want %q", in.ID, got, err, want[id])
			}
		}
	}
	if n := l.server.Calls("GET channels") - asked; n != len(want) {
		t.Errorf("Discord was asked %d times about %d places", n, len(want))
	}
	for _, other := range []string{"", "dc", "tg:1:100:5", all[0].ID + "#told", all[0].ID + ":up", "dc:1:100:x", "dc:1:nowhere:5", "dc:1:999:5"} {
		if got, err := channels.LinkTo(t.Context(), fresh, all[0].At, other); err != nil || got != "" {
			t.Errorf("%q is at %q, %v", other, got, err)
		}
	}
}
