package gateway_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// A hosting channel is a platform with places that people open.
type hosting struct {
	*channelstest.MemoryChannel
	mu    sync.Mutex
	shown []string
	fails []error // of the next calls
}

func (h *hosting) Welcome(_ context.Context, opened bus.Inbound, w channels.Welcome) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.fails) > 0 {
		err := h.fails[0]
		h.fails = h.fails[1:]
		return err
	}
	who := "stranger"
	if w.Admitted {
		who = "guest"
	}
	h.shown = append(h.shown, who+" "+opened.From.ID+" "+opened.Args+": "+w.Text)
	return nil
}

// seen is what was shown.
func (h *hosting) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.shown)
}

func inHost(t *testing.T, access gateway.Access, run func(*testing.T, *stage, *hosting)) {
	t.Helper()
	h := &hosting{}
	inGatewayOn(t, bus.Caps{}, access, func(s *stage, g *gateway.Gateway) {
		h.MemoryChannel = s.Platform
		g.Channel = h
		g.About = func(session string, opened bus.Inbound) string {
			if opened.From.Owner {
				return "owner in " + session
			}
			return "about " + session
		}
		g.Introduction = func(context.Context) (string, error) { return "a bot", nil }
	}, func(t *testing.T, s *stage) { run(t, s, h) })
}

func opened(user string) bus.Inbound {
	in := stagetest.Said("o"+user, user, "")
	in.Kind = channels.Opened
	return in
}

func TestWhoOpensAPlaceIsToldWhatTheBotMayDo(t *testing.T) {
	inHost(t, gateway.Access{Policy: "list", AllowFrom: []string{"1"}, Owners: []string{"9"}}, func(t *testing.T, s *stage, h *hosting) {
		for _, user := range []string{"1", "7", "9"} {
			s.say(t, opened(user))
		}
		beside := opened("1")
		beside.Args = "C1"
		s.say(t, beside)
		s.say(t, beside) // again, at once
		if len(h.seen()) != 4 || h.seen()[0] != "guest c:1 : about main:c:1\n\na bot" || h.seen()[2] != "guest c:9 : owner in main:c:9\n\na bot" || h.seen()[3] != "guest c:1 C1: about main:c:1\n\na bot" {
			t.Fatalf("shown is %q", h.seen())
		}
		if got := h.seen()[1]; !strings.HasPrefix(got, "stranger c:7 : You can't talk to me yet") || !strings.Contains(got, `allow_from = ["7"]`) || strings.Contains(got, "about") {
			t.Errorf("a stranger is shown %q", got)
		}
		if d := s.Depth(t, bus.InboundTopic); d.Waiting != 0 {
			t.Errorf("published %+v", d)
		}
		if chats, err := s.Book.Chats(t.Context()); err != nil || len(chats) > 0 {
			t.Errorf("the book knows the chats %+v, %v", chats, err)
		}
		if sent := s.Platform.Sent(); len(sent) > 0 {
			t.Errorf("sent %+v", sent)
		}
	})
}

// Opening a place asks for nothing: no code is made, and no owner is troubled.
func TestWhoOpensAPlaceAsksForNothing(t *testing.T) {
	inHost(t, gateway.Access{}, func(t *testing.T, s *stage, h *hosting) {
		own(t, s, "1")
		s.say(t, opened("7"))
		pairings, err := s.Book.Pairings(t.Context())
		if err != nil || len(pairings) != 1 || len(s.posted(t)) > 0 {
			t.Errorf("pairings are %+v, %v", pairings, err)
		}
		if len(h.seen()) != 1 || !strings.Contains(h.seen()[0], "answer with a code") {
			t.Errorf("shown is %q", h.seen())
		}
		admit(t, s, "7")
		s.say(t, opened("7")) // within the pause between two of the same
		if len(h.seen()) != 2 || !strings.HasPrefix(h.seen()[1], "guest") {
			t.Errorf("shown is %q", h.seen())
		}
	})
}

func TestAWelcomeWaitsForThePlatform(t *testing.T) {
	inHost(t, gateway.Access{Policy: "open"}, func(t *testing.T, s *stage, h *hosting) {
		h.fails = []error{&channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: time.Minute, Code: "ratelimited"}}
		s.say(t, opened("1"))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if len(h.seen()) > 0 {
			t.Fatalf("shown too early: %q", h.seen())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(h.seen()) != 1 {
			t.Errorf("shown is %q", h.seen())
		}
	})
}
