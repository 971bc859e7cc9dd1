package dispatch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
	"parley/channels/stagetest"
)

const draftEvery = 1500 * time.Millisecond

// publishAnswer publishes the answer of a speaker's turn and ends the turn, as an agent does.
func (s *testStage) publishAnswer(t *testing.T, a *stagetest.Speaker, text string) {
	t.Helper()
	a.Emit(bus.Event{Type: bus.TurnComplete, Causes: []string{a.Turn}})
	s.publish(t, a.Reply(text))
	synctest.Wait()
}

// sleep lets time pass.
func sleep(d time.Duration) {
	time.Sleep(d) // in the bubble's fake time
	synctest.Wait()
}

// withDrafts does what withEditing does, on a platform that shows drafts.
func withDrafts(t *testing.T, setup func(*channelstest.EditingChannel), run func(*testing.T, *testStage, *channelstest.EditingChannel)) {
	t.Helper()
	withEditing(t, func(p *channelstest.EditingChannel) {
		p.ChannelLimits.DraftEvery, p.ChannelLimits.Length = draftEvery, 1000
		if setup != nil {
			setup(p)
		}
	}, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		synctest.Wait()
		run(t, s, p)
	})
}

func (s *testStage) lookupDraft(t *testing.T, turn string) channels.SentPart {
	t.Helper()
	return s.lookup(t, turn+"#draft").Parts[0]
}

func (s *testStage) requireNoDraft(t *testing.T, turn string) {
	t.Helper()
	if _, err := s.Book.Lookup(t.Context(), turn+"#draft"); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("turn %s has a draft in the book: %v", turn, err)
	}
}

func TestADraftGrowsAndBecomesTheAnswer(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a, began := s.Speaker("t", "1"), time.Now()
		a.Start()
		a.EmitText("Words ")
		for i := range 100 {
			a.EmitMoreText(fmt.Sprint(i%10, " "))
			sleep(100 * time.Millisecond)
		}
		sent := p.Sent()
		if len(sent) < 6 || len(sent) > 8 {
			t.Fatalf("%d calls in ten seconds", len(sent))
		}
		if first := sent[0]; first.Edit || first.At.Sub(began) < time.Second || first.At.Sub(began) > 1200*time.Millisecond || !strings.HasPrefix(first.Part.Text, "Words 0 1 2") {
			t.Errorf("the first after %v is %+v", first.At.Sub(began), first)
		}
		for i, later := range sent[1:] {
			if gap := later.At.Sub(sent[i].At); !later.Edit || later.ID != sent[0].ID || gap < draftEvery || len(later.Part.Text) <= len(sent[i].Part.Text) {
				t.Errorf("after %v: %+v", gap, later)
			}
		}
		if part := s.lookupDraft(t, "t"); part.State != channels.Drafted || part.PlatformID != sent[0].ID || part.Text+part.Plain != "" {
			t.Errorf("book: %+v", part)
		}
		if draft := s.lookup(t, "t#draft"); draft.Writer != "main:c:1" || draft.Session != "" {
			t.Errorf("the draft is of %q and %q", draft.Writer, draft.Session)
		}
		s.publishAnswer(t, a, "The answer")
		sleep(time.Minute)
		wantShown(t, p, "1", "The answer")
		if now := p.Sent(); len(now) != len(sent)+1 || now[len(sent)].At.Sub(began) > 10*time.Second+10*time.Millisecond {
			t.Errorf("%d calls more, want the answer alone and at once", len(now)-len(sent))
		}
		if part := s.lookup(t, "t#reply").Parts[0]; part.State != channels.Sent || part.Edits != sent[0].ID || part.PlatformID != sent[0].ID {
			t.Errorf("book: %+v", part)
		}
		if part := s.lookupDraft(t, "t"); part.State != channels.Sent {
			t.Errorf("book: %+v", part)
		}
	})
}

