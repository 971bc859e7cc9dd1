package nodes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/nodes"
)

func sample(id, node string) nodes.Call {
	return nodes.Call{
		ID: id, Node: node, Tool: "look", Session: session, Person: "telegram:2", Agent: "main", Turn: "t\x00",
		Args: []byte(`{"at":"the door"}`), Timeout: 90 * time.Second, Made: now(),
	}
}

// Whoever gives a call to a device whose link it has is about to send the call, and nobody else is.
func TestACallIsGivenWhereTheLinkIs(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		link(t, one, "pi", "key", "p1")
		for id, c := range map[string]struct {
			process string
			sends   bool
		}{"here": {"p1", true}, "elsewhere": {"p2", false}, "nowhere": {"", false}} {
			got, sends, err := other.GiveHere(t.Context(), sample(id, "pi"), c.process)
			if err != nil || sends != c.sends || got.Sent.IsZero() == c.sends {
				t.Errorf("%s: sends %v, sent at %s, %v", id, sends, got.Sent, err)
			}
			if again, sends, err := one.GiveHere(t.Context(), sample(id, "pi"), "p1"); err != nil || sends || !again.Sent.Equal(got.Sent) {
				t.Errorf("%s once more: sends %v, sent at %s, %v", id, sends, again.Sent, err)
			}
		}
		if gone, err := one.Withdraw(t.Context(), "here"); err != nil || gone {
			t.Errorf("a call that is about to be sent is withdrawn: %v, %v", gone, err)
		}
		must(t, one.Unlink(t.Context(), "pi", "p1", now()))
		if _, sends, err := one.GiveHere(t.Context(), sample("away", "pi"), "p1"); err != nil || sends {
			t.Errorf("without a link: sends %v, %v", sends, err)
		}
	})
}

func give(t *testing.T, table *nodes.Table, id, node string) {
	t.Helper()
	_, err := table.Give(t.Context(), sample(id, node))
	must(t, err)
}

func call(t *testing.T, table *nodes.Table, id string) nodes.Call {
	t.Helper()
	c, err := table.Call(t.Context(), id)
	must(t, err)
	return c
}

// link has a device join and links it.
func link(t *testing.T, table *nodes.Table, name, key, process string) {
	t.Helper()
	n := device(name, key)
	join(t, table, n)
	_, err := table.Link(t.Context(), name, process, n.Offer, now())
	must(t, err)
}

func TestACallIsGivenOnce(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.Give(t.Context(), sample("a", "pi"))
		wants(t, "give nobody a call", err, nodes.ErrUnknown)
		join(t, one, device("pi", "key"))
		want := sample("a", "pi")
		got, err := one.Give(t.Context(), want)
		must(t, err)
		for _, got := range []nodes.Call{got, call(t, other, "a")} {
			if got.ID != "a" || got.Node != "pi" || got.Tool != "look" || got.Session != session || got.Person != want.Person || got.Agent != "main" ||
				got.Turn != want.Turn || string(got.Args) != string(want.Args) || got.Timeout != want.Timeout || !got.Made.Equal(want.Made) ||
				!got.Sent.IsZero() || got.Cancelled || got.Outcome != nil || !got.Ended.IsZero() {
				t.Errorf("it is %+v, want %+v", got, want)
			}
		}
		again := want
		again.Args, again.Made = []byte(`{"at":"the window"}`), want.Made.Add(time.Minute)
		if got, err := other.Give(t.Context(), again); err != nil || string(got.Args) != string(want.Args) || !got.Made.Equal(want.Made) {
			t.Errorf("given again, it is %+v, %v", got, err)
		}
		stray := sample("b", "pi")
		stray.Session = "main:telegram:9"
		_, err = one.Give(t.Context(), stray)
		wants(t, "a call of a session that does not exist", err, sessions.ErrNotFound)
		_, err = one.Call(t.Context(), "b")
		wants(t, "look up a call that was not given", err, nodes.ErrUnknown)
	})
}

// Two processes that give the same call at once have recorded one.
func TestGiveTwiceAtOnce(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		join(t, one, device("pi", "key"))
		for i := range 20 {
			var a, b nodes.Call
			var errA, errB error
			first, second := sample(fmt.Sprint(i), "pi"), sample(fmt.Sprint(i), "pi")
			first.Turn, second.Turn = "first", "second"
			both(func() { a, errA = one.Give(t.Context(), first) }, func() { b, errB = other.Give(t.Context(), second) })
			if errA != nil || errB != nil || a.Turn != b.Turn {
				t.Errorf("they have %q and %q, %v and %v", a.Turn, b.Turn, errA, errB)
			}
		}
	})
}

