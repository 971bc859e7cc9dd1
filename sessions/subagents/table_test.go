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

// onEachDatabase runs a test on both kinds of database, with two stores on each in which the parent's session
// exists.
func onEachDatabase(t *testing.T, test func(t *testing.T, one, other *sqlstore.Store)) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		beginSession(t, one, parent)
		test(t, one, other)
	})
}

// beginSession creates a session.
func beginSession(t *testing.T, s *sqlstore.Store, key string) {
	t.Helper()
	if _, err := s.Open(t.Context(), key, 1); err != nil {
		t.Fatal(err)
	}
}

func newTask(id string) subagents.Task {
	return subagents.Task{
		ID: id, Parent: parent, Session: "main:agent:p:" + id, Agent: "main", Person: "telegram:2", Turn: "t1", Call: "c" + id, Title: "look\x00",
		Mail: []byte(`{"text":"look"}`), Route: []byte(`{}`), Started: time.Now().Truncate(time.Microsecond).UTC(),
	}
}

func mustPrepare(t *testing.T, s *sqlstore.Store, task subagents.Task) {
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

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheStatesOfATask(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		want := newTask("a")
		mustPrepare(t, one, want)
		if err := other.SubAgents().Prepare(t.Context(), want, 5); !errors.Is(err, subagents.ErrKnown) {
			t.Errorf("the same again: %v", err)
		}
		got := wantState(t, other, "a", subagents.Prepared, false)
		if got.Parent != want.Parent || got.Session != want.Session || got.Title != want.Title || string(got.Mail) != string(want.Mail) || !got.Started.Equal(want.Started) {
			t.Errorf("it is %+v, want %+v", got, want)
		}
		requireNoError(t, other.SubAgents().Start(t.Context(), "a"))
		wantState(t, one, "a", subagents.Running, false)
		requireNoError(t, one.SubAgents().Discard(t.Context(), "a")) // too late: the task was handed out
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
		requireNoError(t, other.SubAgents().NoteTold(t.Context(), "a"))
		if untold, err := one.SubAgents().Untold(t.Context(), time.Now().Add(time.Second)); err != nil || len(untold) != 0 {
			t.Errorf("untold are %v, %v", untold, err)
		}
	})
}

// However many tasks are handed out concurrently, no more than the limit are open.
func TestNoMoreTasksThanTheLimit(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		var taken, refused atomic.Int32
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				s := one
				if i%2 == 0 {
					s = other
				}
				err := s.SubAgents().Prepare(t.Context(), newTask(fmt.Sprint("x", i)), 5)
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
		orphan := newTask("y")
		orphan.Parent = "main:telegram:3"
		if err := one.SubAgents().Prepare(t.Context(), orphan, 5); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("of a session that there is not: %v", err)
		}
	})
}

func TestTasksAreStopped(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		awaited := newTask("a")
		awaited.Awaited = true
		mustPrepare(t, one, awaited)
		mustPrepare(t, one, newTask("b"))
		mustPrepare(t, one, newTask("c"))
		requireNoError(t, one.SubAgents().Start(t.Context(), "c")) // not awaited by the turn
		for range 2 {                                              // a repeated call returns the same
			if got, err := other.SubAgents().Stop(t.Context(), parent, "", "t1", "ended"); err != nil || len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
				t.Errorf("of the turn are stopped %v, %v", got, err)
			}
		}
		if got, err := one.SubAgents().Stop(t.Context(), parent, "", "", "stop"); err != nil || len(got) != 1 || got[0].ID != "c" {
			t.Errorf("of all are stopped %v, %v", got, err)
		}
	})
}

