package recall_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels/recall"
	"parley/sessions"
	"parley/sessions/search"
	recalltool "parley/tools/recall"
)

// testPlatforms link messages below their channel's name. Links of the chat "away" can't be found out now.
type testPlatforms struct{}

func (testPlatforms) Link(_ context.Context, at bus.Address, message string) (string, error) {
	if at.Chat == "away" {
		return "", errors.New("away")
	}
	return "https://example.org/" + at.String() + "/" + message, nil
}

// A hit gets the link of its message; the agent's words get the link of the message that they answer.
func TestHitsHaveLinks(t *testing.T) {
	s := newHome(t)
	s.Finder = recall.New(recall.Config{
		Index: recall.LinkedIndex{Index: s.Store.Words(), Platforms: testPlatforms{}}, Sessions: s.Store, Book: s.Book, Members: &recall.Members{Access: s.rooms}, Log: slog.New(slog.DiscardHandler),
	})
	s.recordChat("s", "D1", "s:U1")
	s.say("main:s:D1:7", "t1", "s:U1", "alpha from me", "bravo from the agent")
	steered := s.entry("t1", sessions.KindUser, "s:U1", sessions.User{Text: "charlie from me"})
	steered.Cause = "m2"
	s.append("main:s:D1:7", steered,
		s.entry("t1", sessions.KindAttached, "s:U1", sessions.Attached{Message: "m2", Name: "delta.pdf"}),
		s.entry("t1", sessions.KindNotice, "s:U1", sessions.Notice{MessageID: "m2", Quotes: []sessions.Quote{{Kind: bus.Edited, Person: "s:U1", Text: "echo from me"}}}))
	s.recordChat("s", "away", "s:U1")
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

// A fixedIndex finds the same hits for every query.
type fixedIndex []search.Hit

func (x fixedIndex) Search(context.Context, search.Query) ([]search.Hit, error) {
	return slices.Clone(x), nil
}

func (fixedIndex) SessionsSpokenIn(context.Context, string, []string, int) ([]string, error) {
	return nil, nil
}

// slowPlatforms answer slowly, and for the chat "hangs" not at all.
type slowPlatforms struct {
	mu         sync.Mutex
	running    map[string]int // by chat, how many requests are running
	maxRunning int            // the maximum of requests in all chats together
	maxPerChat int            // the maximum of requests in one chat
}

func (p *slowPlatforms) Link(ctx context.Context, at bus.Address, message string) (string, error) {
	p.count(at.Chat, 1)
	defer p.count(at.Chat, -1)
	pause := 100 * time.Millisecond
	if at.Chat == "hangs" {
		pause = time.Hour
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(pause):
		return at.Chat + "/" + message, nil
	}
}

func (p *slowPlatforms) count(chat string, more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[chat] += more
	all := 0
	for _, n := range p.running {
		all += n
	}
	p.maxRunning, p.maxPerChat = max(p.maxRunning, all), max(p.maxPerChat, p.running[chat])
}

// Links are requested concurrently, but only a limited number at once, and those of one conversation one after
// the other. A late link does not delay the others, and hits keep their order.
func TestLinksAreRequestedConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowPlatforms{running: map[string]int{}}
		var found fixedIndex
		for _, message := range []string{"m1", "m2"} {
			for _, chat := range []string{"a", "b", "hangs", "c", "d", "e", "f"} {
				found = append(found, search.Hit{Session: "main:s:" + chat, Message: message})
			}
		}
		found = append(found, search.Hit{Session: "main:s:a"}, search.Hit{Session: "no key", Message: "m3"})
		began := time.Now()
		got, err := recall.LinkedIndex{Index: found, Platforms: p}.Search(t.Context(), search.Query{})
		if err != nil || len(got) != len(found) {
			t.Fatalf("found %+v, %v", got, err)
		}
		for i, h := range got {
			want := ""
			if chat := strings.TrimPrefix(h.Session, "main:s:"); h.Message != "" && chat != "hangs" && h.Session != "no key" {
				want = chat + "/" + h.Message
			}
			if h.Session != found[i].Session || h.Message != found[i].Message || h.Link != want {
				t.Errorf("hit %d is %+v, want %+v with the link %q", i, h, found[i], want)
			}
		}
		if p.maxRunning != 4 || p.maxPerChat != 1 {
			t.Errorf("%d links were asked for at once, and %d of one conversation", p.maxRunning, p.maxPerChat)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %s, want all the time that there is for the one that is late", took)
		}
	})
}
