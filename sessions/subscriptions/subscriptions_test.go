package subscriptions_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/schedules"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
	"parley/sessions/subagents"
	"parley/sessions/subscriptions"
)

const session = "main:telegram:1"

// wantOnBoth makes two processes record events for the same subscriptions.
func wantOnBoth(t *testing.T, want map[string][]string, stores ...*sqlstore.Store) {
	t.Helper()
	for _, s := range stores {
		var all []subscriptions.Subscription
		for name, patterns := range want {
			all = append(all, subscriptions.Subscription{Name: name, Events: strings.Join(patterns, " ")})
		}
		s.Subscriptions().Want(all...)
	}
}

func newEntry(t testing.TB, turn string, kind sessions.Kind, data any, change ...func(*sessions.Entry)) sessions.Entry {
	t.Helper()
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func withCause(id string) func(*sessions.Entry) {
	return func(e *sessions.Entry) { e.Cause, e.Person = id, "telegram:1" }
}

func withCall(id string) func(*sessions.Entry) { return func(e *sessions.Entry) { e.Call = id } }

func openLog(t testing.TB, s *sqlstore.Store, fence int64) sessions.Log {
	t.Helper()
	l, err := s.Open(t.Context(), session, fence)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustAppend(t testing.TB, l sessions.Log, entries ...sessions.Entry) {
	t.Helper()
	if err := l.Append(t.Context(), l.Next(), entries...); err != nil {
		t.Fatal(err)
	}
}

// takeWaiting returns the events that wait for a subscription, and the queue.
func takeWaiting(t *testing.T, s *sqlstore.Store, name string) (*subscriptions.Queue, []subscriptions.Waiting) {
	t.Helper()
	q, _, err := s.Subscriptions().Take(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := q.Next(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return q, all
}

// describeEvents returns events in a short form.
func describeEvents(all []subscriptions.Waiting) (lines []string) {
	for _, w := range all {
		d := w.Data
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprint(w.Type, " ", d.Turn, " ", d.ID, " ", d.Kind, " ", d.State, " ", d.Code, " ", d.Call)), " "))
	}
	return lines
}

func wantEvents(t *testing.T, all []subscriptions.Waiting, want ...string) {
	t.Helper()
	if got := describeEvents(all); !slices.Equal(got, want) {
		t.Errorf("there wait\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// appendTurn appends a whole turn with a call, in the writes that a worker makes.
func appendTurn(t testing.TB, l sessions.Log, id string) {
	t.Helper()
	mustAppend(t, l, newEntry(t, id, sessions.KindTurnStarted, sessions.TurnStarted{Agent: "main"}), newEntry(t, id, sessions.KindUser, sessions.User{Text: "a question"}, withCause(id)))
	mustAppend(t, l, newEntry(t, id, sessions.KindToolUse, sessions.ToolUse{Name: "shell", Args: []byte(`{}`)}, withCall(id+"-c")))
	mustAppend(t, l, newEntry(t, id, sessions.KindTurnParked, sessions.TurnParked{}))
	mustAppend(t, l, newEntry(t, id, sessions.KindTurnUnparked, nil))
	mustAppend(t, l, newEntry(t, id, sessions.KindToolResult, sessions.ToolResult{Content: []byte(`"denied"`), Code: "permission_denied"}, withCall(id+"-c")))
	mustAppend(t, l, newEntry(t, id, sessions.KindText, sessions.Text{Text: "an answer"}),
		newEntry(t, id, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted, Outbound: []sessions.Reply{{ID: id + "#reply", Text: "an answer"}}}))
}

// The entries of a log are recorded in order, for each subscription that wants them, with the same ids.
func TestEntriesAreRecordedAsEvents(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"all": {"turn.*", "tool.*", "message.*"}, "ends": {"turn.ended"}}, one, other)
		appendTurn(t, openLog(t, one, 1), "t1")
		appendTurn(t, openLog(t, other, 2), "t2")
		of := func(id string) []string {
			return []string{
				"turn.begun " + id + " running", "message.received " + id + " " + id, "turn.waiting " + id + " people waiting", "turn.resumed " + id + " running",
				"tool.completed " + id + " failed permission_denied " + id + "-c", "turn.ended " + id + " done",
			}
		}
		_, all := takeWaiting(t, one, "all")
		wantEvents(t, all, append(of("t1"), of("t2")...)...)
		_, ends := takeWaiting(t, other, "ends")
		wantEvents(t, ends, "turn.ended t1 done", "turn.ended t2 done")
		ids := map[string]bool{}
		for _, w := range all {
			ids[w.ID] = true
			if w.Data.Session != session || w.Data.Agent != "main" || time.Since(w.At) > time.Minute || w.Data.Text != "" {
				t.Errorf("an event is %+v", w)
			}
		}
		if len(ids) != len(all) || ends[1].ID != all[len(all)-1].ID {
			t.Errorf("the ids are %v, and those of the other subscription %v", ids, ends)
		}
		if _, none := takeWaiting(t, one, "unknown"); len(none) > 0 {
			t.Errorf("for a subscription that nobody knows there wait %v", describeEvents(none))
		}
	})
}

