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

// questionWithButton returns a message with a button, which a later message about its subject replaces.
func questionWithButton(id, subject, text string) bus.Outbound {
	out := subjectMessage(id, "1", subject, text)
	out.Buttons = []bus.Button{{Label: "Yes", Says: "/yes"}, {Label: "Too long", Says: strings.Repeat("x", 65)}}
	return out
}

// withButtons does what withEditing does, on a platform that shows buttons.
func withButtons(t *testing.T, setup func(*channelstest.MemoryChannel), run func(*testing.T, *testStage)) {
	t.Helper()
	withDispatcher(t, func(s *testStage, d *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.Length, s.Platform.ChannelLimits.EditBytes = 100, 50
		d.Channel = channelstest.ButtonChannel{EditingChannel: &channelstest.EditingChannel{MemoryChannel: s.Platform, Caption: 50}}
		if setup != nil {
			setup(s.Platform)
		}
	}, func(t *testing.T, s *testStage, _ *runningDispatcher) { run(t, s) })
}

func TestButtonsAreShownUntilTheMessageIsReplaced(t *testing.T) {
	withButtons(t, nil, func(t *testing.T, s *testStage) {
		s.publish(t, questionWithButton("a", "ask", "may I?"), subjectMessage("b", "1", "ask", "approved"))
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

func TestButtonsGoWithTheLastPart(t *testing.T) {
	withButtons(t, nil, func(t *testing.T, s *testStage) {
		s.publish(t, questionWithButton("a", "", strings.Repeat("word ", 30)))
		synctest.Wait()
		sent := s.Platform.Sent()
		if len(sent) != 2 || len(sent[0].Part.Buttons) != 0 || len(sent[1].Part.Buttons) != 1 {
			t.Errorf("sent %+v", sent)
		}
	})
}

// If no edit can replace a text, its buttons would stay forever, so it gets none.
func TestButtonsThatNoEditCouldRemoveAreNotShown(t *testing.T) {
	withButtons(t, nil, func(t *testing.T, s *testStage) {
		s.publish(t, questionWithButton("split", "x", strings.Repeat("word ", 30)), questionWithButton("long", "y", strings.Repeat("word ", 15)))
		synctest.Wait()
		for _, a := range s.Platform.Sent() {
			if len(a.Part.Buttons) != 0 {
				t.Errorf("%q has buttons", a.Part.Text)
			}
		}
	})
}

func TestAChannelWithoutButtonsSendsTheText(t *testing.T) {
	withEditing(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		s.publish(t, questionWithButton("a", "ask", "may I?"))
		synctest.Wait()
		if sent := p.Sent(); len(sent) != 1 || sent[0].Part.Text != "may I?" || sent[0].Part.Buttons != nil {
			t.Errorf("sent %+v", sent)
		}
	})
}

// If a send is retried, by this process or the next, it has the same buttons.
func TestRetriesKeepTheButtons(t *testing.T) {
	tries := 0
	withButtons(t, func(p *channelstest.MemoryChannel) {
		p.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
			if len(part.Buttons) != 1 {
				t.Errorf("try %d: %+v", tries, part)
			}
			if tries++; tries < 3 {
				return false, &channels.SendError{Fault: channels.Retry, Code: "down"}
			}
			return true, nil
		}
	}, func(t *testing.T, s *testStage) {
		s.publish(t, questionWithButton("a", "ask", "may I?"))
		for range 3 {
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if len(s.Platform.Sent()) != 1 || tries != 3 {
			t.Errorf("%d tries, sent %+v", tries, s.Platform.Sent())
		}
	})
}
