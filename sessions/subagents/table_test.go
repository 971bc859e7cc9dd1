package subagents_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
	"parley/sessions/subagents"
)

const parent = "main:telegram:2"

// each runs a test on a database of each kind, with two stores over it, in which the
// parent's session exists.
func each(t *testing.T, test func(t *testing.T, one, other *sqlstore.Store)) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		begin(t, one, parent)
		test(t, one, other)
	})
}

// begin makes a session.
func begin(t *testing.T, s *sqlstore.Store, key string) {
	t.Helper()
	if _, err := s.Open(t.Context(), key, 1); err != nil {
		t.Fatal(err)
	}
}

func sample(id string) subagents.Task {
	return subagents.Task{
		ID: id, Parent: parent, Session: "main:agent:p:" + id, Agent: "main", Person: "telegram:2", Turn: "t1", Call: "c" + id, Title: "look\x00",
		Mail: []byte(`{"text":"look"}`), Route: []byte(`{}`), Started: time.Now().Truncate(time.Microsecond).UTC(),
	}
}

func prepare(t *testing.T, s *sqlstore.Store, task subagents.Task) {
	t.Helper()
	if err := s.SubAgents().Prepare(t.Context(), task, 5); err != nil {
		t.Fatal(err)
	}
}

func wantState(t *testing.T, s *sqlstore.Store, id, state string, told bool) subagents.Task {
	t.Helper()
	got, err := s.SubAgents().Get(t.Context(), id)
	if err != nil || got.State != state || got.Told != told {
		t.Errorf("%s is %q, told %v, %v; want %q, %v", id, got.State, got.Told, err, state, told)
	}
	return got
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestATaskGoesItsWay(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		want := sample("a")
		prepare(t, one, want)
		if err := other.SubAgents().Prepare(t.Context(), want, 5); !errors.Is(err, subagents.ErrKnown) {
			t.Errorf("the same again: %v", err)
		}
		got := wantState(t, other, "a", subagents.Prepared, false)
		if got.Parent != want.Parent || got.Session != want.Session || got.Title != want.Title || string(got.Mail) != string(want.Mail) || !got.Started.Equal(want.Started) {
			t.Errorf("it is %+v, want %+v", got, want)
		}
		must(t, other.SubAgents().Start(t.Context(), "a"))
		wantState(t, one, "a", subagents.Running, false)
		must(t, one.SubAgents().Discard(t.Context(), "a")) // too late
		want.State, want.Report, want.Ended = subagents.Failed, "never begun", time.Now()
		if ours, err := one.SubAgents().End(t.Context(), want, subagents.Prepared); err != nil || ours {
			t.Errorf("who has not heard that it was handed out ends it: %v, %v", ours, err)
		}
		want.State, want.Report, want.Untrusted, want.Ended = subagents.Done, "found \xff", true, time.Now()
		for i, ours := range []bool{true, false} {
			if got, err := one.SubAgents().End(t.Context(), want, subagents.Running); err != nil || got != ours {
				t.Errorf("end %d is ours: %v, %v", i, got, err)
			}
			want.State = subagents.Failed
		}
		if got := wantState(t, other, "a", subagents.Done, false); got.Report != want.Report || !got.Untrusted || got.Mail != nil {
			t.Errorf("it is %+v", got)
		}
		if untold, err := other.SubAgents().Untold(t.Context(), time.Now().Add(time.Second)); err != nil || len(untold) != 1 {
			t.Errorf("untold are %v, %v", untold, err)
		}
		must(t, other.SubAgents().NoteTold(t.Context(), "a"))
		if untold, err := one.SubAgents().Untold(t.Context(), time.Now().Add(time.Second)); err != nil || len(untold) != 0 {
			t.Errorf("untold are %v, %v", untold, err)
		}
	})
}

// However many are handed out at once, no more than the limit are open.
func TestNoMoreTasksThanTheLimit(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		var taken, refused atomic.Int32
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				s := one
				if i%2 == 0 {
					s = other
				}
				err := s.SubAgents().Prepare(t.Context(), sample(fmt.Sprint("x", i)), 5)
				if _, full := errors.AsType[*subagents.LimitError](err); full {
					refused.Add(1)
				} else if err == nil {
					taken.Add(1)
				} else {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if taken.Load() != 5 || refused.Load() != 15 {
			t.Errorf("%d are taken, %d refused", taken.Load(), refused.Load())
		}
		orphan := sample("y")
		orphan.Parent = "main:telegram:3"
		if err := one.SubAgents().Prepare(t.Context(), orphan, 5); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("of a session that there is not: %v", err)
		}
	})
}

func TestTasksAreStopped(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		awaited := sample("a")
		awaited.Awaited = true
		prepare(t, one, awaited)
		prepare(t, one, sample("b"))
		prepare(t, one, sample("c"))
		must(t, one.SubAgents().Start(t.Context(), "c")) // beside the turn
		for range 2 {                                    // a repeated call returns the same
			if got, err := other.SubAgents().Stop(t.Context(), parent, "", "t1", "ended"); err != nil || len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
				t.Errorf("of the turn are stopped %v, %v", got, err)
			}
		}
		if got, err := one.SubAgents().Stop(t.Context(), parent, "", "", "stop"); err != nil || len(got) != 1 || got[0].ID != "c" {
			t.Errorf("of all are stopped %v, %v", got, err)
		}
	})
}

