package telegram_test

import (
	"testing"

	"parley/bus"
	"parley/channels"
)

func TestMessagesInSupergroupsHaveAddresses(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder()
	startReceiving(t, r.Channel, m.publish)
	const super = -1001234567890
	r.server.Say(super, 7, "@"+botName+" hello")
	r.server.Say(-1001, 7, "@"+botName+" hello") // a basic group, whose messages have no web addresses in Telegram
	r.server.Say(7, 7, "hello")
	r.server.Say(super, 7, "@"+botName+" hello again")
	want := map[string]string{"-1001234567890": "https://t.me/c/1234567890/", "-1001": "", "7": ""}
	for _, in := range m.wait(t, 4) {
		link := want[in.At.Chat]
		if link != "" {
			link += in.ReplyTo
		}
		if got, err := channels.LinkTo(t.Context(), r.Channel, in.At, in.ID); err != nil || got != link {
			t.Errorf("%s is at %q, %v, want %q", in.ID, got, err, link)
		}
	}
	for _, other := range []string{"", "tg", "dc:1:-1001234567890:5", "tg:1:-1001234567890:5#told", "tg:1:-1001234567890:x", "tg:1:-1001234567890:5:up", "tg:1:-2001234567890:5", "tg:1:-1000000000000:5"} {
		if got, err := channels.LinkTo(t.Context(), r.Channel, bus.Address{Channel: "tg", Chat: "-1001234567890"}, other); err != nil || got != "" {
			t.Errorf("%q is at %q, %v", other, got, err)
		}
	}
}
