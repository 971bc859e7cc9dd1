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

// A threaded channel is a platform with threads that can be read.
type threaded struct {
	*channelstest.MemoryChannel
	before []bus.Quote
	fails  error
	asked  []int
	joined bool // the last was asked for also where the bot is
}

func (p *threaded) MessagesBefore(_ context.Context, _ bus.Inbound, most int, joined bool) ([]bus.Quote, error) {
	p.asked, p.joined = append(p.asked, most), joined
	return p.before, p.fails
}

func inThread(id, user, text string) bus.Inbound {
	in := stagetest.Said(id, user, text)
	in.Group, in.At.Chat, in.At.Thread = true, "room", "5"
	return in
}

func TestWhatWasSaidBeforeComesAlongAsQuotes(t *testing.T) {
	p, history := &threaded{}, 20
	for i := range 30 {
		p.before = append(p.before, bus.Quote{Kind: bus.Earlier, Text: fmt.Sprint(i, " ") + strings.Repeat("é", 1000)})
	}
	p.before[29].Text = strings.Repeat("long ", 1000)
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, func(s *stage, g *gateway.Gateway) {
		p.MemoryChannel = s.Platform
		g.Channel, g.History = p, func() int { return history }
	}, func(t *testing.T, s *stage) {
		s.say(t, inThread("a", "7", "a stranger's"))
		s.say(t, inThread("b", "1", "/status"))
		alone := stagetest.Said("c", "1", "alone")
		s.say(t, alone)
		if len(p.asked) > 0 {
			t.Errorf("a thread was read %d times for what needs nothing of it", len(p.asked))
		}
		called := inThread("d", "1", "what is this?")
		called.Quotes = []bus.Quote{{Kind: bus.Forwarded, Text: "own"}}
		s.say(t, called)
		p.before, p.fails = nil, &channels.SendError{Fault: channels.Rejected, Code: "missing_scope", Err: errors.New("no")}
		s.say(t, inThread("e", "1", "and this?"))
		history = 0
		s.say(t, inThread("f", "1", "and that?"))
		mail := map[string]bus.Inbound{}
		for _, in := range s.Mail(t) {
			mail[in.ID] = in
		}
		got := mail["d"].Quotes
		if len(p.asked) != 2 || p.asked[0] != 20 || len(got) != 12 || !strings.HasPrefix(got[0].Text, "19 ") || got[11].Text != "own" {
			t.Fatalf("asked %v, %d quotes, the first %.10q", p.asked, len(got), got[0].Text)
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

// Who calls another agent into a thread has it read what was said there before it; what
// follows reads nothing again.
func TestAnAgentWhoIsCalledIntoAThreadReadsIt(t *testing.T) {
	p := &threaded{before: []bus.Quote{{Kind: bus.Earlier, Text: "the disk is full"}}}
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "open"}, func(s *stage, g *gateway.Gateway) {
		twoAgents(nil)(s, g)
		p.MemoryChannel = s.Platform
		g.Channel, g.History = p, func() int { return 20 }
	}, func(t *testing.T, s *stage) {
		for _, c := range []struct {
			text   string
			joined bool
		}{{"hello", false}, {"ops look at this", true}, {"and this", false}, {"ops and this", false}} {
			s.say(t, inThread("m "+c.text, "1", c.text))
			if p.joined != c.joined {
				t.Errorf("%q: the thread is read where the bot is already: %v, want %v", c.text, p.joined, c.joined)
			}
		}
	})
}