func TestNoDraftIsShownIfNoneIsWanted(t *testing.T) {
	turn := func(t *testing.T, s *testStage, lasting time.Duration) {
		a := s.Speaker("t", "1")
		synctest.Wait()
		a.Start()
		a.EmitText(strings.Repeat("words ", 10))
		sleep(lasting)
		s.publishAnswer(t, a, "The answer")
		sleep(time.Minute)
		wantTexts(t, s, "1", "The answer")
		s.requireNoDraft(t, "t")
	}
	t.Run("a quick turn", func(t *testing.T) {
		withDrafts(t, nil, func(t *testing.T, s *testStage, _ *channelstest.EditingChannel) { turn(t, s, 900*time.Millisecond) })
	})
	t.Run("a channel that does not ask", func(t *testing.T) {
		withEditing(t, nil, func(t *testing.T, s *testStage, _ *channelstest.EditingChannel) { turn(t, s, time.Minute) })
	})
	t.Run("a channel that cannot edit", func(t *testing.T) {
		setup := func(s *testStage, _ *dispatch.Dispatcher) { s.Platform.ChannelLimits.DraftEvery = draftEvery }
		withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) { turn(t, s, time.Minute) })
	})
	t.Run("no room in the pace", func(t *testing.T) {
		setup := func(p *channelstest.EditingChannel) {
			p.ChannelLimits.Chat = channels.Pace{Every: time.Second, Burst: 1}
		}
		withDrafts(t, setup, func(t *testing.T, s *testStage, _ *channelstest.EditingChannel) { turn(t, s, time.Minute) })
	})
	t.Run("no book of drafts", func(t *testing.T) {
		setup := func(s *testStage, d *dispatch.Dispatcher) {
			s.Platform.ChannelLimits.DraftEvery = draftEvery
			d.Channel, d.Drafts = &channelstest.EditingChannel{MemoryChannel: s.Platform}, nil
		}
		withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) { turn(t, s, time.Minute) })
	})
}

func TestTheDraftOfAWaitingTurn(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		for i, asks := range []bool{false, true} {
			a := s.Speaker(fmt.Sprint("t", i), fmt.Sprint(i))
			a.Start()
			a.EmitText("May I?")
			sleep(2 * time.Second)
			a.Emit(bus.Event{Type: bus.TurnParked})
			if asks {
				question := a.Reply("May I do that?")
				question.ID = a.Turn + "#ask"
				s.publish(t, question)
			}
			sleep(time.Hour)
			a.EmitToolCall("exec_shell", "make")
			a.EmitText("I did it")
			sleep(2 * time.Second)
		}
		wantShown(t, p, "0", "I did it\n\n…")
		wantShown(t, p, "1", "May I do that?")
	})
}

// A question with a subject replaces the draft. Its outcome replaces the question, and the next draft of the
// turn becomes the answer.
func TestADraftBecomesAQuestion(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		about := func(id, text string) bus.Outbound {
			out := a.Reply(text)
			out.ID, out.Subject = id, "ask"
			return out
		}
		a.Start()
		a.EmitToolCall("read_file", "a.txt")
		sleep(2 * time.Second)
		wantShown(t, p, "1", "· read_file a.txt")
		s.publish(t, about("ask#ask/0", "May I?"))
		a.Emit(bus.Event{Type: bus.TurnParked})
		sleep(time.Hour)
		s.publish(t, about("ask#ended/0", "May I? Yes."))
		s.publishAnswer(t, a, "I did it")
		wantShown(t, p, "1", "May I? Yes.", "I did it")

		b := s.Speaker("u", "2")
		about = func(id, text string) bus.Outbound {
			out := b.Reply(text)
			out.ID, out.Subject = id, "another"
			return out
		}
		b.Start()
		s.publish(t, about("another#ask/0", "May I?"))
		b.Emit(bus.Event{Type: bus.TurnParked})
		sleep(time.Hour)
		b.Start()
		b.EmitToolCall("exec_shell", "make")
		sleep(2 * time.Second)
		wantShown(t, p, "2", "May I?", "· exec_shell make")
		s.publish(t, about("another#ended/0", "May I? Yes."))
		sleep(2 * time.Second)
		wantShown(t, p, "2", "May I? Yes.", "· exec_shell make")
		s.publishAnswer(t, b, "I did it")
		wantShown(t, p, "2", "May I? Yes.", "I did it")
		if left, err := s.Book.Drafts(t.Context(), "c"); err != nil || len(left) != 0 {
			t.Errorf("left over: %+v, %v", left, err)
		}
	})
}