func TestOpenCallsAreInOrder(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		link(t, one, "pi", "key", "p1")
		link(t, one, "lab", "key", "p1")
		at := now()
		for i, id := range []string{"z", "c", "b", "a", "y"} {
			c := sample(id, "pi")
			c.Made = at.Add(time.Duration(i) * time.Microsecond)
			if id == "a" { // made at the same time as b
				c.Made = at.Add(2 * time.Microsecond)
			}
			_, err := one.Give(t.Context(), c)
			must(t, err)
		}
		give(t, one, "of lab", "lab")
		_, err := one.End(t.Context(), "c", []byte(`{}`), now())
		must(t, err)
		_, err = one.Cancel(t.Context(), "y", []byte(`{}`), now())
		must(t, err)
		_, err = one.Send(t.Context(), "z", "p1", now())
		must(t, err)
		_, err = one.Cancel(t.Context(), "z", []byte(`{}`), now()) // it was sent, and so it is open
		must(t, err)
		open, err := other.Open(t.Context(), "pi")
		must(t, err)
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
	each(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.Send(t.Context(), "a", "p1", now())
		wants(t, "send a call that there is not", err, nodes.ErrUnknown)
		link(t, one, "pi", "key", "p1")
		give(t, one, "a", "pi")
		for _, process := range []string{"p2", ""} {
			_, err = other.Send(t.Context(), "a", process, now())
			wants(t, "send as "+process, err, nodes.ErrOther)
		}
		if got := call(t, one, "a"); !got.Sent.IsZero() {
			t.Errorf("it is sent: %+v", got)
		}
		first := now()
		if got, err := one.Send(t.Context(), "a", "p1", first); err != nil || !got.Sent.Equal(first) || string(got.Args) == "" {
			t.Errorf("sent, it is %+v, %v", got, err)
		}
		if got, err := one.Send(t.Context(), "a", "p1", first.Add(time.Second)); err != nil || !got.Sent.Equal(first) {
			t.Errorf("sent again, it is %+v, %v", got, err)
		}
		must(t, one.Unlink(t.Context(), "pi", "p1", now()))
		for _, process := range []string{"p1", ""} {
			_, err = one.Send(t.Context(), "a", process, now())
			wants(t, "send without a link as "+process, err, nodes.ErrOther)
		}
		_, err = one.End(t.Context(), "a", []byte(`{"status":"ok"}`), now())
		must(t, err)
		if got, err := other.Send(t.Context(), "a", "p2", now()); err != nil || string(got.Outcome) != `{"status":"ok"}` || !got.Sent.Equal(first) {
			t.Errorf("one that has ended is %+v, %v", got, err)
		}
	})
}

// Once another process has the link, the one before sends nothing more: what it has sent is recorded by then.
func TestSendWhileTheLinkMoves(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 30 {
			name := fmt.Sprint("pi", i)
			link(t, one, name, "key", "p1")
			give(t, one, name, name)
			var sent, linked error
			var seen nodes.Call
			both(func() { _, sent = one.Send(t.Context(), name, "p1", now()) }, func() {
				_, linked = other.Link(t.Context(), name, "p2", []byte(`{}`), now())
				seen, _ = other.Call(t.Context(), name)
			})
			must(t, linked)
			if sent != nil {
				wants(t, "send", sent, nodes.ErrOther)
			} else if seen.Sent.IsZero() {
				t.Error("it was sent after another process had the link")
			}
		}
	})
}

