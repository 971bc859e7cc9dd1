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

func TestADraftOfUnknownOutcomeIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		arrives bool
		tracing bool
		state   string
		shown   []string
	}{
		"unknown":             {errors.New("connection reset"), true, false, channels.Unsure, []string{"Words\n\n…", "The answer"}},
		"found":               {errors.New("connection reset"), true, true, channels.Sent, []string{"The answer"}},
		"found not to be":     {errors.New("connection reset"), false, true, channels.Failed, []string{"The answer"}},
		"refused":             {&channels.SendError{Fault: channels.Rejected, Code: "no"}, false, false, channels.Failed, []string{"The answer"}},
		"asked for patience":  {&channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: time.Second}, false, false, channels.Failed, []string{"The answer"}},
		"refused the account": {&channels.SendError{Fault: channels.Stop, Code: "401"}, false, false, channels.Failed, []string{"The answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			var p *channelstest.EditingChannel
			setup := func(s *stage, d *dispatch.Dispatcher) {
				s.Platform.Offers.DraftEvery = draftEvery
				p = &channelstest.EditingChannel{MemoryChannel: s.Platform, OnEdit: func(string) error { return nil }}
				d.Channel = p
				if c.tracing {
					d.Channel = tracingEditor{p}
				}
				s.Platform.OnSend = failing("1", c.arrives, c.err)
			}
			inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
				synctest.Wait()
				a := s.Speaker("t", "1")
				a.Start()
				a.Says("Words")
				lasts(time.Minute)
				s.answers(t, a, "The answer")
				lasts(time.Minute)
				wantShown(t, p, "1", c.shown...)
				if part := s.draft(t, "t"); part.State != c.state || (part.Interrupted == 1) != (c.state == channels.Unsure) {
					t.Errorf("book: %+v", part)
				}
				if part := s.state(t, "t#reply").Parts[0]; part.State != channels.Sent || part.Interrupted != 0 {
					t.Errorf("book: %+v", part)
				}
			})
		})
	}
}

// A tracingEditor can also tell what has arrived.
type tracingEditor struct{ *channelstest.EditingChannel }

func (p tracingEditor) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	return channelstest.TracingChannel{MemoryChannel: p.MemoryChannel}.FindSent(ctx, to, part)
}

func TestTheNextProcessGoesOnWithDrafts(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		// Two of an earlier process, one of them forgotten long ago.
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
				lasts(25 * time.Hour)
			}
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
		next := start(t, &dispatch.Dispatcher{Name: "c", Channel: p, Bus: s.Bus, Book: s.Book, Drafts: s.Book, Log: s.Logger()})
		lasts(time.Second)
		old, a := s.Speaker("t", "t"), s.Speaker("u", "u")
		a.GoesOn("lost")
		a.Emit(bus.Event{Type: bus.BlockReset})
		a.Says("Begun again")
		lasts(time.Second)
		wantShown(t, p, "u", "Begun again\n\n…")
		s.answers(t, old, "Late")
		s.answers(t, a, "The answer")
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

// A process that stood still for longer than it holds the channel finds that
// another has answered.
func TestADraftThatAnotherHasReplacedIsLeftAlone(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("Words")
		lasts(2 * time.Second)
		wantShown(t, p, "1", "Words\n\n…")
		id := s.draft(t, "t").PlatformID
		if err := s.Book.Mark(t.Context(), "t#draft", 0, channels.SentPart{State: channels.Sent, PlatformID: id}); err != nil {
			t.Fatal(err)
		}
		if err := p.Edit(t.Context(), bus.Address{Channel: "c", Chat: "1"}, id, channels.Part{Text: "The answer"}); err != nil {
			t.Fatal(err)
		}
		a.GoesOn(" and more")
		lasts(time.Minute)
		wantShown(t, p, "1", "The answer")
	})
}

// A process that took the channel over may have read the drafts while an earlier one still
// finished its sends, of which one replaced a draft. Its text is not overwritten.
func TestAMessageReplacesNoDraftThatAnotherHasReplaced(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("Words")
		lasts(2 * time.Second)
		id := s.draft(t, "t").PlatformID
		if err := s.Book.Mark(t.Context(), "t#draft", 0, channels.SentPart{State: channels.Sent, PlatformID: id}); err != nil {
			t.Fatal(err)
		}
		if err := p.Edit(t.Context(), bus.Address{Channel: "c", Chat: "1"}, id, channels.Part{Text: "A note"}); err != nil {
			t.Fatal(err)
		}
		s.answers(t, a, "The answer")
		lasts(time.Second)
		wantShown(t, p, "1", "A note", "The answer")
	})
}

