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

// limitEdits makes edits accept less text than new messages.
func limitEdits(p *channelstest.EditingChannel) { p.ChannelLimits.EditBytes = 1000 }

// A testStage is a bus, a book and a platform on which drafts are shown.
type testStage struct {
	*stagetest.Stage
	screen *channelstest.EditingChannel
}

// withDrafts shows drafts in a synctest bubble while the test emits the events of turns.
func withDrafts(t *testing.T, setup func(*channelstest.EditingChannel), run func(*testing.T, *testStage)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &testStage{Stage: stagetest.Open(t, dir, sqlitebus.Config{})}
		defer s.Close()
		s.screen = &channelstest.EditingChannel{MemoryChannel: s.Platform}
		s.Platform.ChannelLimits.DraftEvery, s.Platform.ChannelLimits.Length = draftEvery, 1000
		if setup != nil {
			setup(s.screen)
		}
		d := drafts.New(drafts.Config{
			Name: "c", Channel: s.screen, Book: s.Book, RecordedDrafts: s.Book, Mail: s.Bus, Workers: 1, Log: s.Logger(),
			Write: func(work context.Context, write func(context.Context) error) error { return write(work) },
			Pace:  pacing.New("c", s.screen.Limits(), s.Bus), Renderer: markup.New(), CurrentChat: func(chat string) string { return chat },
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

func (s *testStage) lookupDraft(t *testing.T, turn string) channels.Send {
	t.Helper()
	send, err := s.Book.Lookup(t.Context(), drafts.ID(turn))
	if err != nil {
		t.Fatal(err)
	}
	return send
}

func (s *testStage) wantShown(t *testing.T, chat string, want ...string) {
	t.Helper()
	if got := s.screen.Shown(chat); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("chat %s shows %q, want %q", chat, got, want)
	}
}

// sleep lets time pass.
func sleep(d time.Duration) {
	time.Sleep(d) // in the bubble's fake time
	synctest.Wait()
}

func TestADraftShowsToolsAndStartsOver(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage) {
		a := s.Speaker("t", "1")
		shows := func(want string) {
			t.Helper()
			sleep(2 * draftEvery)
			s.wantShown(t, "1", want)
		}
		a.Start()
		sleep(time.Minute)
		s.wantShown(t, "1")
		a.EmitText("Let me see.")
		shows("Let me see.\n\n…")
		a.Block++
		for _, kind := range []string{"user", "tool_use", "tool_result"} { // kinds that no draft shows
			a.Emit(bus.Event{Type: bus.BlockStart, Kind: kind, Tool: "read_file"})
			a.Emit(bus.Event{Type: bus.BlockDelta, Kind: kind, Delta: `{"path":"x"}`})
			a.Emit(bus.Event{Type: bus.BlockStop, Kind: kind})
		}
		shows("Let me see.\n\n…")
		a.EmitToolCall("read_file", "notes\n@here `.txt")
		shows("Let me see.\n\n· read_file notes@here .txt")
		a.Block++
		a.Emit(bus.Event{Type: bus.BlockStart, Kind: "thinking"})
		a.Emit(bus.Event{Type: bus.BlockDelta, Kind: "thinking", Delta: "secret"})
		shows("Let me see.\n\n· read_file notes@here .txt")
		a.Block++
		a.EmitText("The notes ")
		shows("The notes\n\n…")
		a.Emit(bus.Event{Type: bus.BlockReset})
		a.EmitMoreText("of a block that is void")
		shows("The notes\n\n…")
		a.EmitText("They say: nothing.")
		shows("They say: nothing.\n\n…")
		a.Block++
		a.EmitText("Really.")
		shows("They say: nothing.\n\nReally.\n\n…")
	})
}

