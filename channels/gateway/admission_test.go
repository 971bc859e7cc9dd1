package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/channels"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// takeOutbound removes the messages that wait to be sent from the bus, and returns them by chat.
func (s *testStage) takeOutbound(t *testing.T) map[string][]bus.Outbound {
	t.Helper()
	all := map[string][]bus.Outbound{}
	for _, out := range bustest.TakeOutbound(t, s.Bus, "c") {
		all[out.To.Chat] = append(all[out.To.Chat], out)
	}
	return all
}

func TestOwnersAreToldOfRequestsAndPeopleOfTheirAdmission(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		makeOwner(t, s, "1")
		admitPerson(t, s, "2")
		if got := s.takeOutbound(t); len(got["2"]) != 1 || !strings.Contains(got["2"][0].Text, "can talk to me now") || len(got["1"]) != 1 {
			t.Fatalf("posted %+v", got)
		}
		for i := range 3 {
			s.receive(t, stagetest.PrivateMessage(fmt.Sprint("a", i), "7", "my secret plan"))
		}
		got := s.takeOutbound(t)
		code := requestCode(t, s, "c:7")
		if len(got) != 1 || len(got["1"]) != 1 || !strings.Contains(got["1"][0].Text, "`c:7`") || !strings.Contains(got["1"][0].Text, "parley pairing approve "+code) ||
			strings.Contains(got["1"][0].Text, "secret") {
			t.Fatalf("posted %+v", got)
		}
		time.Sleep(2 * time.Hour)
		s.receive(t, stagetest.PrivateMessage("b", "7", "and now?"))
		if got := s.takeOutbound(t); len(got) > 0 {
			t.Errorf("the same day posted %+v", got)
		}
		if _, err := s.Book.Admit(t.Context(), channels.Admission{Code: requestCode(t, s, "c:7")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := s.takeOutbound(t); len(got) != 1 || len(got["7"]) != 1 || got["7"][0].Session != "" {
			t.Errorf("posted %+v", got)
		}
		time.Sleep(time.Hour)
		for i := range 20 {
			s.receive(t, stagetest.PrivateMessage(fmt.Sprint("flood", i), fmt.Sprint(100+i), "hello"))
		}
		if got := s.takeOutbound(t); len(got) != 1 || len(got["1"]) > 5 {
			t.Errorf("of a flood posted %+v", got)
		}
	})
}

func makeOwner(t *testing.T, s *testStage, user string) {
	t.Helper()
	code, err := s.Book.OfferOwner(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	s.receive(t, stagetest.PrivateMessage("own"+user, user, code))
}

func requestCode(t *testing.T, s *testStage, person string) string {
	t.Helper()
	pairings, err := s.Book.Pairings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pairings {
		if p.Person == person {
			return p.Code
		}
	}
	return ""
}

func admitPerson(t *testing.T, s *testStage, user string) {
	t.Helper()
	s.receive(t, stagetest.PrivateMessage("ask"+user, user, "hello"))
	if _, err := s.Book.Admit(t.Context(), channels.Admission{Code: requestCode(t, s, "c:"+user)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

// An owner who is named only in the settings is told of requests in the private chat in which they have talked
// to the bot. If the settings name owners, an owner's code has no effect.
func TestAnOwnerOfTheConfiguration(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{Owners: []string{"1"}}, func(t *testing.T, s *testStage) {
		makeOwner(t, s, "2")
		if _, ok, err := s.Book.FindPairing(t.Context(), "c:2"); ok || err != nil {
			t.Errorf("a code made an owner beside that of the configuration, %v", err)
		}
		s.receive(t, stagetest.PrivateMessage("hi", "1", "hello"))
		s.receive(t, stagetest.PrivateMessage("ask", "7", "hello"))
		if got := s.takeOutbound(t); len(got) != 1 || len(got["1"]) != 1 {
			t.Errorf("posted %+v", got)
		}
	})
}

func TestStopWithoutAMentionWhereTheBotIsAtWork(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, func(t *testing.T, s *testStage) {
		in := func(id, user, text string, mentioned bool) bus.Inbound {
			m := stagetest.PrivateMessage(id, user, text)
			m.Group, m.Mentioned, m.At.Chat = true, mentioned, "group"
			return m
		}
		s.receive(t, in("a", "1", "/stop", false)) // nothing is running
		s.receive(t, in("b", "1", "work", true))
		for id, text := range map[string]string{"c": "stop", "d": "/status", "e": "/stop the car", "f": "/new"} {
			s.receive(t, in(id, "1", text, false))
		}
		s.receive(t, in("g", "2", "/stop", false))
		s.receive(t, in("h", "1", "/stop", false))
		lease, err := s.Bus.Claim(t.Context(), bus.InboundTopic)
		if err != nil {
			t.Fatal(err)
		}
		mail, err := lease.Mail(t.Context(), 0)
		if err != nil || len(mail) != 2 || mail[0].ID != "b" || mail[1].ID != "h" || !mail[1].Urgent {
			t.Fatalf("published %+v, %v", mail, err)
		}
		if stop, err := bus.DecodeInbound(mail[1].Body); err != nil || stop.Kind != bus.Command || stop.Mentioned || !stop.Group {
			t.Errorf("%+v, %v", stop, err)
		}
		s.receive(t, in("i", "1", "/stop", false)) // while the session is leased
		if err := lease.Settle(t.Context(), bus.End{Done: mail[1].Seq + 1}); err != nil {
			t.Fatal(err)
		}
		s.receive(t, in("j", "1", "/stop", false))
		if d := s.TopicDepth(t, bus.InboundTopic); d.Waiting != 0 {
			t.Errorf("left %+v", d)
		}
	})
}

// The book stores people's and groups' names, for whoever lists the pairings and the chats.
func TestNamesAreRecordedInTheBook(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		say := func(id, person, name string) {
			in := stagetest.PrivateMessage(id, person, "hello")
			in.From.Name = name
			s.receive(t, in)
			s.takeOutbound(t)
		}
		say("a", "7", "Ada")
		pairings, err := s.Book.Pairings(t.Context())
		if err != nil || len(pairings) != 1 || pairings[0].Name != "Ada" {
			t.Fatalf("pairings are %+v, %v", pairings, err)
		}
		if _, err := s.Book.Admit(t.Context(), channels.Admission{Code: requestCode(t, s, "c:7")}); err != nil {
			t.Fatal(err)
		}
		say("b", "7", "Ada Lovelace")
		chats, err := s.Book.Chats(t.Context())
		if err != nil || len(chats) != 1 || chats[0].Person != "c:7" || chats[0].Name != "Ada Lovelace" {
			t.Errorf("chats are %+v, %v", chats, err)
		}
		if p, _, err := s.Book.FindPairing(t.Context(), "c:7"); err != nil || p.Name != "Ada Lovelace" {
			t.Errorf("the pairing is %+v, %v", p, err)
		}
	})
}