// A refused append records nothing, and an append whose answer was lost records its events once.
func TestARefusedAppendRecordsNothing(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"turn.*", "message.*"}}, one, other)
		l := openLog(t, one, 1)
		begin := []sessions.Entry{newEntry(t, "t1", sessions.KindTurnStarted, sessions.TurnStarted{Agent: "main"}), newEntry(t, "t1", sessions.KindUser, sessions.User{Text: "x"}, withCause("t1"))}
		for range 2 {
			again := slices.Clone(begin)
			if err := l.Append(t.Context(), 1, again...); err != nil {
				t.Fatal(err)
			}
		}
		newer := openLog(t, other, 2)
		if err := l.Append(t.Context(), l.Next(), newEntry(t, "t1", sessions.KindTurnDone, sessions.TurnDone{State: "done"})); !errors.Is(err, sessions.ErrFenced) {
			t.Errorf("a former holder appends: %v", err)
		}
		if err := newer.Append(t.Context(), newer.Next(), newEntry(t, "t9", sessions.KindUser, sessions.User{Text: "x"}, withCause("t1"))); err == nil {
			t.Error("a known cause is appended")
		}
		_, all := takeWaiting(t, one, "a")
		wantEvents(t, all, "turn.begun t1 running", "message.received t1 t1")
	})
}

// Events are recorded in the statement that also changes budgets, and in the one that raises the fence.
func TestEventsAreRecordedInEveryWayOfAppending(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"turn.*"}}, one, other)
		l := openLog(t, one, 1)
		reservation := &sessions.Reservation{ID: "r", Person: "telegram:1", Tokens: 5, Cap: 100}
		if _, err := l.(bill.Log).AppendWith(t.Context(), l.Next(), bill.Change{Tokens: reservation}, newEntry(t, "t1", sessions.KindTurnStarted, sessions.TurnStarted{})); err != nil {
			t.Fatal(err)
		}
		if err := l.(sessions.ReopenableLog).ReopenLater(3); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, newEntry(t, "t1", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnFailed, Code: "model"}))
		_, all := takeWaiting(t, other, "a")
		wantEvents(t, all, "turn.begun t1 running", "turn.ended t1 failed model")
	})
}

