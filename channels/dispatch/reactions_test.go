package dispatch_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
)

func wantReactions(t *testing.T, p *channelstest.ReactingChannel, want ...string) {
	t.Helper()
	if got := p.Reactions(); !slices.Equal(got, want) {
		t.Errorf("reactions %q, want %q", got, want)
	}
}

func TestTheAnsweredMessageGetsAReaction(t *testing.T) {
	reacts := &channelstest.ReactingChannel{}
	var asked atomic.Int64
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		reacts.MemoryChannel = s.Platform
		reacts.OnReact = func(_, message string) error {
			asked.Add(1)
			if strings.HasPrefix(message, "limited") {
				return &channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: time.Minute}
			}
			return nil
		}
		s.Platform.OnSend = failFirstSends("gone", false, &channels.SendError{Fault: channels.Rejected, Code: "kicked"})
		d.Channel = reacts
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		synctest.Wait()
		a := s.Speaker("m1", "1")
		aside := a.Reply("what a tool says")
		aside.ID = "m1#call"
		s.publish(t, aside, newOutbound("notice", "1", "what nobody asked for"))
		synctest.Wait()
		wantReactions(t, reacts)
		a.Emit(bus.Event{Type: bus.TurnComplete, Causes: []string{"m1", "m2"}})
		sleep(100 * time.Millisecond)
		s.publish(t, a.Reply("The answer"))
		synctest.Wait()
		wantReactions(t, reacts, "answered m1 at c:1", "answered m2 at c:1")
		s.publish(t, s.Speaker("m3", "gone").Reply("never sent"), s.Speaker("m4", "2").Reply("Another"))
		synctest.Wait()
		wantReactions(t, reacts, "answered m1 at c:1", "answered m2 at c:1", "answered m4 at c:2")
		failed := s.Speaker("m0", "2").Reply("I could not answer")
		failed.Failed = true
		s.publish(t, failed)
		synctest.Wait()
		wantReactions(t, reacts, "answered m1 at c:1", "answered m2 at c:1", "answered m4 at c:2", "failed m0 at c:2")
		s.publish(t, s.Speaker("limited", "3").Reply("x"))
		synctest.Wait()
		s.publish(t, s.Speaker("m5", "3").Reply("later"), s.Speaker("m6", "2").Reply("now"))
		synctest.Wait()
		if got := s.Platform.Texts("3"); len(got) != 1 {
			t.Errorf("the chat has %q within the minute in which it is to have nothing", got)
		}
		wantReactions(t, reacts, "answered m1 at c:1", "answered m2 at c:1", "answered m4 at c:2", "failed m0 at c:2", "answered m6 at c:2")
		sleep(time.Minute + 2*time.Second)
		if got := reacts.Reactions(); asked.Load() != 7 || got[len(got)-1] != "answered m5 at c:3" {
			t.Errorf("%d calls, reactions %q", asked.Load(), got)
		}
		joined := s.Speaker("m7", "2").Reply("to three at once, of which no news came")
		joined.Causes = []string{"m7", "m8", "m9"}
		s.publish(t, joined)
		synctest.Wait()
		if got := reacts.Reactions(); !slices.Equal(got[len(got)-3:], []string{"answered m7 at c:2", "answered m8 at c:2", "answered m9 at c:2"}) {
			t.Errorf("reactions %q", got)
		}
	})
}
