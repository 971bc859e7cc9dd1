package server

import (
	"context"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/cmd/parley/config"
)

// A turn is private only if the book knows that the person is alone with the bot. If the book can't be read, the turn
// doesn't begin at all.
func TestWhereATurnIsPrivate(t *testing.T) {
	s := newTestServer(t, "")
	gate := &gateway.Gate{}
	gate.Set(gateway.Access{Owners: []string{"7"}, Mention: channels.MentionAlways})
	c := &turnAdmission{
		foundation:   foundation{home: s.home, settings: s.settings},
		liveChannels: liveChannels{{name: "telegram", gate: gate, receive: true, config: config.Channel{Platform: "telegram"}}},
	}
	at := func(chat string) bus.Address { return bus.Address{Channel: "telegram", Chat: chat, Thread: "3"} }
	for chat, group := range map[string]bool{"7": false, "g": true} {
		met := channels.Chat{Address: bus.Address{Channel: "telegram", Chat: chat}, Session: "main:telegram:" + chat, Group: group, Seen: time.Now()}
		if err := s.home.Book.RecordChat(t.Context(), met); err != nil {
			t.Fatal(err)
		}
	}
	who := bus.Person{ID: "telegram:7"} // an owner in the settings, so the gate doesn't read the book
	for chat, private := range map[string]bool{"7": true, "g": false, "unknown": false} {
		if caller, ok, err := c.admit(t.Context(), who, at(chat)); caller.Private != private || !ok || err != nil {
			t.Errorf("in %s: %+v, %v, %v; want private %v", chat, caller, ok, err, private)
		}
	}
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if caller, ok, err := c.admit(away, who, at("7")); caller != (bus.Caller{}) || ok || err == nil {
		t.Errorf("while the book is away: %+v, %v, %v", caller, ok, err)
	}
}
