package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
)

func TestADraftWithUnknownOutcomeIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		arrives bool
		tracing bool
		state   string
		shown   []string
	}{
		"unknown":             {errors.New("connection reset"), true, false, channels.OutcomeUnknown, []string{"Words\n\n…", "The answer"}},
		"found":               {errors.New("connection reset"), true, true, channels.Sent, []string{"The answer"}},
		"found not to be":     {errors.New("connection reset"), false, true, channels.Failed, []string{"The answer"}},
		"refused":             {&channels.SendError{Fault: channels.Rejected, Code: "no"}, false, false, channels.Failed, []string{"The answer"}},
		"asked for patience":  {&channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: time.Second}, false, false, channels.Failed, []string{"The answer"}},
		"refused the account": {&channels.SendError{Fault: channels.Stop, Code: "401"}, false, false, channels.Failed, []string{"The answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			var p *channelstest.EditingChannel
			setup := func(s *testStage, d *dispatch.Dispatcher) {
				s.Platform.ChannelLimits.DraftEvery = draftEvery
				p = &channelstest.EditingChannel{MemoryChannel: s.Platform, OnEdit: func(string) error { return nil }}
				d.Channel = p
				if c.tracing {
					d.Channel = findingEditor{p}
				}
				s.Platform.OnSend = failFirstSends("1", c.arrives, c.err)
			}
			withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
				synctest.Wait()
				a := s.Speaker("t", "1")
				a.Start()
				a.EmitText("Words")
				sleep(time.Minute)
				s.publishAnswer(t, a, "The answer")
				sleep(time.Minute)
				wantShown(t, p, "1", c.shown...)
				if part := s.lookupDraft(t, "t"); part.State != c.state || (part.Interrupted == 1) != (c.state == channels.OutcomeUnknown) {
					t.Errorf("book: %+v", part)
				}
				if part := s.lookup(t, "t#reply").Parts[0]; part.State != channels.Sent || part.Interrupted != 0 {
					t.Errorf("book: %+v", part)
				}
			})
		})
	}
}

// A findingEditor can also find parts that were sent.
type findingEditor struct{ *channelstest.EditingChannel }

func (p findingEditor) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	return channelstest.FindingChannel{MemoryChannel: p.MemoryChannel}.FindSent(ctx, to, part)
}

func TestTheNextProcessContinuesDrafts(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		// Two drafts of an earlier process; the book has forgotten one of them long ago.
		for _, turn := range []string{"t", "u"} {
			to := bus.Address{Channel: "c", Chat: turn}
			id, err := p.Send(t.Context(), to, channels.Part{Key: turn + "#draft/0", Text: "So far"})
			if err == nil {
				_, _, err = s.Book.Begin(t.Context(), channels.Send{ID: turn + "#draft", To: to, Parts: []channels.SentPart{{State: channels.Drafted}}})
			}
			if err == nil {
				err = s.Book.Mark(t.Context(), turn+"#draft", 0, channels.SentPart{State: channels.Drafted, PlatformID: id})
			}
			if err != nil {
				t.Fatal(err)
			}
			if turn == "t" {
				sleep(25 * time.Hour)
			}
		}
		if err := s.endDispatcher(); err != nil {
			t.Error(err)
		}
		next := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: p, Bus: s.Bus, Book: s.Book, Drafts: s.Book, Log: s.Logger()})
		sleep(time.Second)
		old, a := s.Speaker("t", "t"), s.Speaker("u", "u")
		a.EmitMoreText("lost")
		a.Emit(bus.Event{Type: bus.BlockReset})
		a.EmitText("Begun again")
		sleep(time.Second)
		wantShown(t, p, "u", "Begun again\n\n…")
		s.publishAnswer(t, old, "Late")
		s.publishAnswer(t, a, "The answer")
		wantShown(t, p, "t", "So far", "Late")
		wantShown(t, p, "u", "The answer")
		drafts, err := s.Book.Drafts(t.Context(), "c")
		if err != nil || len(drafts) != 0 {
			t.Errorf("left over: %+v, %v", drafts, err)
		}
		if err := next.end(); err != nil {
			t.Error(err)
		}
	})
}

// A process was paused for longer than it may hold the channel, and another process has answered in the
// meantime.
func TestADraftThatAnotherProcessReplacedIsNotEdited(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("Words")
		sleep(2 * time.Second)
		wantShown(t, p, "1", "Words\n\n…")
		id := s.lookupDraft(t, "t").PlatformID
		if err := s.Book.Mark(t.Context(), "t#draft", 0, channels.SentPart{State: channels.Sent, PlatformID: id}); err != nil {
			t.Fatal(err)
		}
		if err := p.Edit(t.Context(), bus.Address{Channel: "c", Chat: "1"}, id, channels.Part{Text: "The answer"}); err != nil {
			t.Fatal(err)
		}
		a.EmitMoreText(" and more")
		sleep(time.Minute)
		wantShown(t, p, "1", "The answer")
	})
}

