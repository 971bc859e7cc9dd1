package gateway_test

import (
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

func TestThumbsAreKeptAsRatings(t *testing.T) {
	good, bad := 0, 0
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1", "2"}}, func(s *stage, g *gateway.Gateway) {
		g.Ratings, g.Rated = s.Book, func(verdict bool) {
			if verdict {
				good++
				return
			}
			bad++
		}
	}, func(t *testing.T, s *stage) {
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
			in := stagetest.Said("r"+string(rune('a'+n)), user, "")
			in.Kind, in.Group, in.At.Chat, in.Of, in.Reaction, in.Removed = bus.Reacted, true, "room", "c:t:room:"+of, reaction, removed
			s.say(t, in)
		}
		react("1", "77", "👍🏽", false)
		react("1", "77", "👍🏽", false) // brought again
		react("1", "77", "🎉", false)
		react("1", "78", "👎", false) // no answer of the bot's
		react("2", "77", "👍", false)
		react("2", "77", "👎", false) // thinks otherwise now
		react("2", "77", "👍", true)  // which is not what counts any more
		react("7", "77", "👎", false) // a stranger
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
		if d := s.Depth(t, bus.InboundTopic); d.Waiting != 4 || len(s.Platform.Sent()) > 0 { // the session hears of those at its answer
			t.Errorf("of the reactions were published or answered: %+v", d)
		}
	})
}