// The list of tasks is shown while the turn runs, as it changes, next to what the tools do. Its events may
// arrive in pieces.
func TestADraftShowsTheListOfTasks(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitTaskList("c1", "0 of 2 done\n▶ look\n☐ me", "nd it")
		sleep(10 * time.Second)
		if last := s.screen.Sent()[len(s.screen.Sent())-1].Part.Text; !strings.Contains(last, "▶ look\n") || !strings.Contains(last, "☐ mend it\n") || !strings.Contains(last, "todo_write 0 of 2 done") {
			t.Errorf("it shows %q", last)
		}
		a.EmitTaskList("c2", "1 of 2 done\n☑ look\n▶ mend it")
		a.EmitToolCall("read_file", "a.txt")
		sleep(10 * time.Second)
		if last := s.screen.Sent()[len(s.screen.Sent())-1].Part.Text; !strings.Contains(last, "☑ look\n") || strings.Contains(last, "▶ look") || !strings.Contains(last, "a.txt") {
			t.Errorf("later it shows %q", last)
		}
	})
}

func TestTheDraftOfAStoppedTurn(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage) {
		stopped := bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}}
		said, silent, early := s.Speaker("said", "1"), s.Speaker("silent", "2"), s.Speaker("early", "3")
		for _, a := range []*stagetest.Speaker{said, silent, early} {
			a.Start()
		}
		early.EmitText("Something")
		early.Emit(stopped)
		said.EmitText("Something")
		silent.EmitToolCall("grep", "x")
		sleep(2 * time.Second)
		said.Emit(stopped)
		silent.Emit(stopped)
		sleep(time.Minute)
		s.wantShown(t, "1", "Something\n\n(Stopped.)")
		s.wantShown(t, "2", "· grep x\n\n(Stopped before there was an answer.)")
		s.wantShown(t, "3")
	})
}

func TestALongDraftShowsItsLength(t *testing.T) {
	withDrafts(t, limitEdits, func(t *testing.T, s *testStage) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText(strings.Repeat(sentence, 2))
		seen := map[string]bool{}
		for range 40 {
			a.EmitMoreText(strings.Repeat(sentence, 50))
			sleep(2 * draftEvery)
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

// If a draft has no room for the note that its answer was stopped, it stays as it is and is not edited again.
func TestAFullDraftIsClosedWhenItsTurnIsStopped(t *testing.T) {
	short := func(p *channelstest.EditingChannel) { p.ChannelLimits.Length = 100 }
	withDrafts(t, short, func(t *testing.T, s *testStage) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText(strings.Repeat("word ", 50))
		sleep(time.Minute)
		a.Emit(bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
		sleep(time.Minute)
		if parts := s.lookupDraft(t, "t").Parts; len(parts) != 1 || parts[0].State != channels.Sent {
			t.Errorf("the draft is still open: %+v", parts)
		}
		if len(s.screen.Shown("1")) != 1 {
			t.Errorf("the chat shows %q", s.screen.Shown("1"))
		}
	})
}

// If a long answer is stopped, the rest of it will not come.
func TestTheLongDraftOfAStoppedTurn(t *testing.T) {
	withDrafts(t, limitEdits, func(t *testing.T, s *testStage) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText(strings.Repeat(sentence, 50))
		sleep(2 * draftEvery)
		a.Emit(bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
		sleep(time.Minute)
		shown := s.screen.Shown("1")
		if len(shown) != 1 || !strings.Contains(shown[0], "Stopped after 650 characters") || strings.Contains(shown[0], "so far") {
			t.Errorf("the chat shows %q", shown)
		}
		if parts := s.lookupDraft(t, "t").Parts; len(parts) != 1 || parts[0].State != channels.Sent {
			t.Errorf("the draft is still open: %+v", parts)
		}
	})
}

func TestTheThreadsOfAChatTakeTurns(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage) {
		var all []*stagetest.Speaker
		for i := range 3 {
			a := s.Speaker(fmt.Sprint("t", i), "1")
			a.At.Thread = fmt.Sprint(i)
			a.Start()
			a.EmitText("Words")
			all = append(all, a)
		}
		for range 200 {
			for _, a := range all {
				a.EmitMoreText(" more")
			}
			sleep(100 * time.Millisecond)
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
