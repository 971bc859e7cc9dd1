package owndata_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/channels"
	"parley/channels/files/copies"
	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/data/owndata"
	"parley/cmd/parley/hometest"
	"parley/sessions"
	"parley/sessions/schedules"
)

const person = "telegram:42"

// A stage is a home with Commands.
type stage struct {
	*hometest.Home
	commands *owndata.Commands
	fail     atomic.Int32 // how many of the next erasures fail
	done     atomic.Int32 // erasures that were done
	looked   atomic.Int32 // how often all conversations were scanned
}

// A countingStore counts how often all conversations are scanned.
type countingStore struct {
	owndata.Store
	stage *stage
}

func (s countingStore) SessionsOf(ctx context.Context, person string) (alone, shared []string, err error) {
	s.stage.looked.Add(1)
	return s.Store.SessionsOf(ctx, person)
}

// PersonSoon erases a person, unless it is to fail.
func (s *stage) PersonSoon(ctx context.Context, who string) (erase.Receipt, error) {
	if s.fail.Add(-1) >= 0 {
		return erase.Receipt{}, errors.New("the disk is away")
	}
	s.done.Add(1)
	return erase.New(erase.Config{
		Bus: s.Bus, Store: s.Store, Book: s.Book, Workspaces: s.Workspaces, Files: copies.Files{Store: s.Outgoing}, Log: slog.New(slog.DiscardHandler),
	}).PersonSoon(ctx, who)
}

// onStage runs a test with a stage in a synctest bubble.
func onStage(t *testing.T, run func(t *testing.T, s *stage)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{Home: hometest.Open(t, dir)}
		defer s.Close()
		s.restart()
		run(t, s)
	})
}

// restart replaces the commands with those of a new process over the same home.
func (s *stage) restart() {
	s.commands = owndata.New(owndata.Config{
		Notes: s.Book, Ratings: s.Book, Memories: s.Book, Schedules: s.Store.Schedules(), Bus: s.Bus, Store: countingStore{s.Store, s}, Eraser: func() owndata.Eraser { return s },
		Prefix: func(string) string { return "/" }, Log: slog.New(slog.DiscardHandler),
	})
}

// serve runs the Commands for a time.
func (s *stage) serve(t *testing.T, during time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), during)
	defer stop()
	if err := s.commands.Run(ctx); err != nil {
		t.Error(err)
	}
}

func command(id, name, args string) bus.Inbound {
	return bus.Inbound{
		ID: id, Kind: bus.Command, Text: name, Args: args, From: bus.Person{ID: person},
		At: bus.Address{Channel: "telegram", Chat: "42"}, Mentioned: true,
	}
}