// Only one process posts for a subscription: what another one has read or posted before no longer counts.
func TestOneProcessHasAQueue(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"turn.ended"}}, one, other)
		l := openLog(t, one, 1)
		appendTurn(t, l, "t1")
		appendTurn(t, l, "t2")
		appendTurn(t, l, "t3")
		former, all := takeWaiting(t, one, "a")
		if err := former.Remove(t.Context(), all[0]); err != nil {
			t.Fatal(err)
		}
		if err := former.RecordRefusal(t.Context(), "HTTP 500", time.Now().Add(time.Minute), "there"); err != nil {
			t.Fatal(err)
		}
		q, state, err := other.Subscriptions().Take(t.Context(), "a")
		if err != nil || state.Tries != 1 || state.Failing.IsZero() || state.Place != "there" || time.Until(state.RetryAt) < 50*time.Second {
			t.Fatalf("taken over: %+v, %v", state, err)
		}
		for what, err := range map[string]error{
			"removes": former.Remove(t.Context(), all[1]), "refuses": former.RecordRefusal(t.Context(), "no", time.Now(), ""),
			"reads": func() error { _, err := former.Next(t.Context(), 9); return err }(),
			"asks":  func() error { _, err := former.IsDue(t.Context(), all[1]); return err }(),
		} {
			if !errors.Is(err, subscriptions.ErrFenced) {
				t.Errorf("a former process %s: %v", what, err)
			}
		}
		next, err := q.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		wantEvents(t, next, "turn.ended t2 done", "turn.ended t3 done")
		for i, w := range all { // by now, nothing of the first session waits
			if due, err := q.IsDue(t.Context(), w); due != (i > 0) || err != nil {
				t.Errorf("event %d is due: %t, %v", i, due, err)
			}
		}
		for n := range 2 { // the second time, as if the answer to the commit had been lost
			if err := q.Remove(t.Context(), next[0]); err != nil {
				t.Fatal(n, err)
			}
		}
		got, err := one.Subscriptions().State(t.Context(), "a")
		if err != nil || got.Waiting != 1 || !got.Failing.IsZero() || got.Problem != "" || got.Accepted.IsZero() {
			t.Errorf("the state is %+v, %v", got, err)
		}
	})
}

// If nothing is accepted, the oldest events are dropped. One event says how many were dropped, and from when
// until when.
func TestTooManyOrTooOldEventsAreDropped(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"channel.*"}, "b": {"channel.up"}}, one, other)
		table, began := one.Subscriptions(), time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		record := func(from, to int) {
			t.Helper()
			var events []subscriptions.Event
			for i := from; i < to; i++ {
				events = append(events, subscriptions.Event{ID: subscriptions.NewID(fmt.Sprint(i)), Type: subscriptions.ChannelUp, At: began.Add(time.Duration(i) * time.Second), Data: subscriptions.Data{ID: fmt.Sprint(i)}})
			}
			if err := table.Add(t.Context(), events...); err != nil {
				t.Fatal(err)
			}
		}
		trim := func(now time.Time, want int64) subscriptions.Waiting {
			t.Helper()
			if n, err := table.Trim(t.Context(), "a", now); err != nil || n != want {
				t.Errorf("%d were dropped, want %d: %v", n, want, err)
			}
			_, all := takeWaiting(t, other, "a")
			return all[0]
		}
		record(0, subscriptions.MaxWaiting)
		if first := trim(began, 0); first.Data.ID != "0" {
			t.Errorf("the first is %+v", first)
		}
		record(subscriptions.MaxWaiting, subscriptions.MaxWaiting+5)
		first := trim(began, 1005)
		if d := first.Data; first.Type != subscriptions.EventsDropped || d.Count != 1005 || !d.From.Equal(began) || !d.To.Equal(began.Add(1004*time.Second)) {
			t.Errorf("the first is %+v", first)
		}
		// The server was down, or the clock is wrong: a subscriber that has refused nothing loses nothing.
		if same := trim(began.Add(subscriptions.MaxAge+1100*time.Second), 0); same.ID != first.ID {
			t.Errorf("of a subscriber that refuses nothing there waits %+v", same)
		}
		q, _ := takeWaiting(t, one, "a")
		if err := q.RecordRefusal(t.Context(), "HTTP 500", began, ""); err != nil {
			t.Fatal(err)
		}
		// The following events are too old; those that were dropped before and not accepted are counted with
		// them. An event that is older than its predecessors is not dropped.
		late := subscriptions.Event{ID: "late", Type: subscriptions.ChannelUp, At: began, Data: subscriptions.Data{ID: "late"}}
		if err := table.Add(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		again := trim(began.Add(subscriptions.MaxAge+1100*time.Second), 95)
		if d := again.Data; d.Count != 1100 || !d.From.Equal(began) || !d.To.Equal(began.Add(1099*time.Second)) || again.ID == first.ID {
			t.Errorf("then the first is %+v", again)
		}
		if same := trim(began.Add(subscriptions.MaxAge+1100*time.Second), 0); same.ID != again.ID {
			t.Errorf("then %+v", same)
		}
		_, all := takeWaiting(t, one, "a")
		if all[1].Data.ID != "1100" {
			t.Errorf("the next is %+v", all[1])
		}
		if s, err := table.State(t.Context(), "a"); err != nil || s.Dropped != 1100 || s.Waiting != subscriptions.MaxWaiting+5-1100+2 {
			t.Errorf("the state is %+v, %v", s, err)
		}
		if s, err := table.State(t.Context(), "b"); err != nil || s.Dropped != 0 || s.Waiting != subscriptions.MaxWaiting+6 {
			t.Errorf("the state of the other is %+v, %v", s, err)
		}
		// The events of a removed subscription stay for a while, in case it comes back.
		wantOnBoth(t, map[string][]string{"a": {"channel.*"}}, one)
		if err := table.Sweep(t.Context(), began.Add(subscriptions.MaxAge+10*time.Second)); err != nil {
			t.Fatal(err)
		}
		if s, err := table.State(t.Context(), "b"); err != nil || s.Waiting != subscriptions.MaxWaiting+5-10 { // the late event too
			t.Errorf("the state of the one that is gone is %+v, %v", s, err)
		}
	})
}

