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

// A placesChannel is a platform with places that people open.
type placesChannel struct {
	*channelstest.MemoryChannel
	mu         sync.Mutex
	shown      []string
	nextErrors []error // the errors of the next calls
}

func (h *placesChannel) Welcome(_ context.Context, opened bus.Inbound, w channels.Welcome) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.nextErrors) > 0 {
		err := h.nextErrors[0]
		h.nextErrors = h.nextErrors[1:]
		return err
	}
	who := "stranger"
	if w.Admitted {
		who = "guest"
	}
	h.shown = append(h.shown, who+" "+opened.From.ID+" "+opened.Args+": "+w.Text)
	return nil
}

// shownTexts returns the texts that were shown.
func (h *placesChannel) shownTexts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.shown)
}

func withPlaces(t *testing.T, access gateway.Access, run func(*testing.T, *testStage, *placesChannel)) {
	t.Helper()
	h := &placesChannel{}
	withConfiguredGateway(t, bus.Caps{}, access, func(s *testStage, g *gateway.Gateway) {
		h.MemoryChannel = s.Platform
		g.Channel = h
		g.AboutText = func(session string, opened bus.Inbound) string {
			if opened.From.Owner {
				return "owner in " + session
			}
			return "about " + session
		}
		g.IntroductionText = func(context.Context) (string, error) { return "a bot", nil }
	}, func(t *testing.T, s *testStage) { run(t, s, h) })
}

func openedEvent(user string) bus.Inbound {
	in := stagetest.PrivateMessage("o"+user, user, "")
	in.Kind = channels.Opened
	return in
}

func TestOpeningAPlaceShowsAWelcome(t *testing.T) {
	withPlaces(t, gateway.Access{Policy: "list", AllowFrom: []string{"1"}, Owners: []string{"9"}}, func(t *testing.T, s *testStage, h *placesChannel) {
		for _, user := range []string{"1", "7", "9"} {
			s.receive(t, openedEvent(user))
		}
		beside := openedEvent("1")
		beside.Args = "C1"
		s.receive(t, beside)
		s.receive(t, beside) // a second time, immediately
		if len(h.shownTexts()) != 4 || h.shownTexts()[0] != "guest c:1 : about main:c:1\n\na bot" || h.shownTexts()[2] != "guest c:9 : owner in main:c:9\n\na bot" || h.shownTexts()[3] != "guest c:1 C1: about main:c:1\n\na bot" {
			t.Fatalf("shown is %q", h.shownTexts())
		}
		if got := h.shownTexts()[1]; !strings.HasPrefix(got, "stranger c:7 : You can't talk to me yet") || !strings.Contains(got, `allow_from = ["7"]`) || strings.Contains(got, "about") {
			t.Errorf("a stranger is shown %q", got)
		}
		if d := s.TopicDepth(t, bus.InboundTopic); d.Waiting != 0 {
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

// Opening a place makes no code and tells no owner.
func TestOpeningAPlaceRequestsNoAdmission(t *testing.T) {
	withPlaces(t, gateway.Access{}, func(t *testing.T, s *testStage, h *placesChannel) {
		makeOwner(t, s, "1")
		s.receive(t, openedEvent("7"))
		pairings, err := s.Book.Pairings(t.Context())
		if err != nil || len(pairings) != 1 || len(s.takeOutbound(t)) > 0 {
			t.Errorf("pairings are %+v, %v", pairings, err)
		}
		if len(h.shownTexts()) != 1 || !strings.Contains(h.shownTexts()[0], "answer with a code") {
			t.Errorf("shown is %q", h.shownTexts())
		}
		admitPerson(t, s, "7")
		s.receive(t, openedEvent("7")) // within the minimum time between two welcomes
		if len(h.shownTexts()) != 2 || !strings.HasPrefix(h.shownTexts()[1], "guest") {
			t.Errorf("shown is %q", h.shownTexts())
		}
	})
}

func TestAWelcomeWaitsForThePlatform(t *testing.T) {
	withPlaces(t, gateway.Access{Policy: "open"}, func(t *testing.T, s *testStage, h *placesChannel) {
		h.nextErrors = []error{&channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: time.Minute, Code: "ratelimited"}}
		s.receive(t, openedEvent("1"))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if len(h.shownTexts()) > 0 {
			t.Fatalf("shown too early: %q", h.shownTexts())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(h.shownTexts()) != 1 {
			t.Errorf("shown is %q", h.shownTexts())
		}
	})
}