// What /new drops is erased, but not that for which a turn waits.
func TestTasksAreDropped(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		awaited := sample("a")
		awaited.Awaited = true
		prepare(t, one, awaited)
		prepare(t, one, sample("b"))
		must(t, one.SubAgents().Drop(t.Context(), parent, "new"))
		if keys, err := other.SubAgents().Dropped(t.Context()); err != nil || len(keys) != 1 || keys[0] != "main:agent:p:b" {
			t.Errorf("dropped are %v, %v", keys, err)
		}
		must(t, other.SubAgents().Forget(t.Context(), "main:agent:p:b"))
		if all, err := one.SubAgents().SessionsFor(t.Context(), "", parent); err != nil || len(all) != 1 {
			t.Errorf("left are %v, %v", all, err)
		}
	})
}

// A turn waits for a report until it is told, so /new leaves a task alone that has just ended.
func TestAReportThatIsToComeIsNotDropped(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		task := sample("a")
		task.Awaited = true
		prepare(t, one, task)
		task.State, task.Report, task.Ended = subagents.Done, "found", time.Now()
		if ours, err := one.SubAgents().End(t.Context(), task, subagents.Prepared); err != nil || !ours {
			t.Fatalf("the end is ours: %v, %v", ours, err)
		}
		must(t, other.SubAgents().Drop(t.Context(), parent, "new"))
		wantState(t, one, "a", subagents.Done, false)
		must(t, one.SubAgents().NoteTold(t.Context(), "a"))
		must(t, other.SubAgents().Drop(t.Context(), parent, "new again"))
		if keys, err := one.SubAgents().Dropped(t.Context()); err != nil || len(keys) != 1 {
			t.Errorf("dropped are %v, %v", keys, err)
		}
	})
}

// Who erases a conversation finds the sessions of its sub-agents, however old these are; the
// words of old tasks are gone.
func TestAnOldTaskLeadsToItsSession(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		begin(t, one, sample("a").Session)
		for _, id := range []string{"a", "b"} {
			task := sample(id)
			prepare(t, one, task)
			task.State, task.Report, task.Ended, task.Told = subagents.Done, "found", time.Now().Add(-40*24*time.Hour), true
			if _, err := one.SubAgents().End(t.Context(), task, subagents.Prepared); err != nil {
				t.Fatal(err)
			}
		}
		prepare(t, other, sample("c"))
		if all, err := one.SubAgents().SessionsFor(t.Context(), "", parent); err != nil || len(all) != 3 {
			t.Errorf("of the parent are %v, %v", all, err)
		}
		if keys, err := one.SubAgents().Dropped(t.Context()); err != nil || fmt.Sprint(keys) != "[main:agent:p:b]" { // without a log it may have files
			t.Errorf("dropped are %v, %v", keys, err)
		}
		if got := wantState(t, one, "a", subagents.Done, true); got.Report != "" || got.Title != "" {
			t.Errorf("of it is left %+v", got)
		}
	})
}

// An erased parent takes its tasks along; an erased sub-agent is lost, aloud; a person takes
// all that was done for them.
func TestTasksAreErased(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		for _, id := range []string{"a", "b"} {
			prepare(t, one, sample(id))
			begin(t, one, sample(id).Session)
		}
		if _, err := other.EraseSession(t.Context(), sample("a").Session); err != nil {
			t.Fatal(err)
		}
		if got := wantState(t, one, "a", subagents.Lost, false); got.Mail != nil || got.Title != "" {
			t.Errorf("of it is left %+v", got)
		}
		if _, err := other.EraseSession(t.Context(), parent); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b"} {
			if _, err := one.SubAgents().Get(t.Context(), id); !errors.Is(err, subagents.ErrNone) {
				t.Errorf("%s is still there: %v", id, err)
			}
		}
		begin(t, one, "main:telegram:4")
		later := sample("c")
		later.Parent = "main:telegram:4"
		prepare(t, one, later)
		if all, err := one.SubAgents().SessionsFor(t.Context(), "telegram:2"); err != nil || len(all) != 1 {
			t.Errorf("of the person are %v, %v", all, err)
		}
		if _, err := one.ErasePerson(t.Context(), "telegram:2"); err != nil {
			t.Fatal(err)
		}
		if _, err := other.SubAgents().Get(t.Context(), "c"); !errors.Is(err, subagents.ErrNone) {
			t.Errorf("it is still there: %v", err)
		}
	})
}

// What tasks have used is summed up for all of them at once: of each what its own turn has used, in its own session.
func TestWhatTasksHaveUsed(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		var all []subagents.Task
		for _, id := range []string{"a", "b", "joined"} {
			task := sample(id)
			all = append(all, task)
			log, err := one.Open(t.Context(), task.Session, 1)
			must(t, err)
			for _, turn := range []string{subagents.MailID("a"), subagents.MailID("b"), "another"} {
				e, err := sessions.NewEntry(turn, sessions.KindUsage, sessions.Usage{Model: "m", Input: 100, Output: 3})
				must(t, err)
				must(t, log.Append(t.Context(), log.Next(), e, e))
			}
		}
		all = append(all, sample("erased")) // its session is not there
		got, err := other.SubAgents().UsageOf(t.Context(), all...)
		want := subagents.Usage{Calls: 2, Input: 200, Output: 6}
		if err != nil || len(got) != 2 || got["a"] != want || got["b"] != want {
			t.Errorf("used are %+v, %v", got, err)
		}
		if got, err := one.SubAgents().UsageOf(t.Context()); err != nil || len(got) != 0 {
			t.Errorf("no tasks have used %+v, %v", got, err)
		}
	})
}
