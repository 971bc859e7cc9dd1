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

// routeTwoAgents configures a gateway so that people talk to the agent main and, with the word ops in front, to
// the agent ops.
func routeTwoAgents(knows func(session, message string) bool) func(*testStage, *gateway.Gateway) {
	return func(_ *testStage, g *gateway.Gateway) {
		g.Route = func(_ context.Context, in bus.Inbound) (gateway.RouteResult, error) {
			first, other := "main:c:"+in.At.Chat, "ops:c:"+in.At.Chat
			if rest, ok := strings.CutPrefix(in.Text, "ops "); ok {
				return gateway.RouteResult{Session: other, Text: rest, NamesAgent: true, OtherSessions: []string{first}}, nil
			}
			return gateway.RouteResult{Session: first, Text: in.Text, OtherSessions: []string{other}}, nil
		}
		g.KnowsMessage = func(_ context.Context, session, message string) (bool, error) {
			return knows != nil && knows(session, message), nil
		}
	}
}

// takeMail removes the messages that wait in each session from the bus, and returns them as ID=text, sorted by
// session.
func (s *testStage) takeMail(t *testing.T) string {
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

// The word that names an agent is removed from the published text, even before a command. In a thread, it also
// assigns the thread to that agent.
func TestAMessageNamesItsAgent(t *testing.T) {
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, routeTwoAgents(nil), func(t *testing.T, s *testStage) {
		s.receive(t, groupMessage("m1", "1", "g", "ops is it up?"))
		s.receive(t, groupMessage("m2", "1", "g", "hello"))
		s.receive(t, groupMessage("m3", "1", "g", "ops /new"))
		if got, want := s.takeMail(t), "main:c:g m2=said:hello|ops:c:g m1=said:is it up?|ops:c:g m3=command:new"; got != want {
			t.Errorf("published %q, want %q", got, want)
		}
		at := bus.Address{Channel: "c", Chat: "g", Thread: "7"}
		for _, c := range []struct{ text, want string }{{"hello", "main:c:g"}, {"ops hello", "ops:c:g"}, {"and then?", "ops:c:g"}} {
			in := groupMessage("t "+c.text, "1", "g", c.text)
			in.At = at
			s.receive(t, in)
			if session, err := s.Book.SessionAt(t.Context(), at); session != c.want || err != nil {
				t.Errorf("after %q the thread is of %q, %v; want %q", c.text, session, err, c.want)
			}
		}
	})
}

// /stop without an agent's name stops all agents that work in the place; with a name, only that one.
func TestStopReachesTheWorkingAgents(t *testing.T) {
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, routeTwoAgents(nil), func(t *testing.T, s *testStage) {
		s.receive(t, groupMessage("m1", "1", "g", "ops is it up?"))
		s.receive(t, groupMessage("m2", "1", "g", "/stop"))
		s.receive(t, groupMessage("m3", "1", "h", "/stop"))
		for _, chat := range []string{"i", "j"} {
			s.receive(t, groupMessage(chat+"1", "1", chat, "hello"))
			s.receive(t, groupMessage(chat+"2", "1", chat, "ops hello"))
		}
		s.receive(t, groupMessage("i3", "1", "i", "/stop"))
		s.receive(t, groupMessage("j3", "1", "j", "ops /stop"))
		silent := groupMessage("g4", "1", "g", "/stop")
		silent.Mentioned = false
		s.receive(t, silent)
		want := "main:c:h m3=command:stop|main:c:i i1=said:hello|main:c:i i3=command:stop|main:c:j j1=said:hello|" +
			"ops:c:g g4#=command:stop|ops:c:g m1=said:is it up?|ops:c:g m2#=command:stop|ops:c:i i2=said:hello|ops:c:i i3#=command:stop|ops:c:j j2=said:hello|ops:c:j j3=command:stop"
		if got := s.takeMail(t); got != want {
			t.Errorf("published\n%s, want\n%s", strings.ReplaceAll(got, "|", "\n"), strings.ReplaceAll(want, "|", "\n"))
		}
	})
}

// An edit goes to the session that knows the message, no matter which agent its text names now. If none does,
// it goes to the sessions with waiting mail.
func TestChangesFindTheAgentsSession(t *testing.T) {
	knows := func(session, message string) bool { return session == "ops:c:g" && message == "known" }
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, routeTwoAgents(knows), func(t *testing.T, s *testStage) {
		edit := func(id, chat, text, of string) {
			t.Helper()
			in := stagetest.PrivateMessage(id, "1", text)
			in.Kind, in.Of, in.Group, in.At.Chat = bus.Edited, of, true, chat
			s.receive(t, in)
		}
		edit("e1", "g", "ops is it down?", "known")
		edit("e2", "g", "is it down?", "known")
		edit("e3", "h", "never heard of", "m0")
		gone := stagetest.PrivateMessage("e4", "", "")
		s.receive(t, groupMessage("m1", "1", "i", "ops hello"))
		edit("e5", "i", "ops good day", "m1")
		gone.Kind, gone.Of, gone.Group, gone.At.Chat, gone.From = bus.Deleted, "m1", true, "i", bus.Person{}
		s.receive(t, gone)
		want := "ops:c:g e1=edited:is it down?|ops:c:g e2#=edited:is it down?|ops:c:i e4#=deleted:|ops:c:i e5=edited:good day|ops:c:i m1=said:hello"
		if got := s.takeMail(t); got != want {
			t.Errorf("published\n%s, want\n%s", strings.ReplaceAll(got, "|", "\n"), strings.ReplaceAll(want, "|", "\n"))
		}
	})
}
