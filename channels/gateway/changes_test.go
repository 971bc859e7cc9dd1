package gateway_test

import (
	"context"
	"testing"

	"parley/bus"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// If a message was never published, its changes are not published either. Changes by strangers have no effect.
// Nobody is told of that.
func TestOnlyChangesOfKnownMessagesArePublished(t *testing.T) {
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, func(_ *testStage, g *gateway.Gateway) {
		g.KnowsMessage = func(_ context.Context, session, message string) (bool, error) { return message == "known", nil }
	}, func(t *testing.T, s *testStage) {
		change := func(id, user, kind, of string) {
			t.Helper()
			in := stagetest.PrivateMessage(id, user, "my secret plan")
			in.Kind, in.Of, in.Group, in.At.Chat = kind, of, true, "room"
			s.receive(t, in)
		}
		change("a", "1", bus.Edited, "unknown")
		change("b", "1", bus.Deleted, "unknown")
		change("c", "7", bus.Edited, "known")
		if d := s.TopicDepth(t, bus.InboundTopic); d.Waiting != 0 || len(s.Platform.Sent()) > 0 {
			t.Fatalf("something was published or answered: %+v", d)
		}
		change("d", "1", bus.Edited, "known")
		change("e", "1", bus.Deleted, "known")
		change("f", "1", bus.Edited, "waits") // one message is waiting
		if d := s.TopicDepth(t, bus.InboundTopic); d.Waiting != 3 || len(s.Platform.Sent()) > 0 {
			t.Errorf("then %+v", d)
		}
	})
}

// If the platform does not say who wrote a deleted message, the session that knows the message is told, or else
// the sessions with waiting mail.
func TestDeletionsWithoutAnAuthor(t *testing.T) {
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, func(_ *testStage, g *gateway.Gateway) {
		g.FindAuthor = func(_ context.Context, change bus.Inbound) (session, person string, err error) {
			if change.Of != "known" {
				return "", "", nil
			}
			return "main:test:elsewhere", "test:9", nil
		}
	}, func(t *testing.T, s *testStage) {
		remove := func(id, of string) {
			t.Helper()
			in := stagetest.PrivateMessage(id, "", "")
			in.Kind, in.Of, in.Group, in.At.Chat, in.From = bus.Deleted, of, true, "room", bus.Person{}
			s.receive(t, in)
		}
		remove("a", "unknown")
		if d := s.TopicDepth(t, bus.InboundTopic); d.Waiting != 0 {
			t.Fatalf("something was published: %+v", d)
		}
		remove("b", "known")
		lease, err := s.Bus.Claim(t.Context(), bus.InboundTopic)
		if err != nil {
			t.Fatal(err)
		}
		mail, err := lease.Mail(t.Context(), 0)
		if err != nil || len(mail) != 1 {
			t.Fatal(len(mail), err)
		}
		if in, err := bus.DecodeInbound(mail[0].Body); err != nil || lease.Claim().Key != "main:test:elsewhere" || in.From.ID != "test:9" || in.Of != "known" {
			t.Errorf("%s was told %+v, %v", lease.Claim().Key, in, err)
		}
		if err := lease.Settle(t.Context(), bus.End{Done: mail[0].Seq}); err != nil {
			t.Fatal(err)
		}
		said := stagetest.PrivateMessage("c", "1", "my secret plan")
		said.Group, said.Mentioned, said.At.Chat = true, true, "room"
		s.receive(t, said)
		remove("d", "c")
		if d := s.TopicDepth(t, bus.InboundTopic); d.Waiting != 2 {
			t.Errorf("what waits is not told: %+v", d)
		}
	})
}
