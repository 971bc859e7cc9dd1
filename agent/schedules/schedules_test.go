package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/schedules"
	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/timers"
	"parley/cmd/parley/hometest"
	kept "parley/sessions/schedules"
	"parley/tools"
	scheduletools "parley/tools/schedules"
)

// A testHome is a home whose schedules fire.
type testHome struct {
	*hometest.Home
	t *testing.T

	mu         sync.Mutex
	refused    bool  // nobody may talk to the bot
	admitError error // why it is unknown who may talk to the bot
	zone       string
	diesAt     string
	between    func(point string) // it may change something between the steps
	fired      map[string]int
}

func runOnHome(t *testing.T, run func(t *testing.T, s *testHome)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &testHome{Home: hometest.Open(t, dir), t: t, fired: map[string]int{}}
		defer s.Close()
		run(t, s)
	})
}

// scheduler returns the Scheduler of another process over the same home.
func (s *testHome) scheduler() *schedules.Scheduler {
	return schedules.New(schedules.Config{
		Bus: s.Bus, Table: s.Store.Schedules(), Log: slog.New(slog.DiscardHandler),
		Limits: func() schedules.Limits {
			return schedules.Limits{MaxPerPerson: 3, MinInterval: 5 * time.Minute, Zone: "Europe/Berlin"}
		},
		Zone:  func(context.Context, string) string { return s.zone },
		Ready: func(context.Context) (string, error) { return "", nil },
		Admit: func(_ context.Context, who bus.Person, _ bus.Address) (bus.Caller, bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return bus.Caller{Person: who}, !s.refused, s.admitError
		},
		Fired: func(result string, n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fired[result] += n
		},
		Point: func(name string) {
			s.mu.Lock()
			dies := name == s.diesAt
			if dies {
				s.diesAt = ""
			}
			between := s.between
			s.mu.Unlock()
			if between != nil {
				between(name)
			}
			if dies {
				panic(errDied)
			}
		},
	})
}

var errDied = errors.New("died")

// serve has processes handle due timers for a while. A process that dies stops, and another takes its place.
func (s *testHome) serve(processes int, during time.Duration) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), during)
	defer stop()
	var all sync.WaitGroup
	for range processes {
		c := s.scheduler()
		all.Go(func() {
			for ctx.Err() == nil {
				s.survive(func() error { return c.Run(ctx) })
			}
		})
		due := timers.Runner{Bus: s.Bus, Log: slog.New(slog.DiscardHandler), Handlers: map[string]timers.Handler{
			bus.ScheduleTimer: func(ctx context.Context, t bus.Timer) (again time.Duration, err error) {
				err = errDied // another process gets the lease
				s.survive(func() error { again, err = c.Fire(ctx, t); return nil })
				return again, err
			},
		}}
		all.Go(func() {
			if err := due.Run(ctx); err != nil {
				s.t.Error(err)
			}
		})
	}
	all.Wait()
}

func (s *testHome) survive(do func() error) {
	defer func() {
		if p := recover(); p != nil && p != errDied { //nolint:errorlint // it is thrown as it is
			panic(p)
		}
	}()
	if err := do(); err != nil {
		s.t.Error(err)
	}
}

func toolCall(turn string) tools.Call {
	return tools.Call{
		Key: turn + "#1", Name: "schedule", Turn: turn, Session: "main:telegram:2", Person: "telegram:2", PersonName: "Alex", Address: "telegram:2",
	}
}

// add makes a schedule in a turn, and returns its id.
func (s *testHome) add(turn, when string) string {
	s.t.Helper()
	e, err := schedules.Backend{Scheduler: s.scheduler()}.Add(s.t.Context(), toolCall(turn), scheduletools.Request{When: when, Text: "look at the build"})
	if err != nil {
		s.t.Fatal(err)
	}
	return e.ID
}

// takeMessages takes the messages of a topic off the bus, and returns their ids and texts.
func (s *testHome) takeMessages(topic bus.Topic) (ids []string, texts []string) {
	s.t.Helper()
	for _, m := range bustest.Take(s.t, s.Bus, topic) {
		if topic == bus.InboundTopic {
			in, err := bus.DecodeInbound(m.Body)
			if err != nil || in.Kind != bus.Scheduled || in.From.ID != "telegram:2" || in.Schedule == "" {
				s.t.Errorf("said is %+v, %v", in, err)
			}
			ids, texts = append(ids, m.ID), append(texts, in.Text)
			continue
		}
		out, err := bus.DecodeOutbound(m.Body)
		if err != nil {
			s.t.Error(err)
		}
		ids, texts = append(ids, m.ID), append(texts, out.Text)
	}
	return ids, texts
}

// personMessages returns the messages to the person that don't come from the agent.
func (s *testHome) personMessages() []string {
	_, texts := s.takeMessages(bus.OutboundTopic("telegram"))
	return texts
}