func (s *stage) take(t *testing.T, in bus.Inbound) {
	t.Helper()
	if err := s.commands.Handle(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// sent takes the messages off the bus that wait to be sent.
func (s *stage) sent(t *testing.T) []bus.Outbound {
	t.Helper()
	return bustest.TakeOutbound(t, s.Bus, "telegram")
}

// spoke writes texts of the person into the log of a session.
func (s *stage) spoke(t *testing.T, key string, texts ...string) {
	t.Helper()
	log, err := s.Store.Open(t.Context(), key, time.Now().UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		e, err := sessions.NewEntry(fmt.Sprint("t", i), sessions.KindUser, sessions.User{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		e.Cause, e.Person = fmt.Sprint(key, i), person
		if err := log.Append(t.Context(), log.Next(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestErasingIsAskedForTwice(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.spoke(t, "main:telegram:42", "hello")
		s.take(t, command("1", "forget", "yes"))
		s.take(t, command("2", "forget", "now"))
		s.take(t, command("3", "forget", ""))
		time.Sleep(11 * time.Minute)
		s.take(t, command("4", "forget", "yes"))
		s.serve(t, time.Minute)
		if n := s.done.Load(); n != 0 {
			t.Errorf("%d erasures that nobody confirmed", n)
		}
		if got := s.sent(t); len(got) != 4 || !strings.Contains(got[3].Text, "first") {
			t.Errorf("said %+v", got)
		}
		s.take(t, command("5", "forget", ""))
		s.take(t, command("6", "forget", "YES"))
		s.serve(t, time.Minute)
		if got := s.sent(t); len(got) != 2 || s.done.Load() != 1 || !strings.Contains(got[1].Text, "I've erased it") {
			t.Errorf("%d erasures, said %+v", s.done.Load(), got)
		}
	})
}

// A command that has erased, and that the platform delivers again, doesn't erase what was said since, even if the
// person has asked again what would be erased. After some days nothing records the command.
func TestACommandErasesOnce(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.spoke(t, "main:telegram:42", "hello")
		s.take(t, command("1", "forget", ""))
		s.take(t, command("2", "forget", "yes"))
		s.serve(t, time.Minute)
		if got := s.sent(t); s.done.Load() != 1 || len(got) != 2 {
			t.Fatalf("%d erasures, said %+v", s.done.Load(), got)
		}
		s.spoke(t, "main:telegram:7", "hello again")
		s.take(t, command("3", "forget", ""))
		s.sent(t)
		s.restart()
		s.take(t, command("2", "forget", "yes"))
		s.serve(t, time.Minute)
		if got := s.sent(t); s.done.Load() != 1 || len(got) != 0 {
			t.Errorf("the command that came again: %d erasures, said %+v", s.done.Load(), got)
		}
		if alone, _, err := s.Store.SessionsOf(t.Context(), person); err != nil || len(alone) != 1 {
			t.Errorf("what was said since is in %v, %v", alone, err)
		}
		s.take(t, command("4", "forget", "yes"))
		s.serve(t, time.Minute)
		if got := s.sent(t); s.done.Load() != 2 || len(got) != 1 {
			t.Errorf("the next command: %d erasures, said %+v", s.done.Load(), got)
		}
		time.Sleep(72 * time.Hour)
		s.serve(t, time.Minute)
		if left, err := s.Book.AllNoted(t.Context(), "own_erased"); err != nil || len(left) > 0 {
			t.Errorf("the commands are remembered as %v, %v", left, err)
		}
	})
}

// A noisyBus fails to publish at first.
type noisyBus struct {
	bus.Bus
	fail int
}

func (b *noisyBus) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	if b.fail--; b.fail >= 0 {
		return errors.New("the bus is away")
	}
	return b.Bus.Publish(ctx, topic, m)
}

// If the process dies after an erasure and before the reply, the next process sends the reply, and doesn't erase what
// was said meanwhile.
func TestWhatIsErasedIsNotErasedAgainToSaySo(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.spoke(t, "main:telegram:42", "hello")
		s.take(t, command("1", "forget", ""))
		s.take(t, command("2", "forget", "yes"))
		s.sent(t)
		s.commands.Bus = &noisyBus{Bus: s.Bus, fail: 1}
		s.serve(t, time.Second)
		if s.done.Load() != 1 {
			t.Fatalf("%d erasures", s.done.Load())
		}
		s.spoke(t, "main:telegram:7", "hello again")
		s.restart()
		s.serve(t, time.Minute)
		if got := s.sent(t); s.done.Load() != 1 || len(got) != 1 || !strings.Contains(got[0].Text, "whole conversations: 1") {
			t.Errorf("%d erasures, said %+v", s.done.Load(), got)
		}
		if alone, _, err := s.Store.SessionsOf(t.Context(), person); err != nil || len(alone) != 1 {
			t.Errorf("what was said since is in %v, %v", alone, err)
		}
	})
}

// Repeated questions about what would be erased scan all conversations once. The person may confirm the newest of the
// questions.
func TestWhatWouldBeErasedIsCountedOnceInAWhile(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.spoke(t, "main:telegram:42", "hello")
		ask := func(id, want string) {
			t.Helper()
			before := s.looked.Load()
			s.take(t, command(id, "forget", ""))
			got := s.sent(t)
			if len(got) != 1 || !strings.Contains(got[0].Text, want) || !strings.Contains(got[0].Text, "/forget yes") {
				t.Errorf("said %+v, want %q", got, want)
			}
			if counted := strings.Contains(got[0].Text, "files and memory: 1"); s.looked.Load() > before != counted {
				t.Errorf("the conversations were looked through %d times for %q", s.looked.Load()-before, got[0].Text)
			}
		}
		ask("1", "files and memory: 1")
		ask("2", "just")
		time.Sleep(9 * time.Minute)
		ask("3", "just")
		time.Sleep(11 * time.Minute)
		ask("4", "files and memory: 1")
		time.Sleep(9 * time.Minute)
		ask("5", "just")
		time.Sleep(9 * time.Minute)
		s.take(t, command("6", "forget", "yes"))
		s.serve(t, time.Minute)
		if n := s.done.Load(); n != 1 {
			t.Errorf("%d erasures", n)
		}
	})
}

