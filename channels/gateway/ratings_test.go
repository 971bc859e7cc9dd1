package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// With reactions = "all", the session of an answer is told of reactions other than thumbs, but only of a few by
// each person in a while. Reactions by strangers, or to messages that are not answers, are ignored.
func TestSessionsAreToldOfOtherReactions(t *testing.T) {
	all := false
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1", "2"}}, func(s *testStage, g *gateway.Gateway) {
		g.Ratings, g.AllReactions = s.Book, func() bool { return all }
	}, func(t *testing.T, s *testStage) {
		answer := channels.Send{ID: bus.ReplyID("c:t:room:1"), To: bus.Address{Channel: "c", Chat: "room"}, Session: "main:c:room", Parts: []channels.SentPart{{Text: "x"}}}
		if _, _, err := s.Book.Begin(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
		if err := s.Book.Mark(t.Context(), answer.ID, 0, channels.SentPart{State: channels.Sent, PlatformID: "77"}); err != nil {
			t.Fatal(err)
		}
		n := 0
		react := func(user, of, reaction string, removed bool) {
			t.Helper()
			n++
			in := stagetest.PrivateMessage(fmt.Sprint("r", n), user, "")
			in.Kind, in.Group, in.At.Chat, in.Of, in.Reaction, in.Removed = bus.Reacted, true, "room", "c:t:room:"+of, reaction, removed
			s.receive(t, in)
		}
		react("1", "77", "🎉", false) // the setting is still off
		all = true
		react("1", "78", "🎉", false) // not a reaction to an answer
		react("7", "77", "🎉", false) // a reaction by a stranger
		react("2", "77", ":"+strings.Repeat("x", 100)+":", false)
		react("2", "77", "🎉", true)
		for range 10 {
			react("1", "77", "🎉", false)
		}
		time.Sleep(11 * time.Minute) // in the bubble's fake time
		react("1", "77", "👀", false)
		told := map[string]int{}
		for _, in := range s.TakeMail(t) {
			told[in.From.ID]++
			if in.Kind != bus.Reacted || in.At.Chat != "room" || len([]rune(in.Reaction)) > 41 {
				t.Errorf("told %+v", in)
			}
		}
		if told["c:1"] != 6 || told["c:2"] != 2 || len(told) != 2 {
			t.Errorf("the session hears of %v", told)
		}
		if kept, err := s.Book.Ratings(t.Context(), "main:c:room"); err != nil || len(kept) > 0 {
			t.Errorf("kept are %+v, %v", kept, err)
		}
	})
}

func TestThumbsAreStoredAsRatings(t *testing.T) {
	good, bad := 0, 0
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1", "2"}}, func(s *testStage, g *gateway.Gateway) {
		g.Ratings, g.OnRated = s.Book, func(verdict bool) {
			if verdict {
				good++
				return
			}
			bad++
		}
	}, func(t *testing.T, s *testStage) {
		answer := channels.Send{ID: bus.ReplyID("c:t:room:1"), To: bus.Address{Channel: "c", Chat: "room"}, Session: "main:c:room", Parts: []channels.SentPart{{Text: "x"}}}
		if _, _, err := s.Book.Begin(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
		if err := s.Book.Mark(t.Context(), answer.ID, 0, channels.SentPart{State: channels.Sent, PlatformID: "77"}); err != nil {
			t.Fatal(err)
		}
		n := 0
		react := func(user, of, reaction string, removed bool) {
			t.Helper()
			n++
			in := stagetest.PrivateMessage("r"+string(rune('a'+n)), user, "")
			in.Kind, in.Group, in.At.Chat, in.Of, in.Reaction, in.Removed = bus.Reacted, true, "room", "c:t:room:"+of, reaction, removed
			s.receive(t, in)
		}
		react("1", "77", "👍🏽", false)
		react("1", "77", "👍🏽", false) // delivered a second time
		react("1", "77", "🎉", false)
		react("1", "78", "👎", false) // not a reaction to an answer
		react("2", "77", "👍", false)
		react("2", "77", "👎", false) // the person has changed their mind
		react("2", "77", "👍", true)  // removes a rating that was already replaced
		react("7", "77", "👎", false) // a reaction by a stranger
		all, err := s.Book.Ratings(t.Context(), "main:c:room")
		if err != nil || len(all) != 2 || all[0].Person != "c:1" || !all[0].Good || all[0].Turn != "c:t:room:1" || all[0].Rated.IsZero() || all[1].Person != "c:2" || all[1].Good {
			t.Errorf("kept are %+v, %v", all, err)
		}
		react("1", "77", "👍", true)
		if all, err := s.Book.Ratings(t.Context(), "main:c:room"); err != nil || len(all) != 1 {
			t.Errorf("then kept are %+v, %v", all, err)
		}
		if good != 2 || bad != 1 {
			t.Errorf("counted %d good and %d bad", good, bad)
		}
		if d := s.TopicDepth(t, bus.InboundTopic); d.Waiting != 4 || len(s.Platform.Sent()) > 0 { // the session is told of four ratings
			t.Errorf("of the reactions were published or answered: %+v", d)
		}
	})
}
