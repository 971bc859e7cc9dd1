package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
)

// question is a message with a button, to be replaced by its outcome.
func question(id, subject, text string) bus.Outbound {
	out := news(id, "1", subject, text)
	out.Buttons = []bus.Button{{Label: "Yes", Says: "/yes"}, {Label: "Too long", Says: strings.Repeat("x", 65)}}
	return out
}

// onButtons is editing on a platform that shows buttons.
func onButtons(t *testing.T, setup func(*channelstest.MemoryChannel), run func(*testing.T, *stage)) {
	t.Helper()
	inDispatch(t, func(s *stage, d *dispatch.Dispatcher) {
		s.Platform.Offers.Length, s.Platform.Offers.EditBytes = 100, 50
		d.Channel = channelstest.ButtonChannel{EditingChannel: &channelstest.EditingChannel{MemoryChannel: s.Platform, Caption: 50}}
		if setup != nil {
			setup(s.Platform)
		}
	}, func(t *testing.T, s *stage, _ *running) { run(t, s) })
}

func TestButtonsAreShownUntilTheMessageIsReplaced(t *testing.T) {
	onButtons(t, nil, func(t *testing.T, s *stage) {
		s.post(t, question("a", "ask", "may I?"), news("b", "1", "ask", "approved"))
		synctest.Wait()
		sent := s.Platform.Sent()
		if len(sent) != 2 || len(sent[0].Part.Buttons) != 1 || sent[0].Part.Buttons[0] != (bus.Button{Label: "Yes", Says: "/yes"}) {
			t.Fatalf("sent %+v", sent)
		}
		if last := sent[1]; !last.Edit || last.ID != sent[0].ID || len(last.Part.Buttons) != 0 {
			t.Errorf("then %+v", last)
		}
	})
}

func TestButtonsAreWithTheLastPart(t *testing.T) {
	onButtons(t, nil, func(t *testing.T, s *stage) {
		s.post(t, question("a", "", strings.Repeat("word ", 30)))
		synctest.Wait()
		sent := s.Platform.Sent()
		if len(sent) != 2 || len(sent[0].Part.Buttons) != 0 || len(sent[1].Part.Buttons) != 1 {
			t.Errorf("sent %+v", sent)
		}
	})
}

// A text that no edit can replace would keep its buttons for ever.
func TestButtonsThatCouldNotBeRemovedAreNotShown(t *testing.T) {
	onButtons(t, nil, func(t *testing.T, s *stage) {
		s.post(t, question("split", "x", strings.Repeat("word ", 30)), question("long", "y", strings.Repeat("word ", 15)))
		synctest.Wait()
		for _, a := range s.Platform.Sent() {
			if len(a.Part.Buttons) != 0 {
				t.Errorf("%q has buttons", a.Part.Text)
			}
		}
	})
}

func TestAChannelWithoutButtonsSendsTheText(t *testing.T) {
	editing(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		s.post(t, question("a", "ask", "may I?"))
		synctest.Wait()
		if sent := p.Sent(); len(sent) != 1 || sent[0].Part.Text != "may I?" || sent[0].Part.Buttons != nil {
			t.Errorf("sent %+v", sent)
		}
	})
}

// What is tried again, by this process or the next, is the same with its buttons.
func TestButtonsAreSentAgainWithTheText(t *testing.T) {
	tries := 0
	onButtons(t, func(p *channelstest.MemoryChannel) {
		p.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
			if len(part.Buttons) != 1 {
				t.Errorf("try %d: %+v", tries, part)
			}
			if tries++; tries < 3 {
				return false, &channels.SendError{Fault: channels.Retry, Code: "down"}
			}
			return true, nil
		}
	}, func(t *testing.T, s *stage) {
		s.post(t, question("a", "ask", "may I?"))
		for range 3 {
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if len(s.Platform.Sent()) != 1 || tries != 3 {
			t.Errorf("%d tries, sent %+v", tries, s.Platform.Sent())
		}
	})
}
