package heartbeat_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/channels"
	"parley/channels/heartbeat"
	"parley/cmd/parley/hometest"
	"parley/sessions"
	"parley/tools/testlog"
)

// A home is a bot's home with a checklist.
type home struct {
	*hometest.Home
	t        *testing.T
	settings heartbeat.Settings
	cost     int64
	log      testlog.Buffer
}

func withHome(t *testing.T, run func(t *testing.T, s *home)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &home{Home: hometest.Open(t, dir), t: t}
		defer s.Close()
		s.settings = heartbeat.Settings{
			Every: 10 * time.Minute, File: filepath.Join(dir, "list.md"), Agent: "ops", To: []bus.Address{{Channel: "telegram", Chat: "42"}}, TokensDay: 1000, Day: 500_000,
		}
		s.writeChecklist("# Every time\n\n- Is the disk full?\n")
		run(t, s)
	})
}

func (s *home) writeChecklist(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.settings.File, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// service returns a new Service that uses this home, as each process of a fleet has its own.
func (s *home) service() *heartbeat.Service {
	return &heartbeat.Service{
		Bus: s.Bus, Events: s.Bus, Store: s.Store, Notes: s.Book, Settings: func() heartbeat.Settings { return s.settings },
		Cost:  func(context.Context, string) (int64, error) { return s.cost, nil },
		Ready: func(context.Context) (string, error) { return "", nil }, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	}
}

// runProcesses runs processes for a while, and returns the heartbeats that they began.
func (s *home) runProcesses(processes int, during time.Duration) (beats []bus.Inbound) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), during)
	defer stop()
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			if err := s.service().Run(ctx); err != nil {
				s.t.Error(err)
			}
		})
	}
	all.Wait()
	for _, m := range bustest.Take(s.t, s.Bus, bus.InboundTopic) {
		in, err := bus.DecodeInbound(m.Body)
		if err != nil || !strings.HasPrefix(m.Key, "ops:heartbeat:ops:") {
			s.t.Errorf("%s: %v", m.Key, err)
		}
		beats = append(beats, in)
	}
	return beats
}

// A heartbeat begins once in a fleet. None begins while the previous one is running, while the checklist is
// empty, or once the day's budget is used up.
func TestWhenHeartbeatsBegin(t *testing.T) {
	withHome(t, func(t *testing.T, s *home) {
		beats := s.runProcesses(3, 11*time.Minute)
		if len(beats) != 1 || !strings.Contains(beats[0].Text, "Is the disk full?") || beats[0].From.ID != "heartbeat:ops" || beats[0].From.Owner || beats[0].Schedule == "" {
			t.Errorf("begun are %+v", beats)
		}
		if beats := s.runProcesses(3, 35*time.Minute); len(beats) != 1 { // the first one is still running
			t.Errorf("begun are %+v", beats)
		}
		s.writeChecklist("# Every time\n\n<!-- nothing yet -->\n")
		if beats := s.runProcesses(2, 25*time.Minute); len(beats) > 0 {
			t.Errorf("without anything to look at: %+v", beats)
		}
		if err := os.Remove(s.settings.File); err != nil {
			t.Fatal(err)
		}
		if beats := s.runProcesses(1, 25*time.Minute); len(beats) > 0 || !strings.Contains(s.log.String(), "heartbeat.file") {
			t.Errorf("without a file: %+v, %s", beats, s.log.String())
		}
		s.writeChecklist("- Is the disk full?")
		spend := sessions.Reservation{ID: "r", Person: heartbeat.Person("ops"), Tokens: 1000, Cap: 1000, At: time.Now()}
		if err := s.Store.Reserve(t.Context(), spend); err != nil {
			t.Fatal(err)
		}
		if beats := s.runProcesses(2, 25*time.Minute); len(beats) > 0 {
			t.Errorf("with nothing left to use: %+v", beats)
		}
		time.Sleep(24 * time.Hour)
		if beats := s.runProcesses(2, 11*time.Minute); len(beats) != 1 {
			t.Errorf("on the next day: %+v", beats)
		}
		s.cost = 500_000
		if beats := s.runProcesses(2, 25*time.Minute); len(beats) > 0 {
			t.Errorf("with no money left: %+v", beats)
		}
		s.cost = 0
		s.settings.Every = 0
		if beats := s.runProcesses(2, time.Hour); len(beats) > 0 {
			t.Errorf("switched off: %+v", beats)
		}
	})
}

// answer makes a heartbeat's turn send a text, and end in a state.
func (s *home) answer(turn, state, text string) {
	s.t.Helper()
	at := bus.Address{Channel: heartbeat.Name, Chat: "ops", Thread: time.Now().UTC().Format(time.DateOnly)}
	key, err := heartbeat.Session(at)
	if err != nil {
		s.t.Fatal(err)
	}
	log, err := s.Store.Open(s.t.Context(), key, time.Now().UnixMicro())
	if err != nil {
		s.t.Fatal(err)
	}
	done, err := sessions.NewEntry(turn, sessions.KindTurnDone, sessions.TurnDone{State: state})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := log.Append(s.t.Context(), log.Next(), done); err != nil {
		s.t.Fatal(err)
	}
	for range 2 { // the same part may be sent again
		if _, err := s.service().Send(s.t.Context(), at, channels.Part{Key: channels.PartKey(bus.ReplyID(turn), 0), Text: text}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// sentTexts returns the texts that people were sent.
func (s *home) sentTexts() (texts []string) {
	s.t.Helper()
	for _, out := range bustest.TakeOutbound(s.t, s.Bus, "telegram") {
		if out.To.Chat != "42" {
			s.t.Errorf("told is %+v", out)
		}
		texts = append(texts, strings.TrimPrefix(out.Text, "**Heartbeat**\n\n"))
	}
	return texts
}

// A finding is reported once, a failure once a day, and that there is nothing to report never.
func TestFindingsAreReportedOnce(t *testing.T) {
	withHome(t, func(t *testing.T, s *home) {
		s.answer("a", sessions.TurnCompleted, "the disk is full")
		s.answer("b", sessions.TurnCompleted, "HEARTBEAT_OK")
		s.answer("c", sessions.TurnCompleted, "**Heartbeat_OK.**\n")
		s.answer("d", sessions.TurnFailed, "no tokens are left")
		s.answer("e", sessions.TurnFailed, "no tokens are left, again")
		s.answer("f", sessions.TurnCompleted, "HEARTBEAT_OK, but the disk is nearly full")
		if got := s.sentTexts(); !slices.Equal(got, []string{"the disk is full", "no tokens are left", "HEARTBEAT_OK, but the disk is nearly full"}) {
			t.Errorf("told is %q", got)
		}
		time.Sleep(24 * time.Hour)
		s.answer("g", sessions.TurnFailed, "the model is away")
		if got := s.sentTexts(); !slices.Equal(got, []string{"the model is away"}) {
			t.Errorf("told on the next day is %q", got)
		}
	})
}
