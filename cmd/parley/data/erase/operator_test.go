package erase_test

import (
	"slices"
	"testing"

	"parley/bus"
	"parley/bus/bustest"
	"parley/channels/channelstest"
	"parley/cmd/parley/hometest"
	"parley/sessions"
)

// What an operator said in a conversation is erased with the conversation and with the operator, but not with another
// person of a group. This holds for a message that waits to be sent, for the notice to the session, and for the
// session's log.
func TestWhatAnOperatorSaidIsErased(t *testing.T) {
	for _, c := range []struct {
		name   string
		forget func(e eraserOf) error
		want   []string // what remains
	}{
		{"one of the group", func(e eraserOf) error { return e.person(anna) }, []string{"group"}},
		{"the operator", func(e eraserOf) error { return e.person("web:boss") }, nil},
		{"the group", func(e eraserOf) error { return e.session(hometest.Key(t, group)) }, []string{"private"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hometest.Open(t, t.TempDir())
			working, sending := h.RunWorker(nil), h.RunDispatcher(channelstest.NewMemoryChannel())
			h.Say("a1", "42", "42", "find "+secret)
			h.Say("a2", "42", group, "find "+secret)
			h.Say("b1", "43", group, "find "+others)
			h.WaitIdle()
			sending()
			for chat, name := range map[string]string{"42": "private", group: "group"} {
				tellOfOperator(t, h, "log "+name, chat)
			}
			h.WaitIdle()
			working()
			for chat, name := range map[string]string{"42": "private", group: "group"} {
				tellOfOperator(t, h, name, chat)
				sayAsOperator(t, h, name, chat)
			}
			if err := c.forget(eraserOf{t, h}); err != nil {
				t.Fatal(err)
			}
			var sent, told, logged []string
			for _, m := range bustest.Take(t, h.Bus, bus.OutboundTopic(hometest.Channel)) {
				sent = append(sent, m.ID)
			}
			for _, m := range bustest.Take(t, h.Bus, bus.InboundTopic) {
				told = append(told, m.ID)
			}
			for chat, name := range map[string]string{"42": "private", group: "group"} {
				if e, err := h.Store.Find(t.Context(), hometest.Key(t, chat), "log "+name); err == nil && e.Kind == sessions.KindNotice {
					logged = append(logged, name)
				}
			}
			if !slices.Equal(sent, c.want) || !slices.Equal(told, c.want) || !slices.Equal(logged, c.want) {
				t.Errorf("left are %v to be sent, %v for sessions and %v in logs, want %v", sent, told, logged, c.want)
			}
		})
	}
}

// An eraserOf has the home and the eraser that a case uses.
type eraserOf struct {
	t *testing.T
	h *hometest.Home
}

func (e eraserOf) person(id string) error {
	_, err := eraser(e.h).Person(e.t.Context(), id)
	return err
}

func (e eraserOf) session(key string) error {
	_, err := eraser(e.h).Session(e.t.Context(), key)
	return err
}

// tellOfOperator publishes the notice by which the session of a chat learns what an operator has said.
func tellOfOperator(t *testing.T, h *hometest.Home, id, chat string) {
	t.Helper()
	in := bus.Inbound{ID: id, Kind: bus.Notice, At: bus.Address{Channel: hometest.Channel, Chat: chat}, Text: "not you",
		Quotes: []bus.Quote{{Kind: bus.Told, From: bus.Person{ID: "web:boss"}, Text: "hello", Own: true, Operator: true}}}
	if err := bus.PublishNotice(t.Context(), h.Bus, hometest.Key(t, chat), in); err != nil {
		t.Fatal(err)
	}
}

// sayAsOperator publishes an operator's answer to a chat, where it waits to be sent.
func sayAsOperator(t *testing.T, h *hometest.Home, id, chat string) {
	t.Helper()
	out := bus.Outbound{ID: id, To: bus.Address{Channel: hometest.Channel, Chat: chat}, Text: "hello", Session: hometest.Key(t, chat),
		Told: &bus.Telling{For: bus.Person{ID: "web:boss"}, Words: "hello", Operator: true}}
	if err := bus.PublishOutbound(t.Context(), h.Bus, out); err != nil {
		t.Fatal(err)
	}
}
