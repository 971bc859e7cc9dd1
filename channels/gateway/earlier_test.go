package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// A threadedChannel is a platform with threads whose messages can be read.
type threadedChannel struct {
	*channelstest.MemoryChannel
	earlier  []bus.Quote
	err      error
	askedFor []int
	joined   bool // whether the last call had joined set
}

func (p *threadedChannel) MessagesBefore(_ context.Context, _ bus.Inbound, most int, joined bool) ([]bus.Quote, error) {
	p.askedFor, p.joined = append(p.askedFor, most), joined
	return p.earlier, p.err
}

func threadMessage(id, user, text string) bus.Inbound {
	in := stagetest.PrivateMessage(id, user, text)
	in.Group, in.At.Chat, in.At.Thread = true, "room", "5"
	return in
}

func TestEarlierMessagesAreQuoted(t *testing.T) {
	p, history := &threadedChannel{}, 20
	for i := range 30 {
		p.earlier = append(p.earlier, bus.Quote{Kind: bus.Earlier, Text: fmt.Sprint(i, " ") + strings.Repeat("é", 1000)})
	}
	p.earlier[29].Text = strings.Repeat("long ", 1000)
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, func(s *testStage, g *gateway.Gateway) {
		p.MemoryChannel = s.Platform
		g.Channel, g.HistoryLength = p, func() int { return history }
	}, func(t *testing.T, s *testStage) {
		s.receive(t, threadMessage("a", "7", "a stranger's"))
		s.receive(t, threadMessage("b", "1", "/status"))
		alone := stagetest.PrivateMessage("c", "1", "alone")
		s.receive(t, alone)
		if len(p.askedFor) > 0 {
			t.Errorf("a thread was read %d times for what needs nothing of it", len(p.askedFor))
		}
		called := threadMessage("d", "1", "what is this?")
		called.Quotes = []bus.Quote{{Kind: bus.Forwarded, Text: "own"}}
		s.receive(t, called)
		p.earlier, p.err = nil, &channels.SendError{Fault: channels.Rejected, Code: "missing_scope", Err: errors.New("no")}
		s.receive(t, threadMessage("e", "1", "and this?"))
		history = 0
		s.receive(t, threadMessage("f", "1", "and that?"))
		mail := map[string]bus.Inbound{}
		for _, in := range s.TakeMail(t) {
			mail[in.ID] = in
		}
		got := mail["d"].Quotes
		if len(p.askedFor) != 2 || p.askedFor[0] != 20 || len(got) != 12 || !strings.HasPrefix(got[0].Text, "19 ") || got[11].Text != "own" {
			t.Fatalf("asked %v, %d quotes, the first %.10q", p.askedFor, len(got), got[0].Text)
		}
		if last := got[10].Text; len([]rune(last)) != 1500 || !strings.HasSuffix(last, " […]") {
			t.Errorf("a long message is quoted in %d characters", len([]rune(last)))
		}
		if got := mail["e"].Quotes; len(got) != 1 || !strings.Contains(got[0].Text, "couldn't be read") || got[0].Kind != bus.Earlier {
			t.Errorf("where it cannot be read: %+v", got)
		}
		if got := mail["f"].Quotes; len(got) > 0 {
			t.Errorf("with history = 0: %+v", got)
		}
	})
}

// If a person calls another agent into a thread, that agent reads what was said there before. Later messages
// don't cause another read.
func TestAnotherAgentCalledIntoAThreadReadsIt(t *testing.T) {
	p := &threadedChannel{earlier: []bus.Quote{{Kind: bus.Earlier, Text: "the disk is full"}}}
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, func(s *testStage, g *gateway.Gateway) {
		routeTwoAgents(nil)(s, g)
		p.MemoryChannel = s.Platform
		g.Channel, g.HistoryLength = p, func() int { return 20 }
	}, func(t *testing.T, s *testStage) {
		for _, c := range []struct {
			text   string
			joined bool
		}{{"hello", false}, {"ops look at this", true}, {"and this", false}, {"ops and this", false}} {
			s.receive(t, threadMessage("m "+c.text, "1", c.text))
			if p.joined != c.joined {
				t.Errorf("%q: the thread is read where the bot is already: %v, want %v", c.text, p.joined, c.joined)
			}
		}
	})
}
