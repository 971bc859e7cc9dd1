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

// groupMessage returns a message to the bot in a group.
func groupMessage(id, user, chat, text string) bus.Inbound {
	in := stagetest.PrivateMessage(id, user, text)
	in.Group, in.Mentioned, in.At.Chat = true, true, chat
	return in
}

func TestTheBotListensOnlyInListedChats(t *testing.T) {
	access := gateway.Access{Policy: "open", Owners: []string{"1"}, Chats: []gateway.ListenedGroup{{ID: "yes"}}}
	withGateway(t, bus.Caps{}, access, func(t *testing.T, s *testStage) {
		s.receive(t, groupMessage("m1", "1", "no", "hello"))
		s.receive(t, groupMessage("m2", "1", "no", "/status"))
		button := pressInGroup("m3", "1", "/approve abc")
		button.At.Chat = "no"
		s.receive(t, button)
		if mail := s.TakeMail(t); len(mail) != 0 {
			t.Errorf("of a chat that is not listed %+v was published", mail)
		}
		if chats, err := s.Book.Chats(t.Context()); err != nil || len(chats) != 0 {
			t.Errorf("it was noted: %+v, %v", chats, err)
		}
		if told := s.Platform.Texts("no"); len(told) != 0 {
			t.Errorf("it was told %q", told)
		}
		s.receive(t, groupMessage("m4", "1", "yes", "hello"))
		s.receive(t, stagetest.PrivateMessage("m5", "9", "in private"))
		if mail := s.TakeMail(t); len(mail) != 2 || mail[0].ID != "m4" || mail[1].ID != "m5" {
			t.Errorf("published %+v", mail)
		}
		access.Chats = append(access.Chats, gateway.ListenedGroup{ID: "no"})
		s.gate.Set(access) // as after SIGHUP
		s.receive(t, groupMessage("m6", "1", "no", "hello"))
		if mail := s.TakeMail(t); len(mail) != 1 || mail[0].ID != "m6" {
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
	gate.Set(gateway.Access{Mention: channels.MentionAlways, Chats: []gateway.ListenedGroup{{ID: "a"}, {ID: "b", Mention: channels.MentionNever}}})
	want("a", channels.MentionAlways)
	want("b", channels.MentionNever)
	want("c", channels.MentionNowhere)
}

// A message that can't be accepted now is passed on again: it is neither answered nor lost.
func TestAMessageThatCannotBeAcceptedNowIsPassedOnAgain(t *testing.T) {
	away := true
	setup := func(_ *testStage, g *gateway.Gateway) {
		g.Route = func(_ context.Context, in bus.Inbound) (gateway.RouteResult, error) {
			if away {
				return gateway.RouteResult{}, gateway.ErrNotNow
			}
			return gateway.RouteResult{Session: "main:" + in.At.String()}, nil
		}
	}
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, setup, func(t *testing.T, s *testStage) {
		said := []bus.Inbound{groupMessage("m1", "1", "g", "hello"), groupMessage("m2", "1", "g", "/approve "+strings.Repeat("a", bus.AskIDLength)), pressInGroup("m3", "1", "/approve abc")}
		said[1].Mentioned = false // answers an ask by its id
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
			s.receive(t, in)
		}
		if mail := s.TakeMail(t); len(mail) != 3 {
			t.Errorf("published %+v", mail)
		}
	})
}

// The chats are listed with the groups' names on the platform.
func TestGroupsAreRecordedWithTheirNames(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, func(t *testing.T, s *testStage) {
		in := groupMessage("m1", "1", "g", "hello")
		in.Mentioned, in.ChatName = true, "Garden club"
		s.receive(t, in)
		chats, err := s.Book.Chats(t.Context())
		if err != nil || len(chats) != 1 || chats[0].Name != "Garden club" || !chats[0].Group || chats[0].Person != "" {
			t.Errorf("the chats are %+v, %v", chats, err)
		}
	})
}
