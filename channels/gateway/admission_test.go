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

// posted takes what was published to go out off the bus, by chat.
func (s *stage) posted(t *testing.T) map[string][]bus.Outbound {
	t.Helper()
	all := map[string][]bus.Outbound{}
	for _, out := range bustest.TakeOutbound(t, s.Bus, "c") {
		all[out.To.Chat] = append(all[out.To.Chat], out)
	}
	return all
}

func TestTheOwnerHearsOfARequestAndTheAdmittedOfTheirAdmission(t *testing.T) {
	inGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *stage) {
		own(t, s, "1")
		admit(t, s, "2")
		if got := s.posted(t); len(got["2"]) != 1 || !strings.Contains(got["2"][0].Text, "can talk to me now") || len(got["1"]) != 1 {
			t.Fatalf("posted %+v", got)
		}
		for i := range 3 {
			s.say(t, stagetest.Said(fmt.Sprint("a", i), "7", "my secret plan"))
		}
		got := s.posted(t)
		code := pending(t, s, "c:7")
		if len(got) != 1 || len(got["1"]) != 1 || !strings.Contains(got["1"][0].Text, "`c:7`") || !strings.Contains(got["1"][0].Text, "parley pairing approve "+code) ||
			strings.Contains(got["1"][0].Text, "secret") {
			t.Fatalf("posted %+v", got)
		}
		time.Sleep(2 * time.Hour)
		s.say(t, stagetest.Said("b", "7", "and now?"))
		if got := s.posted(t); len(got) > 0 {
			t.Errorf("the same day posted %+v", got)
		}
		if _, err := s.Book.Admit(t.Context(), channels.Admission{Code: pending(t, s, "c:7")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := s.posted(t); len(got) != 1 || len(got["7"]) != 1 || got["7"][0].Session != "" {
			t.Errorf("posted %+v", got)
		}
		time.Sleep(time.Hour)
		for i := range 20 {
			s.say(t, stagetest.Said(fmt.Sprint("flood", i), fmt.Sprint(100+i), "hello"))
		}
		if got := s.posted(t); len(got) != 1 || len(got["1"]) > 5 {
			t.Errorf("of a flood posted %+v", got)
		}
	})
}

func own(t *testing.T, s *stage, user string) {
	t.Helper()
	code, err := s.Book.OfferOwner(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	s.say(t, stagetest.Said("own"+user, user, code))
}

func pending(t *testing.T, s *stage, person string) string {
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

func admit(t *testing.T, s *stage, user string) {
	t.Helper()
	s.say(t, stagetest.Said("ask"+user, user, "hello"))
	if _, err := s.Book.Admit(t.Context(), channels.Admission{Code: pending(t, s, "c:"+user)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

// An owner whom only the configuration knows is told where they have talked to
// the bot alone; and a code owns nothing where the configuration has owners.
func TestAnOwnerOfTheConfiguration(t *testing.T) {
	inGateway(t, bus.Caps{}, gateway.Access{Owners: []string{"1"}}, func(t *testing.T, s *stage) {
		own(t, s, "2")
		if _, ok, err := s.Book.FindPairing(t.Context(), "c:2"); ok || err != nil {
			t.Errorf("a code made an owner beside that of the configuration, %v", err)
		}
		s.say(t, stagetest.Said("hi", "1", "hello"))
		s.say(t, stagetest.Said("ask", "7", "hello"))
		if got := s.posted(t); len(got) != 1 || len(got["1"]) != 1 {
			t.Errorf("posted %+v", got)
		}
	})
}

func TestStopWithoutAMentionWhereTheBotIsAtWork(t *testing.T) {
	inGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, func(t *testing.T, s *stage) {
		in := func(id, user, text string, mentioned bool) bus.Inbound {
			m := stagetest.Said(id, user, text)
			m.Group, m.Mentioned, m.At.Chat = true, mentioned, "group"
			return m
		}
		s.say(t, in("a", "1", "/stop", false)) // nothing runs
		s.say(t, in("b", "1", "work", true))
		for id, text := range map[string]string{"c": "stop", "d": "/status", "e": "/stop the car", "f": "/new"} {
			s.say(t, in(id, "1", text, false))
		}
		s.say(t, in("g", "2", "/stop", false))
		s.say(t, in("h", "1", "/stop", false))
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
		s.say(t, in("i", "1", "/stop", false)) // while it is leased
		if err := lease.Settle(t.Context(), bus.End{Done: mail[1].Seq + 1}); err != nil {
			t.Fatal(err)
		}
		s.say(t, in("j", "1", "/stop", false))
		if d := s.Depth(t, bus.InboundTopic); d.Waiting != 0 {
			t.Errorf("left %+v", d)
		}
	})
}

// Who reads who is paired, and where the bot is spoken to, reads names.
func TestTheBookLearnsNames(t *testing.T) {
	inGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *stage) {
		say := func(id, person, name string) {
			in := stagetest.Said(id, person, "hello")
			in.From.Name = name
			s.say(t, in)
			s.posted(t)
		}
		say("a", "7", "Ada")
		pairings, err := s.Book.Pairings(t.Context())
		if err != nil || len(pairings) != 1 || pairings[0].Name != "Ada" {
			t.Fatalf("pairings are %+v, %v", pairings, err)
		}
		if _, err := s.Book.Admit(t.Context(), channels.Admission{Code: pending(t, s, "c:7")}); err != nil {
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
