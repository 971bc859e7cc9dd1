package channels_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
)

const draftEvery = 1500 * time.Millisecond

// A speaker is an agent at work on one turn.
type speaker struct {
	*stage
	turn  string
	at    bus.Address
	block int
}

func (s *stage) speaker(turn, chat string) *speaker {
	return &speaker{stage: s, turn: turn, at: bus.Address{Channel: "c", Chat: chat}}
}

func (a *speaker) emit(e bus.Event) {
	e.Session, e.Turn, e.Route, e.Block = "main:"+a.at.String(), a.turn, a.at, a.block
	a.bus.Emit(e)
}

func (a *speaker) start() { a.emit(bus.Event{Type: bus.TurnStart, Causes: []string{a.turn}}) }

// says is a block of text from its beginning.
func (a *speaker) says(deltas ...string) {
	a.emit(bus.Event{Type: bus.BlockStart, Kind: "text"})
	a.goesOn(deltas...)
}

func (a *speaker) goesOn(deltas ...string) {
	for _, delta := range deltas {
		a.emit(bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: delta})
	}
}

func (a *speaker) runs(tool, about string) {
	a.block++
	a.emit(bus.Event{Type: bus.ToolStart, Tool: tool, Call: "c1", Delta: about})
	a.emit(bus.Event{Type: bus.ToolEnd, Tool: tool, Call: "c1"})
}

func (a *speaker) reply(text string) bus.Outbound {
	return bus.Outbound{ID: a.turn + "#reply", To: a.at, Text: text, Session: "main:" + a.at.String(), Turn: a.turn, At: time.Now()}
}

// answers ends the turn as an agent does.
func (a *speaker) answers(t *testing.T, text string) {
	t.Helper()
	a.emit(bus.Event{Type: bus.TurnComplete, Causes: []string{a.turn}})
	a.post(t, a.reply(text))
	synctest.Wait()
}

// lasts lets time pass.
func lasts(d time.Duration) {
	time.Sleep(d) // the bubble's clock
	synctest.Wait()
}

// drafting is editing on a platform that asks for drafts.
func drafting(t *testing.T, setup func(*channelstest.EditingPlatform), run func(*testing.T, *stage, *channelstest.EditingPlatform)) {
	t.Helper()
	editing(t, func(p *channelstest.EditingPlatform) {
		p.Offers.DraftEvery, p.Offers.Length = draftEvery, 1000
		if setup != nil {
			setup(p)
		}
	}, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
		synctest.Wait()
		run(t, s, p)
	})
}

func (s *stage) draft(t *testing.T, turn string) channels.SentPart {
	t.Helper()
	return s.state(t, turn+"#draft").Parts[0]
}

func (s *stage) noDraft(t *testing.T, turn string) {
	t.Helper()
	if _, err := s.book.Lookup(t.Context(), turn+"#draft"); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("turn %s has a draft in the book: %v", turn, err)
	}
}

func TestADraftGrowsAndTurnsIntoTheAnswer(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
		a, began := s.speaker("t", "1"), time.Now()
		a.start()
		a.says("Words ")
		for i := range 100 {
			a.goesOn(fmt.Sprint(i%10, " "))
			lasts(100 * time.Millisecond)
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
		if part := s.draft(t, "t"); part.State != channels.Drafted || part.PlatformID != sent[0].ID || part.Text+part.Plain != "" {
			t.Errorf("book: %+v", part)
		}
		a.answers(t, "The answer")
		lasts(time.Minute)
		wantShown(t, p, "1", "The answer")
		if now := p.Sent(); len(now) != len(sent)+1 || now[len(sent)].At.Sub(began) > 10*time.Second+10*time.Millisecond {
			t.Errorf("%d calls more, want the answer alone and at once", len(now)-len(sent))
		}
		if part := s.state(t, "t#reply").Parts[0]; part.State != channels.Sent || part.Edits != sent[0].ID || part.PlatformID != sent[0].ID {
			t.Errorf("book: %+v", part)
		}
		if part := s.draft(t, "t"); part.State != channels.Sent {
			t.Errorf("book: %+v", part)
		}
	})
}

