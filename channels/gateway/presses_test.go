package gateway_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// pressInGroup returns the press of a button in a group.
func pressInGroup(id, user, says string) bus.Inbound {
	in := stagetest.PrivateMessage(id, user, says)
	in.Group, in.Mentioned, in.Pressed, in.At.Chat, in.ReplyTo = true, true, true, "group", "7"
	return in
}

func TestAPressIsACommandOfAnAdmittedPerson(t *testing.T) {
	access := gateway.Access{Policy: "list", AllowFrom: []string{"2"}, Owners: []string{"1"}, Approvers: []string{"3"}}
	withGateway(t, bus.Caps{}, access, func(t *testing.T, s *testStage) {
		for _, user := range []string{"1", "2", "3"} {
			s.receive(t, pressInGroup("p"+user, user, "/approve abc"))
		}
		if err := s.Platform.Say(t.Context(), pressInGroup("p4", "4", "/approve abc")); !errors.Is(err, channels.ErrNotAdmitted) {
			t.Errorf("a stranger's press gave %v", err)
		}
		s.receive(t, pressInGroup("p5", "1", "what no button of ours says"))
		lost := pressInGroup("p6", "1", "/approve abc")
		lost.At.Chat = "nowhere"
		s.receive(t, lost)
		synctest.Wait()
		mail := s.TakeMail(t)
		if len(mail) != 3 {
			t.Fatalf("published %+v", mail)
		}
		for i, in := range mail {
			if in.Kind != bus.Command || in.Text != "approve" || in.Args != "abc" || !in.Pressed || in.ReplyTo != "7" {
				t.Errorf("published %+v", in)
			}
			if in.From.Owner != (i == 0) || in.From.Approver != (i == 2) {
				t.Errorf("%s is owner %v, approver %v", in.From.ID, in.From.Owner, in.From.Approver)
			}
		}
		if told := s.Platform.Texts("group"); len(told) != 0 {
			t.Errorf("the group was told %q", told)
		}
		if told := s.Platform.Texts("nowhere"); len(told) != 1 {
			t.Errorf("where no session is, people were told %q", told)
		}
		if chats, err := s.Book.Chats(t.Context()); err != nil || len(chats) != 0 {
			t.Errorf("noted %+v, %v", chats, err)
		}
	})
}

// A button for a command about a person's own data works for every admitted person, and the command goes to no
// session.
func TestAPressAboutOwnData(t *testing.T) {
	var taken []bus.Inbound
	take := func(_ *testStage, g *gateway.Gateway) {
		g.OwnData = func(_ context.Context, in bus.Inbound) error {
			taken = append(taken, in)
			return nil
		}
	}
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"2"}, Owners: []string{"1"}}, take, func(t *testing.T, s *testStage) {
		for _, user := range []string{"1", "2"} {
			s.receive(t, pressInGroup("p"+user, user, "/memory keep abc"))
		}
		if err := s.Platform.Say(t.Context(), pressInGroup("p4", "4", "/memory keep abc")); !errors.Is(err, channels.ErrNotAdmitted) {
			t.Errorf("a stranger's press gave %v", err)
		}
		if mail := s.TakeMail(t); len(mail) > 0 || len(taken) != 2 {
			t.Fatalf("published %+v, taken %+v", mail, taken)
		}
		for i, in := range taken {
			if in.Kind != bus.Command || in.Text != "memory" || in.Args != "keep abc" || !in.Pressed || in.From.Owner != (i == 0) {
				t.Errorf("taken %+v", in)
			}
		}
	})
}
