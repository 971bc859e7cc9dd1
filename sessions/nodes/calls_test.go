package nodes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/nodes"
)

func newCall(id, node string) nodes.Call {
	return nodes.Call{
		ID: id, Node: node, Tool: "look", Session: session, Person: "telegram:2", Agent: "main", Turn: "t\x00",
		Args: []byte(`{"at":"the door"}`), Timeout: 90 * time.Second, MadeAt: nowInMicros(),
	}
}

// GiveHere reports that the call is sent only to the process that has the device's link.
func TestGiveHereSendsOnlyWithTheLink(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustLink(t, one, "pi", "key", "p1")
		for id, c := range map[string]struct {
			process string
			sends   bool
		}{"here": {"p1", true}, "elsewhere": {"p2", false}, "nowhere": {"", false}} {
			got, sends, err := other.GiveHere(t.Context(), newCall(id, "pi"), c.process)
			if err != nil || sends != c.sends || got.SentAt.IsZero() == c.sends {
				t.Errorf("%s: sends %v, sent at %s, %v", id, sends, got.SentAt, err)
			}
			if again, sends, err := one.GiveHere(t.Context(), newCall(id, "pi"), "p1"); err != nil || sends || !again.SentAt.Equal(got.SentAt) {
				t.Errorf("%s once more: sends %v, sent at %s, %v", id, sends, again.SentAt, err)
			}
		}
		if gone, err := one.Withdraw(t.Context(), "here"); err != nil || gone {
			t.Errorf("a call that is about to be sent is withdrawn: %v, %v", gone, err)
		}
		requireNoError(t, one.Unlink(t.Context(), "pi", "p1", nowInMicros()))
		if _, sends, err := one.GiveHere(t.Context(), newCall("away", "pi"), "p1"); err != nil || sends {
			t.Errorf("without a link: sends %v, %v", sends, err)
		}
	})
}

func mustGive(t *testing.T, table *nodes.Table, id, node string) {
	t.Helper()
	_, err := table.Give(t.Context(), newCall(id, node))
	requireNoError(t, err)
}

func mustCall(t *testing.T, table *nodes.Table, id string) nodes.Call {
	t.Helper()
	c, err := table.Call(t.Context(), id)
	requireNoError(t, err)
	return c
}

// mustLink lets a device join, and links it to a process.
func mustLink(t *testing.T, table *nodes.Table, name, key, process string) {
	t.Helper()
	n := newDevice(name, key)
	mustJoin(t, table, n)
	_, err := table.Link(t.Context(), name, process, n.Offer, nowInMicros())
	requireNoError(t, err)
}

func TestACallIsGivenOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.Give(t.Context(), newCall("a", "pi"))
		wantError(t, "give nobody a call", err, nodes.ErrUnknown)
		mustJoin(t, one, newDevice("pi", "key"))
		want := newCall("a", "pi")
		got, err := one.Give(t.Context(), want)
		requireNoError(t, err)
		for _, got := range []nodes.Call{got, mustCall(t, other, "a")} {
			if got.ID != "a" || got.Node != "pi" || got.Tool != "look" || got.Session != session || got.Person != want.Person || got.Agent != "main" ||
				got.Turn != want.Turn || string(got.Args) != string(want.Args) || got.Timeout != want.Timeout || !got.MadeAt.Equal(want.MadeAt) ||
				!got.SentAt.IsZero() || got.Cancelled || got.Outcome != nil || !got.Ended.IsZero() {
				t.Errorf("it is %+v, want %+v", got, want)
			}
		}
		again := want
		again.Args, again.MadeAt = []byte(`{"at":"the window"}`), want.MadeAt.Add(time.Minute)
		if got, err := other.Give(t.Context(), again); err != nil || string(got.Args) != string(want.Args) || !got.MadeAt.Equal(want.MadeAt) {
			t.Errorf("given again, it is %+v, %v", got, err)
		}
		stray := newCall("b", "pi")
		stray.Session = "main:telegram:9"
		_, err = one.Give(t.Context(), stray)
		wantError(t, "a call of a session that does not exist", err, sessions.ErrNotFound)
		_, err = one.Call(t.Context(), "b")
		wantError(t, "look up a call that was not given", err, nodes.ErrUnknown)
	})
}

// Two processes that give the same call concurrently record it only once.
func TestConcurrentGivesRecordOneCall(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustJoin(t, one, newDevice("pi", "key"))
		for i := range 20 {
			var a, b nodes.Call
			var errA, errB error
			first, second := newCall(fmt.Sprint(i), "pi"), newCall(fmt.Sprint(i), "pi")
			first.Turn, second.Turn = "first", "second"
			runBoth(func() { a, errA = one.Give(t.Context(), first) }, func() { b, errB = other.Give(t.Context(), second) })
			if errA != nil || errB != nil || a.Turn != b.Turn {
				t.Errorf("they have %q and %q, %v and %v", a.Turn, b.Turn, errA, errB)
			}
		}
	})
}