// An erased event is no longer due, and then nothing counts as refused.
func TestErasedEventsAreNotDue(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"turn.ended"}}, one, other)
		appendTurn(t, openLog(t, one, 1), "t1")
		q, all := takeWaiting(t, one, "a")
		if err := q.RecordRefusal(t.Context(), "HTTP 500", time.Now().Add(time.Hour), "there"); err != nil {
			t.Fatal(err)
		}
		if err := q.ClearRefusal(t.Context()); err != nil { // the queue is not empty yet
			t.Fatal(err)
		}
		if s, err := other.Subscriptions().State(t.Context(), "a"); err != nil || s.Tries != 1 || s.Problem != "HTTP 500" {
			t.Errorf("before, the state is %+v, %v", s, err)
		}
		if _, err := other.EraseSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		if due, err := q.IsDue(t.Context(), all[0]); due || err != nil {
			t.Errorf("it is due: %t, %v", due, err)
		}
		if s, err := one.Subscriptions().State(t.Context(), "a"); err != nil || !s.Failing.IsZero() || s.Tries != 0 || s.Problem != "" {
			t.Errorf("the state is %+v, %v", s, err)
		}
		if err := q.ClearRefusal(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, s, err := other.Subscriptions().Take(t.Context(), "a"); err != nil || !s.Failing.IsZero() || s.Tries != 0 || s.Place != "" {
			t.Errorf("taken over, the state is %+v, %v", s, err)
		}
	})
}

// The failures of a subscription that was removed long ago don't affect a new one with its name. Processes of
// the old one can still change nothing.
func TestASubscriptionThatReusesANameStartsFresh(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"turn.ended"}, "b": {"turn.ended"}}, one, other)
		appendTurn(t, openLog(t, one, 1), "t1")
		former := map[string]*subscriptions.Queue{}
		for _, name := range []string{"a", "b"} {
			q, _ := takeWaiting(t, one, name)
			if err := q.RecordRefusal(t.Context(), "HTTP 500", time.Now(), "there"); err != nil {
				t.Fatal(err)
			}
			former[name] = q
		}
		wantOnBoth(t, map[string][]string{"b": {"turn.ended"}}, one, other)
		for _, after := range []time.Duration{subscriptions.MaxAge - time.Hour, subscriptions.MaxAge + time.Hour} {
			if err := one.Subscriptions().Sweep(t.Context(), time.Now().Add(after)); err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]int{"a": 1, "b": 1} {
				if name == "a" && after > subscriptions.MaxAge {
					want = 0
				}
				_, s, err := other.Subscriptions().Take(t.Context(), name)
				if err != nil || s.Tries != want || s.Failing.IsZero() != (want == 0) {
					t.Errorf("after %s, the state of %s is %+v, %v", after, name, s, err)
				}
				if _, err := former[name].Next(t.Context(), 9); !errors.Is(err, subscriptions.ErrFenced) {
					t.Errorf("a former process reads: %v", err)
				}
			}
		}
	})
}