func TestNoDraftWhereNoneIsWanted(t *testing.T) {
	turn := func(t *testing.T, s *stage, lasting time.Duration) {
		a := s.speaker("t", "1")
		synctest.Wait()
		a.start()
		a.says(strings.Repeat("words ", 10))
		lasts(lasting)
		a.answers(t, "The answer")
		lasts(time.Minute)
		wantTexts(t, s, "1", "The answer")
		s.noDraft(t, "t")
	}
	t.Run("a quick turn", func(t *testing.T) {
		drafting(t, nil, func(t *testing.T, s *stage, _ *channelstest.EditingPlatform) { turn(t, s, 900*time.Millisecond) })
	})
	t.Run("a channel that does not ask", func(t *testing.T) {
		editing(t, nil, func(t *testing.T, s *stage, _ *channelstest.EditingPlatform) { turn(t, s, time.Minute) })
	})
	t.Run("a channel that cannot edit", func(t *testing.T) {
		setup := func(s *stage, _ *channels.Dispatcher) { s.platform.Offers.DraftEvery = draftEvery }
		dispatch(t, setup, func(t *testing.T, s *stage, _ *running) { turn(t, s, time.Minute) })
	})
	t.Run("no room in the pace", func(t *testing.T) {
		setup := func(p *channelstest.EditingPlatform) { p.Offers.Chat = channels.Pace{Every: time.Second, Burst: 1} }
		drafting(t, setup, func(t *testing.T, s *stage, _ *channelstest.EditingPlatform) { turn(t, s, time.Minute) })
	})
	t.Run("no book of drafts", func(t *testing.T) {
		setup := func(s *stage, d *channels.Dispatcher) {
			s.platform.Offers.DraftEvery = draftEvery
			d.Channel, d.Drafts = &channelstest.EditingPlatform{Platform: s.platform}, nil
		}
		dispatch(t, setup, func(t *testing.T, s *stage, _ *running) { turn(t, s, time.Minute) })
	})
}

func TestADraftShowsToolsAndStartsOver(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
		a := s.speaker("t", "1")
		shows := func(want string) {
			t.Helper()
			lasts(2 * draftEvery)
			wantShown(t, p, "1", want)
		}
		a.start()
		lasts(time.Minute)
		wantShown(t, p, "1")
		a.says("Let me see.")
		shows("Let me see.\n\n…")
		a.runs("read_file", "notes\n@here `.txt")
		shows("Let me see.\n\n· read_file notes@here .txt")
		a.block++
		a.emit(bus.Event{Type: bus.BlockStart, Kind: "thinking"})
		a.emit(bus.Event{Type: bus.BlockDelta, Kind: "thinking", Delta: "secret"})
		shows("Let me see.\n\n· read_file notes@here .txt")
		a.block++
		a.says("The notes ")
		shows("The notes\n\n…")
		a.emit(bus.Event{Type: bus.BlockReset})
		a.goesOn("of a block that is void")
		shows("The notes\n\n…")
		a.says("They say: nothing.")
		shows("They say: nothing.\n\n…")
		a.block++
		a.says("Really.")
		shows("They say: nothing.\n\nReally.\n\n…")
		a.answers(t, "They say: nothing.\n\nReally.")
		wantShown(t, p, "1", "They say: nothing.\n\nReally.")
	})
}

func TestADraftOfATurnThatWasStopped(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
		stopped := bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}}
		said, silent, early := s.speaker("said", "1"), s.speaker("silent", "2"), s.speaker("early", "3")
		for _, a := range []*speaker{said, silent, early} {
			a.start()
		}
		early.says("Something")
		early.emit(stopped)
		said.says("Something")
		silent.runs("grep", "x")
		lasts(2 * time.Second)
		said.emit(stopped)
		silent.emit(stopped)
		lasts(time.Minute)
		wantShown(t, p, "1", "Something\n\n(Stopped.)")
		wantShown(t, p, "2", "Stopped.")
		wantShown(t, p, "3")
	})
}

