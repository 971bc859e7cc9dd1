package recall_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"parley/bus"
	"parley/channels/recall"
	"parley/sessions"
	recalltool "parley/tools/recall"
)

// platforms show messages below their channel's name, but for those of the chat "away", of which none is known now.
type platforms struct{}

func (platforms) Link(_ context.Context, at bus.Address, message string) (string, error) {
	if at.Chat == "away" {
		return "", errors.New("away")
	}
	return "https://example.org/" + at.String() + "/" + message, nil
}

// What is found has the link of its message, and the agent's words that of the message that they answer.
func TestWhatIsFoundHasALink(t *testing.T) {
	s := newStage(t)
	s.Finder = recall.New(recall.Config{
		Index: recall.Linked{Index: s.Store.Words(), Platforms: platforms{}}, Sessions: s.Store, Book: s.Book, Members: &recall.Members{Access: s.rooms}, Log: slog.New(slog.DiscardHandler),
	})
	s.meet("s", "D1", "s:U1")
	s.say("main:s:D1:7", "t1", "s:U1", "alpha from me", "bravo from the agent")
	steered := s.entry("t1", sessions.KindUser, "s:U1", sessions.User{Text: "charlie from me"})
	steered.Cause = "m2"
	s.append("main:s:D1:7", steered,
		s.entry("t1", sessions.KindAttached, "s:U1", sessions.Attached{Message: "m2", Name: "delta.pdf"}),
		s.entry("t1", sessions.KindNotice, "s:U1", sessions.Notice{Of: "m2", Quotes: []sessions.Quote{{Kind: bus.Edited, Person: "s:U1", Text: "echo from me"}}}))
	s.meet("s", "away", "s:U1")
	s.say("main:s:away", "t3", "s:U1", "foxtrot from me", "golf from the agent")
	for word, want := range map[string]string{
		"alpha": "https://example.org/s:D1/7/t1", "bravo": "https://example.org/s:D1/7/t1", "charlie": "https://example.org/s:D1/7/m2",
		"delta": "https://example.org/s:D1/7/m2", "echo": "https://example.org/s:D1/7/m2", "foxtrot": "",
	} {
		if got := s.find("main:s:D1:7", "s:U1", true, word); len(got.Found) != 1 || got.Found[0].Link != want || got.Found[0].Origin == recalltool.Memory {
			t.Errorf("%s: %+v, want the link %q", word, got.Found, want)
		}
	}
}