func TestOpenCallsAreInOrder(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustLink(t, one, "pi", "key", "p1")
		mustLink(t, one, "lab", "key", "p1")
		at := nowInMicros()
		for i, id := range []string{"z", "c", "b", "a", "y"} {
			c := newCall(id, "pi")
			c.MadeAt = at.Add(time.Duration(i) * time.Microsecond)
			if id == "a" { // made at the same time as b
				c.MadeAt = at.Add(2 * time.Microsecond)
			}
			_, err := one.Give(t.Context(), c)
			requireNoError(t, err)
		}
		mustGive(t, one, "of lab", "lab")
		_, err := one.End(t.Context(), "c", []byte(`{}`), nowInMicros())
		requireNoError(t, err)
		_, err = one.Cancel(t.Context(), "y", []byte(`{}`), nowInMicros())
		requireNoError(t, err)
		_, err = one.Send(t.Context(), "z", "p1", nowInMicros())
		requireNoError(t, err)
		_, err = one.Cancel(t.Context(), "z", []byte(`{}`), nowInMicros()) // the call was sent, so it is still open
		requireNoError(t, err)
		open, err := other.Open(t.Context(), "pi")
		requireNoError(t, err)
		var ids []string
		for _, c := range open {
			ids = append(ids, c.ID)
		}
		if !slices.Equal(ids, []string{"z", "a", "b"}) {
			t.Errorf("open are %q", ids)
		}
		if open, err := other.Open(t.Context(), "nobody"); err != nil || len(open) != 0 {
			t.Errorf("of nobody are %v, %v", open, err)
		}
	})
}

func TestOnlyTheProcessWithTheLinkSends(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.Send(t.Context(), "a", "p1", nowInMicros())
		wantError(t, "send a call that there is not", err, nodes.ErrUnknown)
		mustLink(t, one, "pi", "key", "p1")
		mustGive(t, one, "a", "pi")
		for _, process := range []string{"p2", ""} {
			_, err = other.Send(t.Context(), "a", process, nowInMicros())
			wantError(t, "send as "+process, err, nodes.ErrOther)
		}
		if got := mustCall(t, one, "a"); !got.SentAt.IsZero() {
			t.Errorf("it is sent: %+v", got)
		}
		first := nowInMicros()
		if got, err := one.Send(t.Context(), "a", "p1", first); err != nil || !got.SentAt.Equal(first) || string(got.Args) == "" {
			t.Errorf("sent, it is %+v, %v", got, err)
		}
		if got, err := one.Send(t.Context(), "a", "p1", first.Add(time.Second)); err != nil || !got.SentAt.Equal(first) {
			t.Errorf("sent again, it is %+v, %v", got, err)
		}
		requireNoError(t, one.Unlink(t.Context(), "pi", "p1", nowInMicros()))
		for _, process := range []string{"p1", ""} {
			_, err = one.Send(t.Context(), "a", process, nowInMicros())
			wantError(t, "send without a link as "+process, err, nodes.ErrOther)
		}
		_, err = one.End(t.Context(), "a", []byte(`{"status":"ok"}`), nowInMicros())
		requireNoError(t, err)
		if got, err := other.Send(t.Context(), "a", "p2", nowInMicros()); err != nil || string(got.Outcome) != `{"status":"ok"}` || !got.SentAt.Equal(first) {
			t.Errorf("one that has ended is %+v, %v", got, err)
		}
	})
}

// Once another process has the link, the former one sends nothing more. What it has sent is recorded by then.
func TestSendWhileTheLinkMoves(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 30 {
			name := fmt.Sprint("pi", i)
			mustLink(t, one, name, "key", "p1")
			mustGive(t, one, name, name)
			var sent, linked error
			var seen nodes.Call
			runBoth(func() { _, sent = one.Send(t.Context(), name, "p1", nowInMicros()) }, func() {
				_, linked = other.Link(t.Context(), name, "p2", []byte(`{}`), nowInMicros())
				seen, _ = other.Call(t.Context(), name)
			})
			requireNoError(t, linked)
			if sent != nil {
				wantError(t, "send", sent, nodes.ErrOther)
			} else if seen.SentAt.IsZero() {
				t.Error("it was sent after another process had the link")
			}
		}
	})
}