// A confirmed erasure is completed, even by another process, and reported once. Commands that the platform delivers
// again change nothing.
func TestAnErasureThatIsCutOffIsDone(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.spoke(t, "main:telegram:42", "hello")
		s.fail.Store(2)
		s.take(t, command("1", "forget", ""))
		s.take(t, command("2", "forget", "yes"))
		s.serve(t, time.Second) // the erasure fails, and the process dies
		s.restart()
		s.take(t, command("2", "forget", "yes")) // delivered again
		s.serve(t, 5*time.Minute)
		if n := s.done.Load(); n != 1 {
			t.Errorf("%d erasures", n)
		}
		s.take(t, command("2", "forget", "yes")) // delivered again after the erasure
		s.serve(t, 5*time.Minute)
		got := s.sent(t)
		if len(got) != 2 || got[1].ID != bus.ReplyID("2") || !strings.Contains(got[1].Text, "I've erased it") || s.done.Load() != 1 {
			t.Errorf("%d erasures, said %+v", s.done.Load(), got)
		}
		if alone, shared, err := s.Store.SessionsOf(t.Context(), person); err != nil || len(alone)+len(shared) > 0 {
			t.Errorf("there is %v %v, %v", alone, shared, err)
		}
	})
}

func TestAnExportComesInPiecesOnce(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		large := strings.Repeat("x", 4<<20)
		s.spoke(t, "main:telegram:-100", "one "+large, "two "+large, "three", "four "+strings.Repeat(large, 3))
		s.take(t, command("1", "export", ""))
		s.serve(t, time.Second)
		s.take(t, command("1", "export", "")) // the same command, delivered again
		s.take(t, command("2", "export", "")) // too soon after the first
		s.serve(t, time.Second)
		time.Sleep(11 * time.Minute)
		first := s.sent(t)
		var files []string
		for _, out := range first {
			if out.File != nil {
				files = append(files, string(out.File.Data))
				if len(out.File.Data) > 11<<20 {
					t.Errorf("a file of %d bytes", len(out.File.Data))
				}
			}
		}
		all := strings.Join(files, "")
		if len(files) != 2 || strings.Count(all, "\n") != 4 || len(first) != 3 {
			t.Fatalf("%d messages with %d files, %d lines", len(first), len(files), strings.Count(all, "\n"))
		}
		for _, want := range []string{"one x", "two x", `"three"`, "left out"} {
			if strings.Count(all, want) != 1 {
				t.Errorf("%q is in it %d times", want, strings.Count(all, want))
			}
		}
		s.take(t, command("3", "export", ""))
		s.serve(t, time.Second)
		if got := s.sent(t); len(got) != 2 || string(got[0].File.Data)+string(got[1].File.Data) != all {
			t.Errorf("later %d messages are sent", len(got))
		}
	})
}

// An export has the person's ratings of answers in any conversation, and no ratings of other people.
func TestAnExportHasTheRatings(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		at := bus.Address{Channel: "telegram", Chat: "-100"}
		send := channels.Send{ID: bus.ReplyID("telegram:-100:1"), To: at, Session: "main:telegram:-100", Parts: []channels.SentPart{{Text: "yes"}}}
		if _, _, err := s.Book.Begin(t.Context(), send); err != nil {
			t.Fatal(err)
		}
		if err := s.Book.Mark(t.Context(), send.ID, 0, channels.SentPart{State: channels.Sent, PlatformID: "7"}); err != nil {
			t.Fatal(err)
		}
		for who, good := range map[string]bool{person: false, "telegram:43": true} {
			if _, changed, err := s.Book.Rate(t.Context(), channels.Rating{Person: who, At: at, Message: "7", Good: good, Rated: time.Now()}); err != nil || !changed {
				t.Fatal(changed, err)
			}
		}
		s.take(t, command("1", "export", ""))
		s.serve(t, time.Second)
		got := s.sent(t)
		want := `"turn":"telegram:-100:1","kind":"rating","person":"telegram:42","data":{"good":false}`
		if len(got) != 1 || got[0].File == nil || strings.Count(string(got[0].File.Data), "\n") != 1 || !strings.Contains(string(got[0].File.Data), want) ||
			!strings.Contains(got[0].Text, "your 👍 and 👎 on my answers: 1") {
			t.Errorf("sent %+v", got)
		}
	})
}