func TestAnswersThatDoNotFitTheDraft(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("Nine words make a sentence that is quite short. ", 5))
	t.Run("a long one", func(t *testing.T) {
		short := func(p *channelstest.EditingPlatform) { p.Offers.Length = 100 }
		drafting(t, short, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
			a := s.speaker("t", "1")
			a.start()
			a.says(long)
			lasts(time.Minute)
			if len(p.Sent()) != 1 {
				t.Errorf("%d calls for a text that fills the message", len(p.Sent()))
			}
			a.answers(t, long)
			shown := p.Shown("1")
			if len(shown) < 3 || strings.Join(shown, " ") != long {
				t.Errorf("shown %q", shown)
			}
		})
	})
	t.Run("one where the draft cannot be edited any more", func(t *testing.T) {
		setup := func(p *channelstest.EditingPlatform) {
			p.OnEdit = func(string) error { return &channels.SendError{Fault: channels.Rejected, Code: "gone"} }
		}
		drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
			a := s.speaker("t", "1")
			a.start()
			a.says("So far")
			lasts(2 * time.Second)
			a.answers(t, "The answer")
			lasts(time.Minute)
			wantShown(t, p, "1", "So far\n\n…", "The answer")
			if part := s.draft(t, "t"); part.State != channels.Sent {
				t.Errorf("book: %+v", part)
			}
		})
	})
	t.Run("what a tool says comes first", func(t *testing.T) {
		drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
			a := s.speaker("t", "1")
			a.start()
			a.says("Telling you")
			lasts(2 * time.Second)
			said := a.reply("Hello from a tool")
			said.ID = "t#call"
			elsewhere := a.reply("Hello from afar")
			elsewhere.ID, elsewhere.To.Chat = "t#call/1", "2"
			s.post(t, elsewhere, said)
			a.runs("message", "1")
			a.says("Told ")
			lasts(10 * time.Second)
			a.answers(t, "Told.")
			wantShown(t, p, "1", "Hello from a tool", "Told.")
			wantShown(t, p, "2", "Hello from afar")
		})
	})
}

func TestADraftMakesRoom(t *testing.T) {
	t.Run("for mail that waits", func(t *testing.T) {
		setup := func(p *channelstest.EditingPlatform) {
			p.OnSend = failing("1", false, &channels.SendError{Fault: channels.Retry, RetryAfter: 30 * time.Second, Code: "503"})
		}
		drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
			s.post(t, outbound("earlier", "1", "said before"))
			a := s.speaker("t", "1")
			a.start()
			a.says("Words")
			lasts(20 * time.Second)
			wantShown(t, p, "1")
			lasts(20 * time.Second)
			wantShown(t, p, "1", "said before", "Words\n\n…")
		})
	})
	t.Run("for the answer, which waits for the call under way", func(t *testing.T) {
		setup := func(p *channelstest.EditingPlatform) {
			p.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
				if strings.HasPrefix(part.Key, "t#draft") {
					time.Sleep(2 * time.Second) // the bubble's clock
				}
				return true, nil
			}
		}
		drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
			a := s.speaker("t", "1")
			a.start()
			a.says("Words")
			lasts(2 * time.Second) // the draft is being posted
			a.answers(t, "The answer")
			lasts(time.Minute)
			wantShown(t, p, "1", "The answer")
			if sent := p.Sent(); len(sent) != 2 {
				t.Errorf("arrived: %+v", sent)
			}
		})
	})
	t.Run("in the pace", func(t *testing.T) {
		setup := func(p *channelstest.EditingPlatform) {
			p.Offers.Chat, p.Offers.Account = channels.Pace{Every: 2 * time.Second, Burst: 3}, channels.Pace{Every: time.Second / 2, Burst: 8}
		}
		drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
			var all []*speaker
			for i := range 10 {
				a := s.speaker(fmt.Sprint("t", i), fmt.Sprint(i))
				a.start()
				a.says("Words")
				all = append(all, a)
			}
			for range 100 {
				for _, a := range all {
					a.goesOn(" and words")
				}
				lasts(200 * time.Millisecond)
			}
			if n := len(p.Sent()); n < 30 || n > 48 {
				t.Errorf("%d calls in twenty seconds", n)
			}
			began := time.Now()
			all[0].answers(t, "The answer")
			if shown := p.Shown("0"); shown[len(shown)-1] != "The answer" || time.Since(began) > 0 {
				t.Errorf("the answer was kept waiting: shown %q", shown)
			}
		})
	})
}