// Forgetting the person for whom a sub-agent works ends its task with an event. A task that has ended before
// gets no second one.
func TestTasksOfAForgottenPersonAreLost(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"task.ended"}}, one, other)
		openLog(t, one, 1)
		for id, person := range map[string]string{"open": "telegram:1", "ended": "telegram:1", "another": "telegram:2"} {
			k := subagents.Task{ID: id, Parent: session, Session: "helper:agent:p:" + id, Agent: "helper", Person: person, Turn: "t1", Call: "c-" + id, Route: []byte(`{}`), Started: time.Now()}
			if err := one.SubAgents().Prepare(t.Context(), k, 9); err != nil {
				t.Fatal(err)
			}
			if id == "ended" {
				k.State, k.Ended = subagents.Cancelled, time.Now()
				if ours, err := one.SubAgents().End(t.Context(), k, subagents.Prepared); !ours || err != nil {
					t.Fatal(ours, err)
				}
			}
		}
		for range 2 {
			if _, err := other.ErasePerson(t.Context(), "telegram:1"); err != nil && !errors.Is(err, sessions.ErrNotFound) {
				t.Fatal(err)
			}
		}
		_, all := takeWaiting(t, one, "a")
		if got, want := describeEvents(all), []string{"task.ended t1 ended cancelled c-ended", "task.ended t1 open lost c-open"}; !slices.Equal(got, want) {
			t.Errorf("there wait %q, want %q", got, want)
		}
	})
}

// A task that ends while its session is erased has one event, with the state that it has.
func TestATaskEndsWithOneEvent(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"task.ended"}}, one, other)
		openLog(t, one, 1)
		const tasks = 30
		for n := range tasks {
			id := fmt.Sprint(n)
			k := subagents.Task{ID: id, Parent: session, Session: "helper:agent:p:" + id, Agent: "helper", Turn: "t1", Call: "c-" + id, Route: []byte(`{}`), Started: time.Now()}
			if err := one.SubAgents().Prepare(t.Context(), k, tasks); err != nil {
				t.Fatal(err)
			}
			var ends sync.WaitGroup
			ends.Go(func() {
				if _, err := other.EraseSession(context.WithoutCancel(t.Context()), k.Session); err != nil && !errors.Is(err, sessions.ErrNotFound) {
					t.Error(err)
				}
			})
			ends.Go(func() {
				k.State, k.Ended = subagents.Done, time.Now()
				if _, err := one.SubAgents().End(context.WithoutCancel(t.Context()), k, subagents.Prepared); err != nil {
					t.Error(err)
				}
			})
			ends.Wait()
		}
		told := map[string]int{}
		_, all := takeWaiting(t, one, "a")
		for _, w := range all {
			told[w.Data.ID]++
		}
		for n := range tasks {
			if told[fmt.Sprint(n)] != 1 {
				t.Errorf("task %d was told %d times", n, told[fmt.Sprint(n)])
			}
		}
	})
}