func TestNoDraftAfterTheAnswer(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("The")
		sleep(900 * time.Millisecond)
		s.publish(t, a.Reply("The answer")) // arrives before the events that preceded it
		sleep(2 * time.Second)
		a.EmitMoreText(" answer")
		sleep(2 * time.Second)
		a.Emit(bus.Event{Type: bus.TurnComplete})
		sleep(time.Minute)
		wantShown(t, p, "1", "The answer")
		if len(p.Sent()) != 1 {
			t.Errorf("arrived: %+v", p.Sent())
		}
	})
}

func TestAnswersThatCannotReplaceTheDraft(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("Nine words make a sentence that is quite short. ", 5))
	t.Run("a long one", func(t *testing.T) {
		short := func(p *channelstest.EditingChannel) { p.ChannelLimits.Length = 100 }
		withDrafts(t, short, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
			a := s.Speaker("t", "1")
			a.Start()
			a.EmitText(long)
			sleep(time.Minute)
			a.EmitMoreText(" And more that is not to be seen yet.")
			sleep(time.Minute)
			if len(p.Sent()) != 1 {
				t.Errorf("%d calls for a text that fills the message", len(p.Sent()))
			}
			s.publishAnswer(t, a, long)
			shown := p.Shown("1")
			if len(shown) < 3 || strings.Join(shown, " ") != long {
				t.Errorf("shown %q", shown)
			}
		})
	})
	t.Run("one where the draft cannot be edited anymore", func(t *testing.T) {
		setup := func(p *channelstest.EditingChannel) {
			p.OnEdit = func(string) error { return &channels.SendError{Fault: channels.Rejected, Code: "gone"} }
		}
		withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
			a := s.Speaker("t", "1")
			a.Start()
			a.EmitText("So far")
			sleep(2 * time.Second)
			s.publishAnswer(t, a, "The answer")
			sleep(time.Minute)
			wantShown(t, p, "1", "So far\n\n…", "The answer")
			if part := s.lookupDraft(t, "t"); part.State != channels.Sent {
				t.Errorf("book: %+v", part)
			}
		})
	})
	t.Run("one whose draft panics", func(t *testing.T) {
		setup := func(p *channelstest.EditingChannel) {
			p.OnEdit = func(string) error {
				if len(p.Sent()) == 1 {
					p.OnEdit = nil
					panic("secret")
				}
				return nil
			}
		}
		withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
			a := s.Speaker("t", "1")
			a.Start()
			a.EmitText("So")
			sleep(2 * time.Second)
			a.EmitMoreText(" far")
			sleep(time.Minute)
			wantShown(t, p, "1", "So\n\n…")
			s.publishAnswer(t, a, "The answer")
			wantShown(t, p, "1", "The answer")
			if strings.Contains(s.Log.String(), "secret") {
				t.Errorf("log: %s", s.Log)
			}
		})
	})
	t.Run("what a tool says comes first", func(t *testing.T) {
		withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
			a := s.Speaker("t", "1")
			a.Start()
			a.EmitText("Telling you")
			sleep(2 * time.Second)
			said := a.Reply("Hello from a tool")
			said.ID = "t#call"
			elsewhere := a.Reply("Hello from afar")
			elsewhere.ID, elsewhere.To.Chat = "t#call/1", "2"
			s.publish(t, elsewhere)
			synctest.Wait()
			wantShown(t, p, "1", "Telling you\n\n…")
			s.publish(t, said)
			a.EmitToolCall("message", "1")
			a.EmitText("Told ")
			sleep(10 * time.Second)
			s.publishAnswer(t, a, "Told.")
			wantShown(t, p, "1", "Hello from a tool", "Told.")
			wantShown(t, p, "2", "Hello from afar")
		})
	})
}
