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
	a.Bus.Emit(e)
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
func drafting(t *testing.T, setup func(*channelstest.EditingChannel), run func(*testing.T, *stage, *channelstest.EditingChannel)) {
	t.Helper()
	editing(t, func(p *channelstest.EditingChannel) {
		p.Offers.DraftEvery, p.Offers.Length = draftEvery, 1000
		if setup != nil {
			setup(p)
		}
	}, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
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
	if _, err := s.Book.Lookup(t.Context(), turn+"#draft"); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("turn %s has a draft in the book: %v", turn, err)
	}
}

func TestADraftGrowsAndTurnsIntoTheAnswer(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
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
		if draft := s.state(t, "t#draft"); draft.Writer != "main:c:1" || draft.Session != "" {
			t.Errorf("the draft is of %q and %q", draft.Writer, draft.Session)
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
		drafting(t, nil, func(t *testing.T, s *stage, _ *channelstest.EditingChannel) { turn(t, s, 900*time.Millisecond) })
	})
	t.Run("a channel that does not ask", func(t *testing.T) {
		editing(t, nil, func(t *testing.T, s *stage, _ *channelstest.EditingChannel) { turn(t, s, time.Minute) })
	})
	t.Run("a channel that cannot edit", func(t *testing.T) {
		setup := func(s *stage, _ *dispatch.Dispatcher) { s.Platform.Offers.DraftEvery = draftEvery }
		inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) { turn(t, s, time.Minute) })
	})
	t.Run("no room in the pace", func(t *testing.T) {
		setup := func(p *channelstest.EditingChannel) { p.Offers.Chat = channels.Pace{Every: time.Second, Burst: 1} }
		drafting(t, setup, func(t *testing.T, s *stage, _ *channelstest.EditingChannel) { turn(t, s, time.Minute) })
	})
	t.Run("no book of drafts", func(t *testing.T) {
		setup := func(s *stage, d *dispatch.Dispatcher) {
			s.Platform.Offers.DraftEvery = draftEvery
			d.Channel, d.Drafts = &channelstest.EditingChannel{MemoryChannel: s.Platform}, nil
		}
		inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) { turn(t, s, time.Minute) })
	})
}

func TestADraftShowsToolsAndStartsOver(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
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

func TestADraftOfATurnThatWaits(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		for i, asks := range []bool{false, true} {
			a := s.speaker(fmt.Sprint("t", i), fmt.Sprint(i))
			a.start()
			a.says("May I?")
			lasts(2 * time.Second)
			a.emit(bus.Event{Type: bus.TurnParked})
			if asks {
				question := a.reply("May I do that?")
				question.ID = a.turn + "#ask"
				s.post(t, question)
			}
			lasts(time.Hour)
			a.runs("exec_shell", "make")
			a.says("I did it")
			lasts(2 * time.Second)
		}
		wantShown(t, p, "0", "I did it\n\n…")
		wantShown(t, p, "1", "May I do that?")
	})
}

// A question that has a subject takes the draft's place; how it has ended replaces the
// question, and leaves the draft of what the turn does then to the answer.
func TestADraftTurnsIntoAQuestion(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.speaker("t", "1")
		about := func(id, text string) bus.Outbound {
			out := a.reply(text)
			out.ID, out.Subject = id, "ask"
			return out
		}
		a.start()
		a.runs("read_file", "a.txt")
		lasts(2 * time.Second)
		wantShown(t, p, "1", "· read_file a.txt")
		s.post(t, about("ask#ask/0", "May I?"))
		a.emit(bus.Event{Type: bus.TurnParked})
		lasts(time.Hour)
		s.post(t, about("ask#ended/0", "May I? Yes."))
		a.answers(t, "I did it")
		wantShown(t, p, "1", "May I? Yes.", "I did it")

		b := s.speaker("u", "2")
		about = func(id, text string) bus.Outbound {
			out := b.reply(text)
			out.ID, out.Subject = id, "another"
			return out
		}
		b.start()
		s.post(t, about("another#ask/0", "May I?"))
		b.emit(bus.Event{Type: bus.TurnParked})
		lasts(time.Hour)
		b.start()
		b.runs("exec_shell", "make")
		lasts(2 * time.Second)
		wantShown(t, p, "2", "May I?", "· exec_shell make")
		s.post(t, about("another#ended/0", "May I? Yes."))
		lasts(2 * time.Second)
		wantShown(t, p, "2", "May I? Yes.", "· exec_shell make")
		b.answers(t, "I did it")
		wantShown(t, p, "2", "May I? Yes.", "I did it")
		if left, err := s.Book.Drafts(t.Context(), "c"); err != nil || len(left) != 0 {
			t.Errorf("left over: %+v, %v", left, err)
		}
	})
}