// Tasks are recorded in the write that begins or ends them, and only if it does. Their events belong to the
// session that has handed them out.
func TestTasksAreRecorded(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"task.*"}}, one, other)
		openLog(t, one, 1)
		task := func(id string) subagents.Task {
			return subagents.Task{ID: id, Parent: session, Session: "helper:agent:p:" + id, Agent: "helper", Person: "telegram:1", Turn: "t1", Call: "c-" + id, Title: "a secret", Route: []byte(`{}`), Started: time.Now()}
		}
		for _, id := range []string{"done", "stopped", "lost", "discarded", "forgotten"} {
			if err := one.SubAgents().Prepare(t.Context(), task(id), 9); err != nil {
				t.Fatal(err)
			}
			if id == "stopped" || id == "discarded" {
				continue
			}
			for range 2 {
				if err := other.SubAgents().Start(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := one.SubAgents().Start(t.Context(), "nothing"); err != nil {
			t.Error(err)
		}
		for id, state := range map[string]string{"done": subagents.Done, "stopped": subagents.Cancelled} {
			was := map[string]string{"done": subagents.Running, "stopped": subagents.Prepared}[id]
			k := task(id)
			k.State, k.Report, k.Ended = state, "a secret", time.Now()
			for _, want := range []bool{true, false} {
				if ours, err := one.SubAgents().End(t.Context(), k, was); ours != want || err != nil {
					t.Error(id, ours, err)
				}
			}
		}
		if err := one.SubAgents().Discard(t.Context(), "discarded"); err != nil {
			t.Error(err)
		}
		if _, err := one.EraseSession(t.Context(), "helper:agent:p:lost"); err != nil && !errors.Is(err, sessions.ErrNotFound) {
			t.Fatal(err)
		}
		_, all := takeWaiting(t, one, "a")
		got := describeEvents(all)
		slices.Sort(got[3:5]) // their order is that of a map
		want := []string{
			"task.begun t1 done running c-done", "task.begun t1 lost running c-lost", "task.begun t1 forgotten running c-forgotten",
			"task.ended t1 done done c-done", "task.ended t1 stopped cancelled c-stopped", "task.ended t1 lost lost c-lost",
		}
		if !slices.Equal(got, want) {
			t.Errorf("there wait\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, w := range all {
			if d := w.Data; d.Session != session || d.Agent != "main" || d.TaskSession != "helper:agent:p:"+d.ID {
				t.Errorf("an event is %+v", w)
			}
		}
		if _, err := one.EraseSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		if _, left := takeWaiting(t, one, "a"); len(left) > 0 {
			t.Errorf("of the erased session there wait %v", describeEvents(left))
		}
	})
}

// A tool's name that a model has made up may contain what was said to the model.
func TestMadeUpToolNamesAreNotPosted(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, _ *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"tool.*"}}, one)
		l := openLog(t, one, 1)
		want := map[string]string{"made_up": sessions.OtherTool, "the password is hunter2": sessions.OtherTool, strings.Repeat("x", 101): sessions.OtherTool, "schedule": "schedule", "notes__list-all": "notes__list-all"}
		for name := range want {
			call := func(e *sessions.Entry) { e.Call = name }
			all := []sessions.Entry{newEntry(t, "t1", sessions.KindToolUse, sessions.ToolUse{Name: name, Args: []byte(`{}`)}, call)}
			code := "not_found"
			if name == "schedule" {
				all = append(all, newEntry(t, "t1", sessions.KindToolStarted, sessions.ToolStarted{Attempt: 1}, call))
			} else if name != "made_up" {
				code = ""
			}
			all = append(all, newEntry(t, "t1", sessions.KindToolResult, sessions.ToolResult{Content: []byte(`{}`), Code: code}, call))
			if err := l.Append(t.Context(), l.Next(), all...); err != nil {
				t.Fatal(err)
			}
		}
		_, all := takeWaiting(t, one, "a")
		if len(all) != len(want) {
			t.Errorf("there wait %v", describeEvents(all))
		}
		for _, w := range all {
			if got, err := one.Subscriptions().Tool(t.Context(), w.Event); got != want[w.Data.Call] || err != nil {
				t.Errorf("of the call of %q, the event says %q, %v", w.Data.Call, got, err)
			}
		}
	})
}

// Texts are read when an event is posted, and no longer after they were erased.
func TestTextsAreNotStored(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"turn.ended", "message.*", "tool.*"}}, one, other)
		appendTurn(t, openLog(t, one, 1), "t1")
		_, all := takeWaiting(t, one, "a")
		wantEvents(t, all, "message.received t1 t1", "tool.completed t1 failed permission_denied t1-c", "turn.ended t1 done")
		said := func() (texts [4]string) {
			t.Helper()
			var err [4]error
			texts[0], err[0] = other.Subscriptions().Words(t.Context(), all[0].Event)
			texts[1], err[1] = other.Subscriptions().Words(t.Context(), all[1].Event)
			texts[2], err[2] = other.Subscriptions().Words(t.Context(), all[2].Event)
			texts[3], err[3] = other.Subscriptions().Tool(t.Context(), all[1].Event)
			if e := errors.Join(err[:]...); e != nil {
				t.Fatal(e)
			}
			return texts
		}
		if got := said(); got != [4]string{"a question", "", "an answer", "shell"} {
			t.Errorf("the texts are %q", got)
		}
		if _, err := one.EraseSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		if got := said(); got != [4]string{} {
			t.Errorf("after the erasure the texts are %q", got)
		}
		if _, left := takeWaiting(t, one, "a"); len(left) > 0 {
			t.Errorf("of what was erased there wait %v", describeEvents(left))
		}
		// The entries of the new session have the same numbers, and other ids.
		appendTurn(t, openLog(t, one, time.Now().Add(time.Hour).UnixMicro()), "t2")
		if _, again := takeWaiting(t, one, "a"); len(again) != 3 || again[0].ID == all[0].ID {
			t.Errorf("of the new session there wait %+v", again)
		}
	})
}