func TestACallIsCancelled(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.Cancel(t.Context(), "a", nil, now())
		wants(t, "cancel a call that there is not", err, nodes.ErrUnknown)
		link(t, one, "pi", "key", "p1")
		for _, id := range []string{"waits", "sent", "ended"} {
			give(t, one, id, "pi")
		}
		for _, id := range []string{"sent", "ended"} {
			_, err := one.Send(t.Context(), id, "p1", now())
			must(t, err)
		}
		notRun, done, at := []byte(`{"status":"not_run"}`), []byte(`{"status":"ok"}`), now()
		_, err = one.End(t.Context(), "ended", done, at)
		must(t, err)
		for i := range 2 {
			later := at.Add(time.Duration(i) * time.Second)
			if got, err := other.Cancel(t.Context(), "waits", notRun, later); err != nil || string(got.Outcome) != string(notRun) || !got.Ended.Equal(at) || !got.Sent.IsZero() {
				t.Errorf("what was not sent is %+v, %v", got, err)
			}
			if got, err := other.Cancel(t.Context(), "sent", notRun, later); err != nil || !got.Cancelled || got.Outcome != nil || !got.Ended.IsZero() {
				t.Errorf("what was sent is %+v, %v", got, err)
			}
			if got, err := other.Cancel(t.Context(), "ended", notRun, later); err != nil || got.Cancelled || string(got.Outcome) != string(done) {
				t.Errorf("what has ended is %+v, %v", got, err)
			}
		}
		if got, err := one.Send(t.Context(), "waits", "p1", now()); err != nil || got.Outcome == nil || !got.Sent.IsZero() {
			t.Errorf("nobody sends it anymore: %+v, %v", got, err)
		}
		if got, err := one.Send(t.Context(), "sent", "p1", now()); err != nil || !got.Cancelled {
			t.Errorf("who sends it again hears that it is cancelled: %+v, %v", got, err)
		}
		if got, err := one.End(t.Context(), "sent", done, at); err != nil || !got.Cancelled || string(got.Outcome) != string(done) || !got.Ended.Equal(at) {
			t.Errorf("it may end: %+v, %v", got, err)
		}
	})
}

// A call that is canceled while it is about to be sent either was sent, and then the node has to hear of it, or it is over.
func TestCancelWhileACallIsSent(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		link(t, one, "pi", "key", "p1")
		for i := range 30 {
			id := fmt.Sprint(i)
			give(t, one, id, "pi")
			var sent, cancelled nodes.Call
			var errSent, errCancelled error
			both(func() { sent, errSent = one.Send(t.Context(), id, "p1", now()) },
				func() { cancelled, errCancelled = other.Cancel(t.Context(), id, []byte(`{"status":"not_run"}`), now()) })
			must(t, errSent)
			must(t, errCancelled)
			goes := !sent.Sent.IsZero() && sent.Ended.IsZero()
			if over := !cancelled.Ended.IsZero(); goes == over || over && !cancelled.Sent.IsZero() || !over && !cancelled.Cancelled {
				t.Errorf("it was sent as %+v, and cancelled as %+v", sent, cancelled)
			}
		}
	})
}

// A call ends once: whoever comes later hears how.
func TestACallEndsOnce(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.End(t.Context(), "a", []byte(`{}`), now())
		wants(t, "end a call that there is not", err, nodes.ErrUnknown)
		link(t, one, "pi", "key", "p1")
		for i := range 20 {
			id := fmt.Sprint(i)
			give(t, one, id, "pi")
			var a, b nodes.Call
			var errA, errB error
			at := now()
			both(func() { a, errA = one.End(t.Context(), id, []byte(`{"a":1}`), at) },
				func() { b, errB = other.End(t.Context(), id, []byte(`{"b":1}`), at.Add(time.Second)) })
			must(t, errA)
			must(t, errB)
			got := call(t, one, id)
			if string(a.Outcome) != string(b.Outcome) || string(a.Outcome) != string(got.Outcome) || a.Outcome == nil || !a.Ended.Equal(b.Ended) {
				t.Errorf("it ends with %s and %s", a.Outcome, b.Outcome)
			}
		}
	})
}

// Calls for which nobody has waited for a week go when another one is given; those that are open stay.
func TestOldCallsAreRemoved(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		link(t, one, "pi", "key", "p1")
		old := now().Add(-8 * 24 * time.Hour)
		for _, id := range []string{"open", "ended", "cancelled", "new"} {
			c := sample(id, "pi")
			c.Made = old
			_, err := one.Give(t.Context(), c)
			must(t, err)
			_, err = one.Send(t.Context(), id, "p1", old)
			must(t, err)
		}
		_, err := one.End(t.Context(), "ended", []byte(`{}`), old)
		must(t, err)
		_, err = one.Cancel(t.Context(), "cancelled", []byte(`{}`), old)
		must(t, err)
		_, err = one.End(t.Context(), "new", []byte(`{}`), now())
		must(t, err)
		give(t, other, "another", "pi")
		for id, want := range map[string]error{"open": nil, "ended": nodes.ErrUnknown, "cancelled": nodes.ErrUnknown, "new": nil} {
			_, err := one.Call(t.Context(), id)
			wants(t, id, err, want)
		}
		_, err = one.End(t.Context(), "cancelled", []byte(`{}`), now())
		wants(t, "end a call that is gone", err, nodes.ErrUnknown)
	})
}