func TestARateLimitStopsTheDraftsOfAChat(t *testing.T) {
	limited := &channels.SendError{Fault: channels.Retry, Limited: true, RetryAfter: 20 * time.Second, Code: "429"}
	setup := func(p *channelstest.EditingPlatform) {
		first := true
		p.OnEdit = func(id string) error {
			if id != "id1" || !first {
				return nil
			}
			first = false
			return limited
		}
	}
	drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
		one, other, third := s.speaker("t", "1"), s.speaker("u", "2"), s.speaker("v", "1")
		third.at.Thread = "7"
		for _, a := range []*speaker{one, other} {
			a.start()
			a.says("Words")
			lasts(100 * time.Millisecond)
		}
		grow := func(n int) {
			for range n {
				one.goesOn(" more")
				other.goesOn(" more")
				lasts(time.Second)
			}
		}
		grow(15)
		if len(p.Texts("1")) != 1 || len(p.Texts("2")) < 5 {
			t.Errorf("shown %q and %q", p.Texts("1"), p.Texts("2"))
		}
		third.start()
		third.says("In a thread of the same chat")
		grow(5)
		if len(p.Texts("1")) != 1 {
			t.Errorf("shown %q", p.Texts("1"))
		}
		began := time.Now()
		one.answers(t, "The answer")
		if shown := p.Shown("1"); shown[0] != "The answer" || time.Since(began) > 0 {
			t.Errorf("the answer was kept waiting: shown %q", shown)
		}
		grow(10)
		wantShown(t, p, "1", "The answer", "In a thread of the same chat\n\n…")
	})
}

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
			var p *channelstest.EditingPlatform
			setup := func(s *stage, d *channels.Dispatcher) {
				s.platform.Offers.DraftEvery = draftEvery
				p = &channelstest.EditingPlatform{Platform: s.platform, OnEdit: func(string) error { return nil }}
				d.Channel = p
				if c.tracing {
					d.Channel = tracingEditor{p}
				}
				s.platform.OnSend = failing("1", c.arrives, c.err)
			}
			dispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
				synctest.Wait()
				a := s.speaker("t", "1")
				a.start()
				a.says("Words")
				lasts(time.Minute)
				a.answers(t, "The answer")
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
type tracingEditor struct{ *channelstest.EditingPlatform }

func (p tracingEditor) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	return channelstest.TracingPlatform{Platform: p.Platform}.FindSent(ctx, to, part)
}

func TestTheNextProcessGoesOnWithDrafts(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
		// Two of an earlier process, one of them forgotten long ago.
		for _, turn := range []string{"t", "u"} {
			to := bus.Address{Channel: "c", Chat: turn}
			id, err := p.Send(t.Context(), to, channels.Part{Key: turn + "#draft/0", Text: "So far"})
			if err == nil {
				_, _, err = s.book.Begin(t.Context(), channels.Send{ID: turn + "#draft", To: to, Parts: []channels.SentPart{{State: channels.Drafted}}})
			}
			if err == nil {
				err = s.book.Mark(t.Context(), turn+"#draft", 0, channels.SentPart{State: channels.Drafted, PlatformID: id})
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
		next := start(t, &channels.Dispatcher{Name: "c", Channel: p, Bus: s.bus, Book: s.book, Drafts: s.book, Log: s.logger()})
		lasts(time.Second)
		old, a := s.speaker("t", "t"), s.speaker("u", "u")
		a.goesOn("lost")
		a.emit(bus.Event{Type: bus.BlockReset})
		a.says("Begun again")
		lasts(time.Second)
		wantShown(t, p, "u", "Begun again\n\n…")
		old.answers(t, "Late")
		a.answers(t, "The answer")
		wantShown(t, p, "t", "So far", "Late")
		wantShown(t, p, "u", "The answer")
		drafts, err := s.book.Drafts(t.Context(), "c")
		if err != nil || len(drafts) != 0 {
			t.Errorf("left over: %+v, %v", drafts, err)
		}
		if err := next.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestManyTurnsAtOnce(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingPlatform) {
		const turns = 100
		for round := range 2 {
			var all []*speaker
			for i := range turns {
				a := s.speaker(fmt.Sprintf("t%d-%d", round, i), fmt.Sprint(i))
				a.start()
				a.says("Words")
				all = append(all, a)
			}
			lasts(3 * time.Second)
			for i, a := range slices.Backward(all) {
				a.post(t, a.reply(fmt.Sprint("answer ", i)))
				a.emit(bus.Event{Type: bus.TurnComplete})
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