// The words of an erased message are no longer there when its event is posted.
func TestTheTextOfAnErasedMessageIsGone(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"message.*"}}, one, other)
		l := openLog(t, one, 1)
		appendTurn(t, l, "t1")
		_, all := takeWaiting(t, one, "a")
		if said, err := other.Subscriptions().Words(t.Context(), all[0].Event); said != "a question" || err != nil {
			t.Errorf("before, it reads %q, %v", said, err)
		}
		if err := l.(sessions.MessageEraser).EraseMessage(t.Context(), "t1"); err != nil {
			t.Fatal(err)
		}
		if said, err := other.Subscriptions().Words(t.Context(), all[0].Event); said != "" || err != nil {
			t.Errorf("it reads %q, %v", said, err)
		}
	})
}

// Events that no subscription wants are not recorded.
func TestNothingIsRecordedForNobody(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		appendTurn(t, openLog(t, one, 1), "t1")
		rang := 0
		one.Subscriptions().OnAdded(func() { rang++ })
		wantOnBoth(t, map[string][]string{"a": {"ask.*"}}, one)
		appendTurn(t, openLog(t, one, 2), "t2")
		if _, all := takeWaiting(t, other, "a"); len(all) > 0 || rang > 0 {
			t.Errorf("there wait %v, and the bell rang %d times", describeEvents(all), rang)
		}
		if n, err := one.Subscriptions().Exec(t.Context(), subscriptions.Event{Type: subscriptions.JobEnded}, "DELETE FROM jobs WHERE id = ?", []any{"x"}); n != 0 || err != nil {
			t.Error(n, err)
		}
		wantOnBoth(t, map[string][]string{"a": {"turn.begun"}}, one)
		appendTurn(t, openLog(t, one, 3), "t3")
		if _, all := takeWaiting(t, other, "a"); len(all) != 1 || rang != 1 {
			t.Errorf("there wait %v, and the bell rang %d times", describeEvents(all), rang)
		}
	})
}

// Jobs and schedules are recorded in the write that begins, changes or ends them, and only if it does.
func TestChangedRowsAreRecorded(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"job.*"}}, one, other)
		openLog(t, one, 1)
		now := time.Now()
		j := sessions.Job{ID: "j1", Session: session, Person: "telegram:1", Turn: "t1", Tool: "shell", Command: "a secret", Started: now, Deadline: now.Add(time.Hour)}
		for n, want := range []error{nil, sessions.ErrJobKnown} {
			if err := one.BeginJob(t.Context(), j, sessions.JobLimits{Session: 5, Person: 5}); !errors.Is(err, want) {
				t.Errorf("attempt %d: %v", n, err)
			}
		}
		j.State, j.Ended = "exited", now.Add(time.Minute)
		for _, want := range []bool{true, false} {
			if ours, err := other.EndJob(t.Context(), j); ours != want || err != nil {
				t.Error(ours, err)
			}
		}
		_, all := takeWaiting(t, one, "a")
		wantEvents(t, all, "job.begun t1 j1 running", "job.ended t1 j1 exited")
	})
}