func TestACallIsCancelled(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.Cancel(t.Context(), "a", nil, nowInMicros())
		wantError(t, "cancel a call that there is not", err, nodes.ErrUnknown)
		mustLink(t, one, "pi", "key", "p1")
		for _, id := range []string{"waits", "sent", "ended"} {
			mustGive(t, one, id, "pi")
		}
		for _, id := range []string{"sent", "ended"} {
			_, err := one.Send(t.Context(), id, "p1", nowInMicros())
			requireNoError(t, err)
		}
		notRun, done, at := []byte(`{"status":"not_run"}`), []byte(`{"status":"ok"}`), nowInMicros()
		_, err = one.End(t.Context(), "ended", done, at)
		requireNoError(t, err)
		for i := range 2 {
			later := at.Add(time.Duration(i) * time.Second)
			if got, err := other.Cancel(t.Context(), "waits", notRun, later); err != nil || string(got.Outcome) != string(notRun) || !got.Ended.Equal(at) || !got.SentAt.IsZero() {
				t.Errorf("what was not sent is %+v, %v", got, err)
			}
			if got, err := other.Cancel(t.Context(), "sent", notRun, later); err != nil || !got.Cancelled || got.Outcome != nil || !got.Ended.IsZero() {
				t.Errorf("what was sent is %+v, %v", got, err)
			}
			if got, err := other.Cancel(t.Context(), "ended", notRun, later); err != nil || got.Cancelled || string(got.Outcome) != string(done) {
				t.Errorf("what has ended is %+v, %v", got, err)
			}
		}
		if got, err := one.Send(t.Context(), "waits", "p1", nowInMicros()); err != nil || got.Outcome == nil || !got.SentAt.IsZero() {
			t.Errorf("nobody sends it anymore: %+v, %v", got, err)
		}
		if got, err := one.Send(t.Context(), "sent", "p1", nowInMicros()); err != nil || !got.Cancelled {
			t.Errorf("who sends it again hears that it is cancelled: %+v, %v", got, err)
		}
		if got, err := one.End(t.Context(), "sent", done, at); err != nil || !got.Cancelled || string(got.Outcome) != string(done) || !got.Ended.Equal(at) {
			t.Errorf("it may end: %+v, %v", got, err)
		}
	})
}

// A call that is canceled while it is about to be sent has either been sent, and then the node must be told, or
// it has ended.
func TestCancelWhileACallIsSent(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustLink(t, one, "pi", "key", "p1")
		for i := range 30 {
			id := fmt.Sprint(i)
			mustGive(t, one, id, "pi")
			var sent, cancelled nodes.Call
			var errSent, errCancelled error
			runBoth(func() { sent, errSent = one.Send(t.Context(), id, "p1", nowInMicros()) },
				func() {
					cancelled, errCancelled = other.Cancel(t.Context(), id, []byte(`{"status":"not_run"}`), nowInMicros())
				})
			requireNoError(t, errSent)
			requireNoError(t, errCancelled)
			goes := !sent.SentAt.IsZero() && sent.Ended.IsZero()
			if over := !cancelled.Ended.IsZero(); goes == over || over && !cancelled.SentAt.IsZero() || !over && !cancelled.Cancelled {
				t.Errorf("it was sent as %+v, and cancelled as %+v", sent, cancelled)
			}
		}
	})
}

// A call ends once. Later attempts to end it get the recorded outcome.
func TestACallEndsOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.End(t.Context(), "a", []byte(`{}`), nowInMicros())
		wantError(t, "end a call that there is not", err, nodes.ErrUnknown)
		mustLink(t, one, "pi", "key", "p1")
		for i := range 20 {
			id := fmt.Sprint(i)
			mustGive(t, one, id, "pi")
			var a, b nodes.Call
			var errA, errB error
			at := nowInMicros()
			runBoth(func() { a, errA = one.End(t.Context(), id, []byte(`{"a":1}`), at) },
				func() { b, errB = other.End(t.Context(), id, []byte(`{"b":1}`), at.Add(time.Second)) })
			requireNoError(t, errA)
			requireNoError(t, errB)
			got := mustCall(t, one, id)
			if string(a.Outcome) != string(b.Outcome) || string(a.Outcome) != string(got.Outcome) || a.Outcome == nil || !a.Ended.Equal(b.Ended) {
				t.Errorf("it ends with %s and %s", a.Outcome, b.Outcome)
			}
		}
	})
}

// Calls for which nobody has waited for a week are removed when another one is given. Open calls stay.
func TestOldCallsAreRemoved(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustLink(t, one, "pi", "key", "p1")
		old := nowInMicros().Add(-8 * 24 * time.Hour)
		for _, id := range []string{"open", "ended", "cancelled", "new"} {
			c := newCall(id, "pi")
			c.MadeAt = old
			_, err := one.Give(t.Context(), c)
			requireNoError(t, err)
			_, err = one.Send(t.Context(), id, "p1", old)
			requireNoError(t, err)
		}
		_, err := one.End(t.Context(), "ended", []byte(`{}`), old)
		requireNoError(t, err)
		_, err = one.Cancel(t.Context(), "cancelled", []byte(`{}`), old)
		requireNoError(t, err)
		_, err = one.End(t.Context(), "new", []byte(`{}`), nowInMicros())
		requireNoError(t, err)
		mustGive(t, other, "another", "pi")
		for id, want := range map[string]error{"open": nil, "ended": nodes.ErrUnknown, "cancelled": nodes.ErrUnknown, "new": nil} {
			_, err := one.Call(t.Context(), id)
			wantError(t, id, err, want)
		}
		_, err = one.End(t.Context(), "cancelled", []byte(`{}`), nowInMicros())
		wantError(t, "end a call that is gone", err, nodes.ErrUnknown)
	})
}