// slotIDs returns the ids of the slots of a schedule at these intervals after a time.
func slotIDs(id string, from time.Time, after ...time.Duration) (ids []string) {
	for _, d := range after {
		ids = append(ids, fmt.Sprintf("schedule:%s:%d", id, from.Add(d).Unix()))
	}
	return ids
}

// However many processes there are, and wherever any of them dies: each slot is sent once, and none is missed.
func TestEachSlotIsSentOnce(t *testing.T) {
	for _, at := range []string{"", "schedule:begin", "schedule:begun", "schedule:said", "schedule:ended"} {
		t.Run(at, func(t *testing.T) {
			runOnHome(t, func(t *testing.T, s *testHome) {
				began := time.Now()
				often := s.add("one", "every 10m")
				once := s.add("two", "in 25m")
				s.diesAt = at
				s.serve(3, 35*time.Minute)
				got, texts := s.takeMessages(bus.InboundTopic)
				want := append(slotIDs(often, began, 10*time.Minute, 20*time.Minute, 30*time.Minute), slotIDs(once, began, 25*time.Minute)...)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) || len(texts) == 0 || texts[0] != "look at the build" {
					t.Errorf("said are %q, want %q", got, want)
				}
				if told := s.personMessages(); len(told) > 0 {
					t.Errorf("people are told %q", told)
				}
				left, err := s.Store.Schedules().List(t.Context(), "")
				if err != nil || len(left) != 1 || left[0].ID != often {
					t.Errorf("left are %+v, %v", left, err)
				}
			})
		})
	}
}

// People are told once about slots that were missed, and the newest slot runs in their place.
func TestMissedSlotsAreToldOnce(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		began := time.Now()
		often, once := s.add("one", "every 10m"), s.add("two", "in 25m")
		time.Sleep(45 * time.Minute) // no process runs
		s.diesAt = "schedule:said"
		s.serve(2, 8*time.Minute)
		got, _ := s.takeMessages(bus.InboundTopic)
		slices.Sort(got)
		want := append(slotIDs(often, began, 40*time.Minute, 50*time.Minute), slotIDs(once, began, 25*time.Minute)...)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("said are %q, want %q", got, want)
		}
		told := strings.Join(s.personMessages(), "\n")
		if strings.Count(told, often) != 1 || !strings.Contains(told, "(every 10m) has been due 3 times") || strings.Count(told, once) != 1 {
			t.Errorf("people are told %q", told)
		}
		if s.fired["missed"] < 3 {
			t.Errorf("counted are %v", s.fired)
		}
	})
}

// A schedule sends its text only while its person may talk to the bot.
func TestAScheduleNeedsItsPersonsAccess(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		began := time.Now()
		news := bustest.News(t, s.Bus)
		id := s.add("one", "every 10m")
		s.refused = true
		s.serve(2, 11*time.Minute)
		s.refused, s.admitError = false, errors.New("the platform is away")
		s.serve(2, 10*time.Minute)
		if got, _ := s.takeMessages(bus.InboundTopic); len(got) > 0 || s.fired["no_access"] != 1 {
			t.Errorf("said are %q, counted %v", got, s.fired)
		}
		s.admitError = nil
		s.serve(2, 2*time.Minute)
		if got, _ := s.takeMessages(bus.InboundTopic); !slices.Equal(got, slotIDs(id, began, 20*time.Minute)) {
			t.Errorf("said are %q", got)
		}
		stop := true
		if _, err := s.scheduler().Change(t.Context(), id, kept.Change{Paused: &stop}); err != nil {
			t.Error(err)
		}
		if err := (schedules.Backend{Scheduler: s.scheduler()}).Cancel(t.Context(), toolCall("two"), id); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // events may gather for a moment
		var want []string
		for _, state := range []string{"added", "no_access", "fired", "changed", "cancelled"} {
			want = append(want, fmt.Sprintf("schedule session=%s turn= id=%s kind= state=%s", toolCall("one").Session, id, state))
		}
		if got := slices.Compact(news()); !slices.Equal(got, want) { // a repeated step tells watchers again
			t.Errorf("those who watch the server are told %q, want %q", got, want)
		}
	})
}

// Messages and timers that the bus has lost are replaced.
func TestALostTimerIsReplaced(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		began := time.Now()
		id := s.add("one", "every 10m")
		if _, err := s.Bus.Forget(t.Context(), func(topic bus.Topic, _ bus.Message) bool { return topic == bus.TimersTopic }); err != nil {
			t.Fatal(err)
		}
		s.serve(2, 12*time.Minute)
		if got, _ := s.takeMessages(bus.InboundTopic); !slices.Equal(got, slotIDs(id, began, 10*time.Minute)) {
			t.Errorf("said are %q", got)
		}
	})
}

