package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"parley/bus"
	"parley/bus/bustest"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// twoAgents makes a gateway of a place in which people talk with the agent main, and by the
// word ops with the agent ops.
func twoAgents(knows func(session, message string) bool) func(*stage, *gateway.Gateway) {
	return func(_ *stage, g *gateway.Gateway) {
		g.Route = func(_ context.Context, in bus.Inbound) (gateway.RouteResult, error) {
			first, other := "main:c:"+in.At.Chat, "ops:c:"+in.At.Chat
			if rest, ok := strings.CutPrefix(in.Text, "ops "); ok {
				return gateway.RouteResult{Session: other, Text: rest, Named: true, Others: []string{first}}, nil
			}
			return gateway.RouteResult{Session: first, Text: in.Text, Others: []string{other}}, nil
		}
		g.Knows = func(_ context.Context, session, message string) (bool, error) {
			return knows != nil && knows(session, message), nil
		}
	}
}

// mailbox takes what waits in each session off the bus, as ID=text, in order of the sessions.
func (s *stage) mailbox(t *testing.T) string {
	t.Helper()
	var all []string
	for _, m := range bustest.Take(t, s.Bus, bus.InboundTopic) {
		in, err := bus.DecodeInbound(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		id, _, derived := strings.Cut(in.ID, "#")
		if derived {
			id += "#"
		}
		all = append(all, m.Key+" "+id+"="+in.Kind+":"+in.Text)
	}
	slices.Sort(all)
	return strings.Join(all, "|")
}

// The word that names an agent is taken off what is published, in front of commands too, and
// makes a thread that agent's.
func TestAMessageNamesItsAgent(t *testing.T) {
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "open"}, twoAgents(nil), func(t *testing.T, s *stage) {
		s.say(t, inGroup("m1", "1", "g", "ops is it up?"))
		s.say(t, inGroup("m2", "1", "g", "hello"))
		s.say(t, inGroup("m3", "1", "g", "ops /new"))
		if got, want := s.mailbox(t), "main:c:g m2=said:hello|ops:c:g m1=said:is it up?|ops:c:g m3=command:new"; got != want {
			t.Errorf("published %q, want %q", got, want)
		}
		at := bus.Address{Channel: "c", Chat: "g", Thread: "7"}
		for _, c := range []struct{ text, want string }{{"hello", "main:c:g"}, {"ops hello", "ops:c:g"}, {"and then?", "ops:c:g"}} {
			in := inGroup("t "+c.text, "1", "g", c.text)
			in.At = at
			s.say(t, in)
			if session, err := s.Book.SessionAt(t.Context(), at); session != c.want || err != nil {
				t.Errorf("after %q the thread is of %q, %v; want %q", c.text, session, err, c.want)
			}
		}
	})
}

// /stop without an agent's name stops whoever is at work in the place; with the name it stops
// that one.
func TestStopReachesWhoIsAtWork(t *testing.T) {
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "open"}, twoAgents(nil), func(t *testing.T, s *stage) {
		s.say(t, inGroup("m1", "1", "g", "ops is it up?"))
		s.say(t, inGroup("m2", "1", "g", "/stop"))
		s.say(t, inGroup("m3", "1", "h", "/stop"))
		for _, chat := range []string{"i", "j"} {
			s.say(t, inGroup(chat+"1", "1", chat, "hello"))
			s.say(t, inGroup(chat+"2", "1", chat, "ops hello"))
		}
		s.say(t, inGroup("i3", "1", "i", "/stop"))
		s.say(t, inGroup("j3", "1", "j", "ops /stop"))
		silent := inGroup("g4", "1", "g", "/stop")
		silent.Mentioned = false
		s.say(t, silent)
		want := "main:c:h m3=command:stop|main:c:i i1=said:hello|main:c:i i3=command:stop|main:c:j j1=said:hello|" +
			"ops:c:g g4#=command:stop|ops:c:g m1=said:is it up?|ops:c:g m2#=command:stop|ops:c:i i2=said:hello|ops:c:i i3#=command:stop|ops:c:j j2=said:hello|ops:c:j j3=command:stop"
		if got := s.mailbox(t); got != want {
			t.Errorf("published\n%s, want\n%s", strings.ReplaceAll(got, "|", "\n"), strings.ReplaceAll(want, "|", "\n"))
		}
	})
}

// An edit reaches the session that knows the message, whichever agent its words name now;
// before any does, it reaches those among whose mail the message may be.
func TestChangesFindTheAgentsSession(t *testing.T) {
	knows := func(session, message string) bool { return session == "ops:c:g" && message == "known" }
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "open"}, twoAgents(knows), func(t *testing.T, s *stage) {
		edit := func(id, chat, text, of string) {
			t.Helper()
			in := stagetest.Said(id, "1", text)
			in.Kind, in.Of, in.Group, in.At.Chat = bus.Edited, of, true, chat
			s.say(t, in)
		}
		edit("e1", "g", "ops is it down?", "known")
		edit("e2", "g", "is it down?", "known")
		edit("e3", "h", "never heard of", "m0")
		gone := stagetest.Said("e4", "", "")
		s.say(t, inGroup("m1", "1", "i", "ops hello"))
		edit("e5", "i", "ops good day", "m1")
		gone.Kind, gone.Of, gone.Group, gone.At.Chat, gone.From = bus.Deleted, "m1", true, "i", bus.Person{}
		s.say(t, gone)
		want := "ops:c:g e1=edited:is it down?|ops:c:g e2#=edited:is it down?|ops:c:i e4#=deleted:|ops:c:i e5=edited:good day|ops:c:i m1=said:hello"
		if got := s.mailbox(t); got != want {
			t.Errorf("published\n%s, want\n%s", strings.ReplaceAll(got, "|", "\n"), strings.ReplaceAll(want, "|", "\n"))
		}
	})
}