// A process that takes over the channel may have read the drafts while the earlier process finished its sends
// and replaced a draft. The text of that draft must not be overwritten.
func TestAMessageDoesNotOverwriteAReplacedDraft(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("Words")
		sleep(2 * time.Second)
		id := s.lookupDraft(t, "t").PlatformID
		if err := s.Book.Mark(t.Context(), "t#draft", 0, channels.SentPart{State: channels.Sent, PlatformID: id}); err != nil {
			t.Fatal(err)
		}
		if err := p.Edit(t.Context(), bus.Address{Channel: "c", Chat: "1"}, id, channels.Part{Text: "A note"}); err != nil {
			t.Fatal(err)
		}
		s.publishAnswer(t, a, "The answer")
		sleep(time.Second)
		wantShown(t, p, "1", "A note", "The answer")
	})
}

// withDraftsAndPoint does what withDrafts does, and calls passed whenever the dispatcher reaches the given
// point.
func withDraftsAndPoint(t *testing.T, line string, passed func(*testing.T, *testStage, *runningDispatcher), run func(*testing.T, *testStage, *channelstest.EditingChannel)) {
	t.Helper()
	var pass func()
	var p *channelstest.EditingChannel
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.DraftEvery = draftEvery
		p = &channelstest.EditingChannel{MemoryChannel: s.Platform, OnEdit: func(string) error { return nil }}
		d.Channel = p
		d.Point = func(name string) {
			if name == line {
				pass()
			}
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, r *runningDispatcher) {
		pass = func() { passed(t, s, r) }
		synctest.Wait()
		run(t, s, p)
	})
}

func TestAProcessThatLostTheChannelPostsNoDraft(t *testing.T) {
	withDraftsAndPoint(t, "draft:begun", func(_ *testing.T, _ *testStage, r *runningDispatcher) { r.stop() }, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("Words")
		sleep(time.Minute)
		if got := p.Sent(); len(got) != 0 {
			t.Errorf("arrived: %+v", got)
		}
		if part := s.lookupDraft(t, "t"); part.State != channels.Failed {
			t.Errorf("book: %+v", part)
		}
	})
}

// A process that takes over the channel may have missed the end of a turn, and receive events of its last steps
// after the answer was sent.
func TestNoDraftAfterTheAnswerOfAnEarlierProcess(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		s.publishAnswer(t, a, "The answer")
		if err := s.endDispatcher(); err != nil {
			t.Error(err)
		}
		next := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: p, Bus: s.Bus, Book: s.Book, Drafts: s.Book, Log: s.Logger()})
		sleep(time.Second)
		a.Start()
		a.EmitToolCall("look", "around")
		sleep(time.Minute)
		wantShown(t, p, "1", "The answer")
		s.requireNoDraft(t, "t")
		if err := next.end(); err != nil {
			t.Error(err)
		}
	})
}

// Messages that an earlier process has postponed come first. If a draft were posted before them, it would
// become an answer above them.
func TestADraftWaitsForMailOfAnEarlierProcess(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		p.OnSend = failFirstSends("1", false, &channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 20 * time.Second})
		s.publishAnswer(t, s.Speaker("t", "1"), "The first answer")
		if err := s.endDispatcher(); err != nil {
			t.Error(err)
		}
		p.OnSend = nil
		next := startDispatcher(t, &dispatch.Dispatcher{Name: "c", Channel: p, Bus: s.Bus, Book: s.Book, Drafts: s.Book, Log: s.Logger()})
		sleep(time.Second)
		a := s.Speaker("u", "1")
		a.Start()
		a.EmitText("The second")
		sleep(10 * time.Second)
		wantShown(t, p, "1")
		sleep(time.Minute)
		wantShown(t, p, "1", "The first answer", "The second\n\n…")
		s.publishAnswer(t, a, "The second answer")
		wantShown(t, p, "1", "The first answer", "The second answer")
		if err := next.end(); err != nil {
			t.Error(err)
		}
	})
}

// Before a message replaces a draft, the draft stops being the turn's. Otherwise, after a crash in between, the
// turn's next message would replace it again.
func TestADraftIsClaimedBeforeItIsReplaced(t *testing.T) {
	var seen []string
	look := func(t *testing.T, s *testStage, _ *runningDispatcher) {
		seen = append(seen, s.lookupDraft(t, "t").State)
	}
	withDraftsAndPoint(t, "send:held", look, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("Words")
		sleep(2 * time.Second)
		s.publish(t, bus.Outbound{ID: "t#note", To: bus.Address{Channel: "c", Chat: "1"}, Text: "A note", Turn: "t"})
		sleep(time.Second)
		s.publishAnswer(t, a, "The answer")
		sleep(time.Second)
		wantShown(t, p, "1", "A note", "The answer")
		if len(seen) != 2 || seen[0] != channels.Sent {
			t.Errorf("the draft's states before each send: %v", seen)
		}
	})
}