func TestInvalidSchedulesAreExplained(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		tool := scheduletools.New(schedules.Backend{Scheduler: s.scheduler()})
		run := func(c tools.Call, args string) (string, error) {
			c.Args = []byte(args)
			r, err := tool.Run(t.Context(), c)
			return string(r.Content), err
		}
		wants := func(c tools.Call, args, want string) {
			t.Helper()
			got, err := run(c, args)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, want a word of %q", args, got, want)
			}
		}
		scheduled := toolCall("x")
		scheduled.Scheduled = true
		wants(scheduled, `{"action":"add","when":"in 1h","text":"x"}`, "makes no further schedules")
		s.refused = true
		wants(toolCall("x"), `{"action":"add","when":"in 1h","text":"x"}`, "only for people who may talk to me")
		s.refused = false
		wants(toolCall("x"), `{"action":"add","when":"every 1m","text":"x"}`, "there have to be at least 5m0s in between")
		wants(toolCall("x"), `{"action":"add","when":"1999-01-01 10:00","text":"x"}`, "is in the past")
		wants(toolCall("x"), `{"action":"add","when":"soon","text":"x"}`, "every 2h")
		wants(toolCall("x"), `{"action":"add","when":"in 1h","text":"x","time_zone":"Mars"}`, "Europe/Berlin")
		wants(toolCall("x"), `{"action":"add","when":"in 1h"}`, "text is missing")
		wants(toolCall("x"), `{"action":"cancel","id":"nope"}`, "no schedule")
		s.zone = "America/New_York" // as the platform says
		wants(toolCall("1"), `{"action":"add","when":"0 9 * * *","text":"first"}`, `09:00 EST (-05:00)`)
		wants(toolCall("2"), `{"action":"add","when":"0 9 * * *","text":"x","time_zone":"Asia/Tokyo"}`, `09:00 JST (+09:00)`)
		wants(toolCall("3"), `{"action":"add","when":"0 9 * * *","text":"x"}`, `09:00 JST (+09:00)`) // the zone is remembered
		wants(toolCall("4"), `{"action":"add","when":"0 9 * * *","text":"x"}`, "has 3 schedules")
		wants(toolCall("1"), `{"action":"add","when":"0 9 * * *","text":"first"}`, `09:00 EST`) // a repeated call makes no second one
		wants(toolCall("x"), `{"action":"list"}`, `"text":"first"`)
		others := toolCall("x")
		others.Person = "telegram:3"
		id := s.firstID()
		wants(others, `{"action":"cancel","id":"`+id+`"}`, "Alex (telegram:2) has made it")
		elsewhere := toolCall("x")
		elsewhere.Session = "main:telegram:9"
		wants(elsewhere, `{"action":"cancel","id":"`+id+`"}`, "this chat has no schedule")
		wants(elsewhere, `{"action":"list"}`, `{"schedules":[]}`)
		others.Owner = true
		wants(others, `{"action":"cancel","id":"`+id+`"}`, `"cancelled":"`+id)
		if all, err := s.Store.Schedules().List(t.Context(), ""); err != nil || len(all) != 2 {
			t.Errorf("there are %+v, %v", all, err)
		}
	})
}

func (s *testHome) firstID() string {
	s.t.Helper()
	all, err := s.Store.Schedules().List(s.t.Context(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range all {
		if one.Text == "first" {
			return one.ID
		}
	}
	s.t.Fatal("there is none")
	return ""
}

// A call that was cut off finds out whether it took effect, even if the schedule that it has added is over.
func TestACallThatWasCutOffFindsOut(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		tool := scheduletools.New(schedules.Backend{Scheduler: s.scheduler()}).(tools.Reconciler)
		c := toolCall("one")
		c.Args = []byte(`{"action":"add","when":"in 10m","text":"look at the build"}`)
		if _, done, err := tool.Reconcile(t.Context(), c); done || err != nil {
			t.Errorf("before it ran: %v %v", done, err)
		}
		id := s.add("one", "in 10m")
		s.serve(1, 11*time.Minute)
		if r, done, err := tool.Reconcile(t.Context(), c); !done || err != nil || !strings.Contains(string(r.Content), id) {
			t.Errorf("afterwards: %s %v %v", r.Content, done, err)
		}
		c.Args = []byte(`{"action":"cancel","id":"` + id + `"}`)
		if _, done, err := tool.Reconcile(t.Context(), c); done || err != nil {
			t.Errorf("a cancelling that did not run: %v %v", done, err)
		}
		if err := s.Store.Schedules().Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, done, err := tool.Reconcile(t.Context(), c); !done || err != nil {
			t.Errorf("a cancelling that ran: %v %v", done, err)
		}
	})
}
