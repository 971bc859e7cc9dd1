package dispatch_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
)

// A message that needs a newer release waits, and so do the messages behind it, until a process of such a
// release runs.
func TestAMessageWithAnUnknownNeedHoldsUpItsMailbox(t *testing.T) {
	withDispatcher(t, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		strange := newOutbound("b", "1", "answer yes or no")
		strange.Needs = []string{"buttons"}
		strange.Expires = time.Now().Add(time.Minute)
		s.publish(t, newOutbound("a", "1", "before"), strange, newOutbound("c", "1", "behind"), newOutbound("d", "2", "elsewhere"))
		synctest.Wait()
		wantTexts(t, s, "1", "before")
		wantTexts(t, s, "2", "elsewhere")
		time.Sleep(time.Hour)
		synctest.Wait()
		wantTexts(t, s, "1", "before")
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Waiting != 2 || d.Dead != 0 {
			t.Errorf("left: %+v", d)
		}
		if _, err := s.Book.Lookup(t.Context(), "b"); err == nil {
			t.Error("the book has what was not begun")
		}
		if log := s.Log.String(); !strings.Contains(log, "buttons") || !strings.Contains(log, `b"`) && !strings.Contains(log, "id=b") {
			t.Errorf("log: %s", log)
		}
		if err := s.endDispatcher(); err != nil {
			t.Fatal(err)
		}
		lease, err := s.Bus.Claim(t.Context(), bus.OutboundTopic("c"))
		if err != nil {
			t.Fatal(err)
		}
		mail, err := lease.Mail(t.Context(), 0)
		if err != nil || len(mail) != 2 || mail[0].ID != "b" || mail[1].ID != "c" || lease.Claim().Attempts != 1 {
			t.Errorf("waiting: %+v, %v, claimed %d times", mail, err, lease.Claim().Attempts)
		}
		if _, err := s.Book.Lookup(t.Context(), "c"); err == nil {
			t.Error("what was behind it was begun")
		}
	})
}
