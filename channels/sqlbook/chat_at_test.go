package sqlbook_test

import (
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
)

// A chat is found by its address, ignoring the thread. It is private if any of its records says so, and unknown
// if nobody has said anything there.
func TestAChatIsFoundByItsAddress(t *testing.T) {
	b, err := sqlbook.Open(t.Context(), newPlace(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	for _, chat := range []channels.Chat{
		{Address: bus.Address{Channel: "c", Chat: "group", Thread: "1"}, Group: true, Name: "#ops"},
		{Address: bus.Address{Channel: "c", Chat: "group", Thread: "2"}, Group: true, Name: "#ops"},
		{Address: bus.Address{Channel: "c", Chat: "private"}, Person: "c:7", Name: "Ann"},
		{Address: bus.Address{Channel: "c", Chat: "both"}, Group: true, Name: "#both"},
		{Address: bus.Address{Channel: "c", Chat: "both", Thread: "9"}, Person: "c:8", Name: "Ben"},
	} {
		chat.Seen = time.Now()
		if err := b.RecordChat(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
	}
	for chat, want := range map[string]channels.Chat{
		"group": {Group: true, Name: "#ops"}, "private": {Person: "c:7", Name: "Ann"}, "both": {Person: "c:8", Name: "Ben"}, "none": {},
	} {
		got, known, err := b.ChatAt(t.Context(), bus.Address{Channel: "c", Chat: chat, Thread: "5"})
		if err != nil || known != (chat != "none") || got.Group != want.Group || got.Person != want.Person || got.Name != want.Name {
			t.Errorf("%s is %+v, known %v, %v", chat, got, known, err)
		}
	}
}