// Changes of schedules are recorded, and calls that change nothing are not.
func TestSchedulesAreRecorded(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		wantOnBoth(t, map[string][]string{"a": {"schedule.*"}}, one, other)
		table, now := one.Schedules(), time.Now().Truncate(time.Microsecond)
		s := schedules.Schedule{ID: "s1", Session: session, Person: "telegram:1", Address: "telegram:1", When: "every 1h", Zone: "UTC", Text: "a secret", MadeAt: now, Next: now.Add(time.Hour)}
		for range 2 {
			if _, err := table.Add(t.Context(), s, 5); err != nil {
				t.Fatal(err)
			}
		}
		changed := s
		changed.Text = "another secret"
		for _, want := range []bool{true, false} {
			if ours, err := table.Replace(t.Context(), s, changed); ours != want || err != nil {
				t.Error(ours, err)
			}
		}
		for n, result := range []string{schedules.SlotFired, "no_access"} {
			due := changed
			due.Slot, due.Next = changed.Next, changed.Next.Add(time.Hour)
			if ours, err := other.Schedules().BeginSlot(t.Context(), changed, due); !ours || err != nil {
				t.Fatal(n, ours, err)
			}
			for range 2 {
				if err := table.EndSlot(t.Context(), due, result); err != nil {
					t.Fatal(err)
				}
			}
			if n == 0 {
				changed.Next = due.Next
			}
		}
		for _, want := range []error{nil, schedules.ErrNone} {
			if err := table.Remove(t.Context(), "s1"); !errors.Is(err, want) {
				t.Error(err)
			}
		}
		_, all := takeWaiting(t, one, "a")
		fired := s
		fired.Slot = s.Next
		wantEvents(t, all, "schedule.added s1 added", "schedule.changed s1 changed", "schedule.fired "+fired.SlotID()+" s1 fired", "schedule.failed s1 no_access", "schedule.cancelled s1 cancelled")
		for _, w := range all {
			if w.Data.Session != session {
				t.Errorf("an event is %+v", w)
			}
		}
	})
}

// A pattern names a type or a group.
func TestSelect(t *testing.T) {
	for pattern, want := range map[string]int{"turn.*": 4, "turn.ended": 1, "ask.*": 2, "*": 0, "turn": 0, "turn.": 0, ".*": 0, "tur.*": 0, "events.dropped": 0, "task.*": 2, "dead_letter.*": 3} {
		if got := subscriptions.Select(pattern); len(got) != want {
			t.Errorf("%q selects %v", pattern, got)
		}
	}
}

// BenchmarkIsDue measures the query before each request.
func BenchmarkIsDue(b *testing.B) {
	for name, place := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") },
		"postgres": sqldbtest.New,
	} {
		b.Run(name, func(b *testing.B) {
			s, err := sqlstore.Open(b.Context(), place(b))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			s.Subscriptions().Want(subscriptions.Subscription{Name: "a", Events: "turn.*"})
			appendTurn(b, openLog(b, s, 1), "t")
			q, _, err := s.Subscriptions().Take(b.Context(), "a")
			if err != nil {
				b.Fatal(err)
			}
			next, err := q.Next(b.Context(), 1)
			if err != nil || len(next) != 1 {
				b.Fatal(next, err)
			}
			for b.Loop() {
				if due, err := q.IsDue(b.Context(), next[0]); err != nil || !due {
					b.Fatal(due, err)
				}
			}
		})
	}
}

// BenchmarkAppend measures how much recording adds to the writes of a turn.
func BenchmarkAppend(b *testing.B) {
	for name, place := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") },
		"postgres": sqldbtest.New,
	} {
		for _, events := range []string{"", "turn.*", "turn.* tool.* message.*"} {
			b.Run(fmt.Sprintf("%s/wants %q", name, events), func(b *testing.B) {
				s, err := sqlstore.Open(b.Context(), place(b))
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				s.Subscriptions().Want(subscriptions.Subscription{Name: "a", Events: events})
				l := openLog(b, s, 1)
				for i := 0; b.Loop(); i++ {
					appendTurn(b, l, fmt.Sprint("t", i))
				}
			})
		}
	}
}

// A secret in the form of Standard Webhooks is decoded.
func TestKey(t *testing.T) {
	for secret, want := range map[string]string{"plain": "plain", "whsec_" + base64.StdEncoding.EncodeToString([]byte("raw")): "raw", "whsec_?": "whsec_?"} {
		if key, ok := subscriptions.Key(secret); string(key) != want || ok != (secret != "whsec_?") {
			t.Errorf("%q is %q, %v", secret, key, ok)
		}
	}
}
