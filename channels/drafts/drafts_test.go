package drafts_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/drafts"
	"parley/channels/markup"
	"parley/channels/pacing"
	"parley/channels/stagetest"
)

const draftEvery = 1500 * time.Millisecond

const sentence = "これは長い答えの一文です。" // 13 characters, 39 bytes

// narrow leaves an edit less room than a message has.
func narrow(p *channelstest.EditingChannel) { p.Offers.EditBytes = 1000 }

// A stage is a bus and a book with a platform before them, on which drafts are shown.
type stage struct {
	*stagetest.Stage
	screen *channelstest.EditingChannel
}

// following shows drafts in a bubble, while the test says what turns do.
func following(t *testing.T, setup func(*channelstest.EditingChannel), run func(*testing.T, *stage)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{Stage: stagetest.Open(t, dir, sqlitebus.Config{})}
		defer s.Close()
		s.screen = &channelstest.EditingChannel{MemoryChannel: s.Platform}
		s.Platform.Offers.DraftEvery, s.Platform.Offers.Length = draftEvery, 1000
		if setup != nil {
			setup(s.screen)
		}
		d := drafts.New(drafts.Config{
			Name: "c", Channel: s.screen, Book: s.Book, Recorded: s.Book, Mail: s.Bus, Workers: 1, Log: s.Logger(),
			Write: func(work context.Context, write func(context.Context) error) error { return write(work) },
			Pace:  pacing.New("c", s.screen.Limits(), s.Bus), Renderer: markup.New(), Moved: func(chat string) string { return chat },
		})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		d.Start(ctx, t.Context(), &running)
		running.Go(func() { bus.Follow(ctx, s.Bus, "c", d) })
		synctest.Wait()
		run(t, s)
		stop()
		running.Wait()
	})
}

func (s *stage) recorded(t *testing.T, turn string) channels.Send {
	t.Helper()
	send, err := s.Book.Lookup(t.Context(), drafts.ID(turn))
	if err != nil {
		t.Fatal(err)
	}
	return send
}

func (s *stage) wantShown(t *testing.T, chat string, want ...string) {
	t.Helper()
	if got := s.screen.Shown(chat); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("chat %s shows %q, want %q", chat, got, want)
	}
}

// lasts lets time pass.
func lasts(d time.Duration) {
	time.Sleep(d) // the bubble's clock
	synctest.Wait()
}

func TestADraftShowsToolsAndStartsOver(t *testing.T) {
	following(t, nil, func(t *testing.T, s *stage) {
		a := s.Speaker("t", "1")
		shows := func(want string) {
			t.Helper()
			lasts(2 * draftEvery)
			s.wantShown(t, "1", want)
		}
		a.Start()
		lasts(time.Minute)
		s.wantShown(t, "1")
		a.Says("Let me see.")
		shows("Let me see.\n\n…")
		a.Block++
		for _, kind := range []string{"user", "tool_use", "tool_result"} { // which no draft shows
			a.Emit(bus.Event{Type: bus.BlockStart, Kind: kind, Tool: "read_file"})
			a.Emit(bus.Event{Type: bus.BlockDelta, Kind: kind, Delta: `{"path":"x"}`})
			a.Emit(bus.Event{Type: bus.BlockStop, Kind: kind})
		}
		shows("Let me see.\n\n…")
		a.Runs("read_file", "notes\n@here `.txt")
		shows("Let me see.\n\n· read_file notes@here .txt")
		a.Block++
		a.Emit(bus.Event{Type: bus.BlockStart, Kind: "thinking"})
		a.Emit(bus.Event{Type: bus.BlockDelta, Kind: "thinking", Delta: "secret"})
		shows("Let me see.\n\n· read_file notes@here .txt")
		a.Block++
		a.Says("The notes ")
		shows("The notes\n\n…")
		a.Emit(bus.Event{Type: bus.BlockReset})
		a.GoesOn("of a block that is void")
		shows("The notes\n\n…")
		a.Says("They say: nothing.")
		shows("They say: nothing.\n\n…")
		a.Block++
		a.Says("Really.")
		shows("They say: nothing.\n\nReally.\n\n…")
	})
}

// What a turn is about to do is shown while it runs, as it changes, beside what its tools
// do; its news may come in pieces.
func TestADraftShowsWhatIsToBeDone(t *testing.T) {
	following(t, nil, func(t *testing.T, s *stage) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Plans("c1", "0 of 2 done\n▶ look\n☐ me", "nd it")
		lasts(10 * time.Second)
		if last := s.screen.Sent()[len(s.screen.Sent())-1].Part.Text; !strings.Contains(last, "▶ look\n") || !strings.Contains(last, "☐ mend it\n") || !strings.Contains(last, "todo_write 0 of 2 done") {
			t.Errorf("it shows %q", last)
		}
		a.Plans("c2", "1 of 2 done\n☑ look\n▶ mend it")
		a.Runs("read_file", "a.txt")
		lasts(10 * time.Second)
		if last := s.screen.Sent()[len(s.screen.Sent())-1].Part.Text; !strings.Contains(last, "☑ look\n") || strings.Contains(last, "▶ look") || !strings.Contains(last, "a.txt") {
			t.Errorf("later it shows %q", last)
		}
	})
}