// draftingAt is drafting where something happens whenever a line is passed.
func draftingAt(t *testing.T, line string, passed func(*testing.T, *stage, *running), run func(*testing.T, *stage, *channelstest.EditingChannel)) {
	t.Helper()
	var pass func()
	var p *channelstest.EditingChannel
	setup := func(s *stage, d *dispatch.Dispatcher) {
		s.Platform.Offers.DraftEvery = draftEvery
		p = &channelstest.EditingChannel{MemoryChannel: s.Platform, OnEdit: func(string) error { return nil }}
		d.Channel = p
		d.Point = func(name string) {
			if name == line {
				pass()
			}
		}
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, r *running) {
		pass = func() { passed(t, s, r) }
		synctest.Wait()
		run(t, s, p)
	})
}

func TestAProcessThatLostTheChannelPostsNoDraft(t *testing.T) {
	draftingAt(t, "draft:begun", func(_ *testing.T, _ *stage, r *running) { r.stop() }, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("Words")
		lasts(time.Minute)
		if got := p.Sent(); len(got) != 0 {
			t.Errorf("arrived: %+v", got)
		}
		if part := s.draft(t, "t"); part.State != channels.Failed {
			t.Errorf("book: %+v", part)
		}
	})
}

// Whoever takes the channel over may have missed the end of a turn, and hear of
// its last steps after its answer is there.
func TestNoDraftAfterTheAnswerOfAnEarlierProcess(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		s.answers(t, a, "The answer")
		if err := s.end(); err != nil {
			t.Error(err)
		}
		next := start(t, &dispatch.Dispatcher{Name: "c", Channel: p, Bus: s.Bus, Book: s.Book, Drafts: s.Book, Log: s.Logger()})
		lasts(time.Second)
		a.Start()
		a.Runs("look", "around")
		lasts(time.Minute)
		wantShown(t, p, "1", "The answer")
		s.noDraft(t, "t")
		if err := next.end(); err != nil {
			t.Error(err)
		}
	})
}

// What an earlier process has put off is still to be said: a draft that came
// before it would turn into an answer above it.
func TestADraftWaitsForMailOfAnEarlierProcess(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		p.OnSend = failing("1", false, &channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: 20 * time.Second})
		s.answers(t, s.Speaker("t", "1"), "The first answer")
		if err := s.end(); err != nil {
			t.Error(err)
		}
		p.OnSend = nil
		next := start(t, &dispatch.Dispatcher{Name: "c", Channel: p, Bus: s.Bus, Book: s.Book, Drafts: s.Book, Log: s.Logger()})
		lasts(time.Second)
		a := s.Speaker("u", "1")
		a.Start()
		a.Says("The second")
		lasts(10 * time.Second)
		wantShown(t, p, "1")
		lasts(time.Minute)
		wantShown(t, p, "1", "The first answer", "The second\n\n…")
		s.answers(t, a, "The second answer")
		wantShown(t, p, "1", "The first answer", "The second answer")
		if err := next.end(); err != nil {
			t.Error(err)
		}
	})
}

// A draft that a message is about to replace is none anymore before that: who
// goes on after a crash must not let the turn's next message replace that one.
func TestADraftIsTakenBeforeItIsReplaced(t *testing.T) {
	var seen []string
	look := func(t *testing.T, s *stage, _ *running) { seen = append(seen, s.draft(t, "t").State) }
	draftingAt(t, "send:held", look, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("Words")
		lasts(2 * time.Second)
		s.post(t, bus.Outbound{ID: "t#note", To: bus.Address{Channel: "c", Chat: "1"}, Text: "A note", Turn: "t"})
		lasts(time.Second)
		s.answers(t, a, "The answer")
		lasts(time.Second)
		wantShown(t, p, "1", "A note", "The answer")
		if len(seen) != 2 || seen[0] != channels.Sent {
			t.Errorf("the draft's states before each send: %v", seen)
		}
	})
}
