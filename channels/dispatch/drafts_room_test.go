package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/stagetest"
)

func TestADraftGivesWayToMessages(t *testing.T) {
	t.Run("for mail that waits", func(t *testing.T) {
		setup := func(p *channelstest.EditingChannel) {
			p.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Retry, RetryAfter: 30 * time.Second, Code: "503"})
		}
		withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
			s.publish(t, newOutbound("earlier", "1", "said before"))
			a := s.Speaker("t", "1")
			a.Start()
			a.EmitText("Words")
			sleep(20 * time.Second)
			wantShown(t, p, "1")
			sleep(20 * time.Second)
			wantShown(t, p, "1", "said before", "Words\n\n…")
		})
	})
	t.Run("for the answer, which waits for the call under way", func(t *testing.T) {
		setup := func(p *channelstest.EditingChannel) {
			p.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
				if strings.HasPrefix(part.Key, "t#draft") {
					time.Sleep(2 * time.Second) // in the bubble's fake time
				}
				return true, nil
			}
		}
		withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
			a := s.Speaker("t", "1")
			a.Start()
			a.EmitText("Words")
			sleep(2 * time.Second) // the draft is being posted
			s.publishAnswer(t, a, "The answer")
			sleep(time.Minute)
			wantShown(t, p, "1", "The answer")
			if sent := p.Sent(); len(sent) != 2 {
				t.Errorf("arrived: %+v", sent)
			}
		})
	})
	t.Run("in the pace", func(t *testing.T) {
		setup := func(p *channelstest.EditingChannel) {
			p.ChannelLimits.Chat, p.ChannelLimits.Account = channels.Pace{Every: 2 * time.Second, Burst: 3}, channels.Pace{Every: time.Second / 2, Burst: 8}
		}
		withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
			var all []*stagetest.Speaker
			for i := range 10 {
				a := s.Speaker(fmt.Sprint("t", i), fmt.Sprint(i))
				a.Start()
				a.EmitText("Words")
				all = append(all, a)
			}
			for range 100 {
				for _, a := range all {
					a.EmitMoreText(" and words")
				}
				sleep(200 * time.Millisecond)
			}
			if n := len(p.Sent()); n < 30 || n > 48 {
				t.Errorf("%d calls in twenty seconds", n)
			}
			began := time.Now()
			s.publishAnswer(t, all[0], "The answer")
			if shown := p.Shown("0"); shown[len(shown)-1] != "The answer" || time.Since(began) > 0 {
				t.Errorf("the answer was kept waiting: shown %q", shown)
			}
		})
	})
}

func TestARateLimitStopsTheDraftsOfAChat(t *testing.T) {
	limited := &channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 20 * time.Second, Code: "429"}
	setup := func(p *channelstest.EditingChannel) {
		first := true
		p.OnEdit = func(id string) error {
			if id != "id1" || !first {
				return nil
			}
			first = false
			return limited
		}
	}
	withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		one, other, third := s.Speaker("t", "1"), s.Speaker("u", "2"), s.Speaker("v", "1")
		third.At.Thread = "7"
		for _, a := range []*stagetest.Speaker{one, other} {
			a.Start()
			a.EmitText("Words")
			sleep(100 * time.Millisecond)
		}
		grow := func(n int) {
			for range n {
				one.EmitMoreText(" more")
				other.EmitMoreText(" more")
				sleep(time.Second)
			}
		}
		grow(15)
		if len(p.Texts("1")) != 1 || len(p.Texts("2")) < 5 {
			t.Errorf("shown %q and %q", p.Texts("1"), p.Texts("2"))
		}
		third.Start()
		third.EmitText("In a thread of the same chat")
		grow(5)
		if len(p.Texts("1")) != 1 {
			t.Errorf("shown %q", p.Texts("1"))
		}
		s.publishAnswer(t, one, "The answer")
		s.publishAnswer(t, other, "Another answer")
		if len(p.Texts("1")) != 1 || p.Shown("2")[0] != "Another answer" {
			t.Errorf("shown %q and %q: the pause is one chat's, and everything's in it", p.Texts("1"), p.Texts("2"))
		}
		grow(10)
		wantShown(t, p, "1", "The answer", "In a thread of the same chat\n\n…")
	})
}

// If all chats share one limit of edits, drafts leave enough edits for the answers, because each answer is the
// last edit of its draft.
func TestDraftsLeaveEditsForAnswers(t *testing.T) {
	const turns, allowed = 30, 50
	setup := func(p *channelstest.EditingChannel) {
		p.ChannelLimits.Drafts = channels.Pace{Every: 1300 * time.Millisecond, Burst: 4}
	}
	withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		var all []*stagetest.Speaker
		for i := range turns {
			a := s.Speaker(fmt.Sprint("t", i), fmt.Sprint(i))
			a.Start()
			a.EmitText("Words")
			all = append(all, a)
		}
		for range 55 {
			sleep(time.Second)
			for _, a := range all {
				a.EmitMoreText(" and more")
			}
		}
		for i, a := range all {
			s.publishAnswer(t, a, fmt.Sprint("answer ", i))
		}
		sleep(time.Second)
		edits := 0
		for i := range turns {
			shown := p.Shown(fmt.Sprint(i))
			if len(shown) != 1 || shown[0] != fmt.Sprint("answer ", i) {
				t.Fatalf("chat %d shows %q", i, shown)
			}
		}
		for _, arrived := range p.Sent() {
			if arrived.Edit {
				edits++
			}
		}
		if edits > allowed || edits < turns/2 {
			t.Errorf("%d edits in a minute, want no more than %d", edits, allowed)
		}
	})
}

func TestDraftsOfManyTurnsAtOnce(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		const turns = 100
		for round := range 2 {
			var all []*stagetest.Speaker
			for i := range turns {
				a := s.Speaker(fmt.Sprintf("t%d-%d", round, i), fmt.Sprint(i))
				a.Start()
				a.EmitText("Words")
				all = append(all, a)
			}
			sleep(3 * time.Second)
			for i, a := range slices.Backward(all) {
				s.publish(t, a.Reply(fmt.Sprint("answer ", i)))
				a.Emit(bus.Event{Type: bus.TurnComplete})
			}
			synctest.Wait()
			for i := range turns {
				if shown := p.Shown(fmt.Sprint(i)); len(shown) != round+1 || shown[round] != fmt.Sprint("answer ", i) {
					t.Fatalf("chat %d shows %q", i, shown)
				}
			}
		}
		if n := len(p.Sent()); n != 2*2*turns {
			t.Errorf("%d arrivals, want a draft and an answer for each turn", n)
		}
	})
}