// An export has the person's answers to questions and approval requests.
func TestAnExportHasWhatAPersonAnswered(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		const key = "main:telegram:42"
		s.spoke(t, key, "paint it")
		log, err := s.Store.Open(t.Context(), key, time.Now().UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
		for who, words := range map[string]string{person: "blue, and never red", "telegram:43": "what another said"} {
			e, err := sessions.NewEntry("t0", sessions.KindAskEnded, sessions.AskEnded{Ask: "a" + who, State: "answered", Question: "Which colour?", Answer: words})
			if err != nil {
				t.Fatal(err)
			}
			e.Cause, e.Person, e.Call = "a"+who, who, "c1"
			if err := log.Append(t.Context(), log.Next(), e); err != nil {
				t.Fatal(err)
			}
		}
		s.take(t, command("1", "export", ""))
		s.serve(t, time.Second)
		got := s.sent(t)
		if len(got) != 1 || got[0].File == nil {
			t.Fatalf("sent %+v", got)
		}
		if data := string(got[0].File.Data); !strings.Contains(data, "paint it") || !strings.Contains(data, "blue, and never red") || strings.Contains(data, "what another said") {
			t.Errorf("sent %s", data)
		}
	})
}

func TestAnExportHasTheSchedules(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		for who, text := range map[string]string{person: "mine", "telegram:43": "theirs"} {
			_, err := s.Store.Schedules().Add(t.Context(), schedules.Schedule{
				ID: text, Session: "main:telegram:-100", Person: who, Address: "telegram:-100", When: "every 1h", Zone: "UTC", Text: text, MadeAt: time.Now(), Next: time.Now().Add(time.Hour),
			}, 9)
			if err != nil {
				t.Fatal(err)
			}
		}
		s.take(t, command("1", "export", ""))
		s.serve(t, time.Second)
		got := s.sent(t)
		if len(got) != 1 || got[0].File == nil || strings.Contains(string(got[0].File.Data), "theirs") ||
			!strings.Contains(string(got[0].File.Data), `"kind":"schedule","person":"telegram:42","data":{"id":"mine"`) || !strings.Contains(got[0].Text, "schedules: 1") {
			t.Errorf("sent %+v", got)
		}
	})
}

// An export has the memories of the person and the memories proposed to them, and none of other people.
func TestAnExportHasWhatIsRemembered(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		for _, who := range []string{person, "telegram:43"} {
			if err := s.Book.StoreProposals(t.Context(), "main:"+who, 9, []channels.Proposal{{
				Scope: channels.ScopePerson, Owner: who, Person: who, Text: "proposed to " + who, Cause: "m1", At: bus.Address{Channel: "telegram", Chat: "1"}, Expires: time.Now().Add(time.Hour),
			}}); err != nil {
				t.Fatal(err)
			}
			if err := s.Book.Remember(t.Context(), channels.ScopePerson, who, who, false, false, func(string) (string, error) { return "of " + who, nil }); err != nil {
				t.Fatal(err)
			}
		}
		s.take(t, command("1", "export", ""))
		s.serve(t, time.Second)
		got := s.sent(t)
		want := `"kind":"memory","person":"telegram:42","data":{"content":"of telegram:42"}`
		if len(got) != 1 || got[0].File == nil || strings.Count(string(got[0].File.Data), "\n") != 2 || !strings.Contains(string(got[0].File.Data), want) || !strings.Contains(got[0].Text, "what I remember about you") {
			t.Errorf("sent %+v", got)
		}
		want = `"kind":"proposal","person":"telegram:42","data":{"content":"proposed to telegram:42","scope":"person","state":"open"}`
		if !strings.Contains(string(got[0].File.Data), want) || !strings.Contains(got[0].Text, "proposed to remember: 1.") {
			t.Errorf("sent %q with %s", got[0].Text, got[0].File.Data)
		}
	})
}

func TestWhoSaidNothingIsToldSo(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.take(t, command("1", "export", ""))
		s.serve(t, time.Second)
		if got := s.sent(t); len(got) != 1 || got[0].File != nil || !strings.Contains(got[0].Text, "nothing") {
			t.Errorf("said %+v", got)
		}
	})
}
