package gateway_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/channelstest"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

func wantReactions(t *testing.T, p *channelstest.ReactingChannel, want ...string) {
	t.Helper()
	if got := p.Reactions(); !slices.Equal(got, want) {
		t.Errorf("reactions %q, want %q", got, want)
	}
}

func TestPublishedMessagesAreMarkedAsSeen(t *testing.T) {
	reacts := &channelstest.ReactingChannel{}
	setup := func(s *testStage, g *gateway.Gateway) {
		reacts.MemoryChannel = s.Platform
		g.Channel = reacts
	}
	withConfiguredGateway(t, bus.Caps{Inbound: 2}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, setup, func(t *testing.T, s *testStage) {
		s.receive(t, stagetest.PrivateMessage("stranger", "2", "hello"))
		s.receive(t, stagetest.PrivateMessage("command", "1", "/status"))
		s.receive(t, stagetest.PrivateMessage("first", "1", "hello"))
		s.receive(t, stagetest.PrivateMessage("full", "1", "hello"))
		wantReactions(t, reacts, "seen first at c:1", "failed full at c:1")
	})
}

func TestAHangingReactionDelaysNothing(t *testing.T) {
	reacts := &channelstest.ReactingChannel{}
	setup := func(s *testStage, g *gateway.Gateway) {
		reacts.MemoryChannel = s.Platform
		reacts.OnReact = func(string, string) error {
			time.Sleep(time.Hour) // in the bubble's fake time
			return errors.New("no")
		}
		g.Channel = reacts
	}
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, setup, func(t *testing.T, s *testStage) {
		began := time.Now()
		for i := range 300 {
			s.receive(t, stagetest.PrivateMessage(fmt.Sprint("m", i), "1", "hello"))
		}
		if time.Since(began) > 0 {
			t.Errorf("messages waited for %v", time.Since(began))
		}
	})
}
