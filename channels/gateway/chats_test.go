package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// inGroup is what somebody says to the bot in a group.
func inGroup(id, user, chat, text string) bus.Inbound {
	in := stagetest.Said(id, user, text)
	in.Group, in.Mentioned, in.At.Chat = true, true, chat
	return in
}

func TestABotListensInTheChatsThatAreListed(t *testing.T) {
	access := gateway.Access{Policy: "open", Owners: []string{"1"}, Chats: []gateway.Chat{{ID: "yes"}}}
	inGateway(t, bus.Caps{}, access, func(t *testing.T, s *stage) {
		s.say(t, inGroup("m1", "1", "no", "hello"))
		s.say(t, inGroup("m2", "1", "no", "/status"))
		button := pressed("m3", "1", "/approve abc")
		button.At.Chat = "no"
		s.say(t, button)
		if mail := s.Mail(t); len(mail) != 0 {
			t.Errorf("of a chat that is not listed %+v was published", mail)
		}
		if chats, err := s.Book.Chats(t.Context()); err != nil || len(chats) != 0 {
			t.Errorf("it was noted: %+v, %v", chats, err)
		}
		if told := s.Platform.Texts("no"); len(told) != 0 {
			t.Errorf("it was told %q", told)
		}
		s.say(t, inGroup("m4", "1", "yes", "hello"))
		s.say(t, stagetest.Said("m5", "9", "in private"))
		if mail := s.Mail(t); len(mail) != 2 || mail[0].ID != "m4" || mail[1].ID != "m5" {
			t.Errorf("published %+v", mail)
		}
		access.Chats = append(access.Chats, gateway.Chat{ID: "no"})
		s.gate.Set(access) // as SIGHUP does
		s.say(t, inGroup("m6", "1", "no", "hello"))
		if mail := s.Mail(t); len(mail) != 1 || mail[0].ID != "m6" {
			t.Errorf("after it is listed: %+v", mail)
		}
	})
}

func TestWhenMentionsAreNeeded(t *testing.T) {
	gate := &gateway.Gate{}
	want := func(chat string, want channels.Mention) {
		t.Helper()
		if got := gate.Mention(chat); got != want {
			t.Errorf("in %s %q holds, want %q", chat, got, want)
		}
	}
	want("any", channels.MentionThreads)
	gate.Set(gateway.Access{Mention: channels.MentionNever})
	want("any", channels.MentionNever)
	gate.Set(gateway.Access{Mention: channels.MentionAlways, Chats: []gateway.Chat{{ID: "a"}, {ID: "b", Mention: channels.MentionNever}}})
	want("a", channels.MentionAlways)
	want("b", channels.MentionNever)
	want("c", channels.MentionNowhere)
}

// What cannot be taken now comes again: it is neither answered nor lost.
func TestWhatCannotBeTakenNowIsHandedAgain(t *testing.T) {
	away := true
	setup := func(_ *stage, g *gateway.Gateway) {
		g.Route = func(_ context.Context, in bus.Inbound) (gateway.RouteResult, error) {
			if away {
				return gateway.RouteResult{}, gateway.ErrNotNow
			}
			return gateway.RouteResult{Session: "main:" + in.At.String()}, nil
		}
	}
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "open"}, setup, func(t *testing.T, s *stage) {
		said := []bus.Inbound{inGroup("m1", "1", "g", "hello"), inGroup("m2", "1", "g", "/approve "+strings.Repeat("a", bus.AskIDLength)), pressed("m3", "1", "/approve abc")}
		said[1].Mentioned = false // answers by the id
		for _, in := range said {
			if err := s.Platform.Say(t.Context(), in); !errors.Is(err, gateway.ErrNotNow) {
				t.Errorf("%s gave %v", in.ID, err)
			}
		}
		if told := len(s.Platform.Texts("g")) + len(s.Platform.Texts("group")); told > 0 {
			t.Errorf("%d messages were sent", told)
		}
		away = false
		for _, in := range said {
			s.say(t, in)
		}
		if mail := s.Mail(t); len(mail) != 3 {
			t.Errorf("published %+v", mail)
		}
	})
}

// What the platform calls a group stands among the chats.
func TestGroupsAreNotedWithTheirNames(t *testing.T) {
	inGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, func(t *testing.T, s *stage) {
		in := inGroup("m1", "1", "g", "hello")
		in.Mentioned, in.ChatName = true, "Garden club"
		s.say(t, in)
		chats, err := s.Book.Chats(t.Context())
		if err != nil || len(chats) != 1 || chats[0].Name != "Garden club" || !chats[0].Group || chats[0].Person != "" {
			t.Errorf("the chats are %+v, %v", chats, err)
		}
	})
}