func TestNoDraftAfterTheAnswer(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.speaker("t", "1")
		a.start()
		a.says("The")
		lasts(900 * time.Millisecond)
		s.post(t, a.reply("The answer")) // overtakes the events
		lasts(2 * time.Second)
		a.goesOn(" answer")
		lasts(2 * time.Second)
		a.emit(bus.Event{Type: bus.TurnComplete})
		lasts(time.Minute)
		wantShown(t, p, "1", "The answer")
		if len(p.Sent()) != 1 {
			t.Errorf("arrived: %+v", p.Sent())
		}
	})
}

func TestADraftOfATurnThatWasStopped(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
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
		wantShown(t, p, "2", "· grep x\n\n(Stopped before there was an answer.)")
		wantShown(t, p, "3")
	})
}

func TestAnswersThatDoNotFitTheDraft(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("Nine words make a sentence that is quite short. ", 5))
	t.Run("a long one", func(t *testing.T) {
		short := func(p *channelstest.EditingChannel) { p.Offers.Length = 100 }
		drafting(t, short, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
			a := s.speaker("t", "1")
			a.start()
			a.says(long)
			lasts(time.Minute)
			a.goesOn(" And more that is not to be seen yet.")
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
		setup := func(p *channelstest.EditingChannel) {
			p.OnEdit = func(string) error { return &channels.SendError{Fault: channels.Rejected, Code: "gone"} }
		}
		drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
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
		drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
			a := s.speaker("t", "1")
			a.start()
			a.says("So")
			lasts(2 * time.Second)
			a.goesOn(" far")
			lasts(time.Minute)
			wantShown(t, p, "1", "So\n\n…")
			a.answers(t, "The answer")
			wantShown(t, p, "1", "The answer")
			if strings.Contains(s.Log.String(), "secret") {
				t.Errorf("log: %s", s.Log)
			}
		})
	})
	t.Run("what a tool says comes first", func(t *testing.T) {
		drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
			a := s.speaker("t", "1")
			a.start()
			a.says("Telling you")
			lasts(2 * time.Second)
			said := a.reply("Hello from a tool")
			said.ID = "t#call"
			elsewhere := a.reply("Hello from afar")
			elsewhere.ID, elsewhere.To.Chat = "t#call/1", "2"
			s.post(t, elsewhere)
			synctest.Wait()
			wantShown(t, p, "1", "Telling you\n\n…")
			s.post(t, said)
			a.runs("message", "1")
			a.says("Told ")
			lasts(10 * time.Second)
			a.answers(t, "Told.")
			wantShown(t, p, "1", "Hello from a tool", "Told.")
			wantShown(t, p, "2", "Hello from afar")
		})
	})
}

// What a turn is about to do is shown while it runs, as it changes, beside what its tools
// do; its news may come in pieces.
func TestADraftShowsWhatIsToBeDone(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.speaker("t", "1")
		a.start()
		a.writes("c1", "0 of 2 done\n▶ look\n☐ me", "nd it")
		lasts(10 * time.Second)
		if last := p.Sent()[len(p.Sent())-1].Part.Text; !strings.Contains(last, "▶ look\n") || !strings.Contains(last, "☐ mend it\n") || !strings.Contains(last, "todo_write 0 of 2 done") {
			t.Errorf("it shows %q", last)
		}
		a.writes("c2", "1 of 2 done\n☑ look\n▶ mend it")
		a.runs("read_file", "a.txt")
		lasts(10 * time.Second)
		if last := p.Sent()[len(p.Sent())-1].Part.Text; !strings.Contains(last, "☑ look\n") || strings.Contains(last, "▶ look") || !strings.Contains(last, "a.txt") {
			t.Errorf("later it shows %q", last)
		}
		a.answers(t, "The answer")
		lasts(time.Minute)
		wantShown(t, p, "1", "The answer")
	})
}

func (a *speaker) writes(call string, pieces ...string) {
	const tool = "todo_write"
	a.block++
	a.emit(bus.Event{Type: bus.ToolStart, Tool: tool, Call: call})
	for _, piece := range pieces {
		a.emit(bus.Event{Type: bus.ToolProgress, Tool: tool, Call: call, Delta: piece})
	}
	a.emit(bus.Event{Type: bus.ToolEnd, Tool: tool, Call: call})
}