// /new drops tasks and erases their sessions, except those that a turn waits for.
func TestTasksAreDropped(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		awaited := newTask("a")
		awaited.Awaited = true
		mustPrepare(t, one, awaited)
		mustPrepare(t, one, newTask("b"))
		requireNoError(t, one.SubAgents().Drop(t.Context(), parent, "new"))
		if keys, err := other.SubAgents().Dropped(t.Context()); err != nil || len(keys) != 1 || keys[0] != "main:agent:p:b" {
			t.Errorf("dropped are %v, %v", keys, err)
		}
		requireNoError(t, other.SubAgents().Forget(t.Context(), "main:agent:p:b"))
		if all, err := one.SubAgents().SessionsFor(t.Context(), "", parent); err != nil || len(all) != 1 {
			t.Errorf("left are %v, %v", all, err)
		}
	})
}

// A turn waits for a report until it gets it, so /new does not drop a task that has just ended.
func TestAnAwaitedReportIsNotDropped(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		task := newTask("a")
		task.Awaited = true
		mustPrepare(t, one, task)
		task.State, task.Report, task.Ended = subagents.Done, "found", time.Now()
		if ours, err := one.SubAgents().End(t.Context(), task, subagents.Prepared); err != nil || !ours {
			t.Fatalf("the end is ours: %v, %v", ours, err)
		}
		requireNoError(t, other.SubAgents().Drop(t.Context(), parent, "new"))
		wantState(t, one, "a", subagents.Done, false)
		requireNoError(t, one.SubAgents().NoteTold(t.Context(), "a"))
		requireNoError(t, other.SubAgents().Drop(t.Context(), parent, "new again"))
		if keys, err := one.SubAgents().Dropped(t.Context()); err != nil || len(keys) != 1 {
			t.Errorf("dropped are %v, %v", keys, err)
		}
	})
}

// An erasure of a conversation finds the sessions of its sub-agents, however old they are. The words of old
// tasks are erased.
func TestOldTasksKeepTheirSessions(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		beginSession(t, one, newTask("a").Session)
		for _, id := range []string{"a", "b"} {
			task := newTask(id)
			mustPrepare(t, one, task)
			task.State, task.Report, task.Ended, task.Told = subagents.Done, "found", time.Now().Add(-40*24*time.Hour), true
			if _, err := one.SubAgents().End(t.Context(), task, subagents.Prepared); err != nil {
				t.Fatal(err)
			}
		}
		mustPrepare(t, other, newTask("c"))
		if all, err := one.SubAgents().SessionsFor(t.Context(), "", parent); err != nil || len(all) != 3 {
			t.Errorf("of the parent are %v, %v", all, err)
		}
		if keys, err := one.SubAgents().Dropped(t.Context()); err != nil || fmt.Sprint(keys) != "[main:agent:p:b]" { // a session without a log may have files
			t.Errorf("dropped are %v, %v", keys, err)
		}
		if got := wantState(t, one, "a", subagents.Done, true); got.Report != "" || got.Title != "" {
			t.Errorf("of it is left %+v", got)
		}
	})
}

// Erasing a parent deletes its tasks; a task whose sub-agent is erased is lost and reported; erasing a person
// deletes all tasks on their behalf.
func TestTasksAreErased(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		for _, id := range []string{"a", "b"} {
			mustPrepare(t, one, newTask(id))
			beginSession(t, one, newTask(id).Session)
		}
		if _, err := other.EraseSession(t.Context(), newTask("a").Session); err != nil {
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
		beginSession(t, one, "main:telegram:4")
		later := newTask("c")
		later.Parent = "main:telegram:4"
		mustPrepare(t, one, later)
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

// UsageOf sums up for several tasks at once what the turn of each has used in its own session.
func TestUsageOfTasks(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		var all []subagents.Task
		for _, id := range []string{"a", "b", "joined"} {
			task := newTask(id)
			all = append(all, task)
			log, err := one.Open(t.Context(), task.Session, 1)
			requireNoError(t, err)
			for _, turn := range []string{subagents.MailID("a"), subagents.MailID("b"), "another"} {
				e, err := sessions.NewEntry(turn, sessions.KindUsage, sessions.Usage{Model: "m", Input: 100, Output: 3})
				requireNoError(t, err)
				requireNoError(t, log.Append(t.Context(), log.Next(), e, e))
			}
		}
		all = append(all, newTask("erased")) // its session does not exist
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