func TestADraftOfATurnThatWasStopped(t *testing.T) {
	following(t, nil, func(t *testing.T, s *stage) {
		stopped := bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}}
		said, silent, early := s.Speaker("said", "1"), s.Speaker("silent", "2"), s.Speaker("early", "3")
		for _, a := range []*stagetest.Speaker{said, silent, early} {
			a.Start()
		}
		early.Says("Something")
		early.Emit(stopped)
		said.Says("Something")
		silent.Runs("grep", "x")
		lasts(2 * time.Second)
		said.Emit(stopped)
		silent.Emit(stopped)
		lasts(time.Minute)
		s.wantShown(t, "1", "Something\n\n(Stopped.)")
		s.wantShown(t, "2", "· grep x\n\n(Stopped before there was an answer.)")
		s.wantShown(t, "3")
	})
}

func TestADraftLongerThanAMessageShowsThatItGoesOn(t *testing.T) {
	following(t, narrow, func(t *testing.T, s *stage) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says(strings.Repeat(sentence, 2))
		seen := map[string]bool{}
		for range 40 {
			a.GoesOn(strings.Repeat(sentence, 50))
			lasts(2 * draftEvery)
			shown := s.screen.Shown("1")
			if len(shown) != 1 || len(shown[0]) > 1000 || !strings.Contains(shown[0], " characters so far") {
				t.Fatalf("the chat shows %q", shown)
			}
			seen[shown[0]] = true
		}
		if len(seen) != 40 {
			t.Errorf("%d drafts were seen in 40 steps of the answer", len(seen))
		}
	})
}

// Where there is no room to say that an answer was stopped, its draft is left as
// it is, and left alone.
func TestADraftThatHasNoRoomIsOverWhenItsTurnIsStopped(t *testing.T) {
	short := func(p *channelstest.EditingChannel) { p.Offers.Length = 100 }
	following(t, short, func(t *testing.T, s *stage) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says(strings.Repeat("word ", 50))
		lasts(time.Minute)
		a.Emit(bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
		lasts(time.Minute)
		if parts := s.recorded(t, "t").Parts; len(parts) != 1 || parts[0].State != channels.Sent {
			t.Errorf("the draft is still open: %+v", parts)
		}
		if len(s.screen.Shown("1")) != 1 {
			t.Errorf("the chat shows %q", s.screen.Shown("1"))
		}
	})
}

// Of an answer that is stopped the whole will not come.
func TestALongDraftOfATurnThatWasStopped(t *testing.T) {
	following(t, narrow, func(t *testing.T, s *stage) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says(strings.Repeat(sentence, 50))
		lasts(2 * draftEvery)
		a.Emit(bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
		lasts(time.Minute)
		shown := s.screen.Shown("1")
		if len(shown) != 1 || !strings.Contains(shown[0], "Stopped after 650 characters") || strings.Contains(shown[0], "so far") {
			t.Errorf("the chat shows %q", shown)
		}
		if parts := s.recorded(t, "t").Parts; len(parts) != 1 || parts[0].State != channels.Sent {
			t.Errorf("the draft is still open: %+v", parts)
		}
	})
}

func TestTheThreadsOfAChatTakeTurns(t *testing.T) {
	following(t, nil, func(t *testing.T, s *stage) {
		var all []*stagetest.Speaker
		for i := range 3 {
			a := s.Speaker(fmt.Sprint("t", i), "1")
			a.At.Thread = fmt.Sprint(i)
			a.Start()
			a.Says("Words")
			all = append(all, a)
		}
		for range 200 {
			for _, a := range all {
				a.GoesOn(" more")
			}
			lasts(100 * time.Millisecond)
		}
		threads := map[string]int{}
		for i, a := range s.screen.Sent() {
			threads[a.To.Thread]++
			if i > 0 && a.At.Sub(s.screen.Sent()[i-1].At) < draftEvery {
				t.Errorf("call %d is %v after the one before", i, a.At.Sub(s.screen.Sent()[i-1].At))
			}
		}
		for i := range all {
			if n := threads[fmt.Sprint(i)]; n < 3 || n > 5 {
				t.Errorf("thread %d was shown %d times in twenty seconds", i, n)
			}
		}
	})
}
