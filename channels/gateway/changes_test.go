package gateway_test

import (
	"context"
	"testing"

	"parley/bus"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// Of what was never published nothing is published when it changes, and strangers change
// nothing; nobody is told so.
func TestChangesOfWhatIsKnown(t *testing.T) {
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, func(_ *stage, g *gateway.Gateway) {
		g.Knows = func(_ context.Context, session, message string) (bool, error) { return message == "known", nil }
	}, func(t *testing.T, s *stage) {
		change := func(id, user, kind, of string) {
			t.Helper()
			in := stagetest.Said(id, user, "my secret plan")
			in.Kind, in.Of, in.Group, in.At.Chat = kind, of, true, "room"
			s.say(t, in)
		}
		change("a", "1", bus.Edited, "unknown")
		change("b", "1", bus.Deleted, "unknown")
		change("c", "7", bus.Edited, "known")
		if d := s.Depth(t, bus.InboundTopic); d.Waiting != 0 || len(s.Platform.Sent()) > 0 {
			t.Fatalf("something was published or answered: %+v", d)
		}
		change("d", "1", bus.Edited, "known")
		change("e", "1", bus.Deleted, "known")
		change("f", "1", bus.Edited, "waits") // something does
		if d := s.Depth(t, bus.InboundTopic); d.Waiting != 3 || len(s.Platform.Sent()) > 0 {
			t.Errorf("then %+v", d)
		}
	})
}
