package nodes_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/sessions/nodes"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

const session = "main:telegram:2"

// onEachDatabase runs a test on both kinds of database, with the tables of two processes.
func onEachDatabase(t *testing.T, test func(t *testing.T, one, other *nodes.Table)) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		if _, err := one.Open(t.Context(), session, 1); err != nil {
			t.Fatal(err)
		}
		test(t, one.Nodes(), other.Nodes())
	})
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError fails the test unless an error is the expected one.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// nowInMicros returns the current time to the microsecond, the precision of the tables.
func nowInMicros() time.Time { return time.Now().Truncate(time.Microsecond).UTC() }

func newDevice(name, key string) nodes.Node {
	return nodes.Node{Name: name, Key: []byte(key), Offer: []byte(`{"tools":[]}`), JoinedAt: nowInMicros()}
}

// mustJoin makes a join code and lets a device join with it.
func mustJoin(t *testing.T, table *nodes.Table, n nodes.Node) {
	t.Helper()
	code := fmt.Sprint("hash of ", n.Name, n.Key, n.JoinedAt)
	requireNoError(t, table.Invite(t.Context(), code, time.Now().Add(time.Hour)))
	requireNoError(t, table.Join(t.Context(), code, n))
}

// runBoth runs two functions concurrently, and waits for them.
func runBoth(one, other func()) {
	var all sync.WaitGroup
	all.Go(one)
	all.Go(other)
	all.Wait()
}

func mustNode(t *testing.T, table *nodes.Table, name string) nodes.Node {
	t.Helper()
	n, err := table.Node(t.Context(), name)
	requireNoError(t, err)
	return n
}

func TestADeviceJoinsWithACode(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		pi := newDevice("pi", "\x00key\xff")
		wantError(t, "a code that was never made", one.Join(t.Context(), "h", pi), nodes.ErrCode)
		requireNoError(t, one.Invite(t.Context(), "h", time.Now()))
		wantError(t, "a code that is too old", other.Join(t.Context(), "h", pi), nodes.ErrCode)
		_, err := one.Node(t.Context(), "pi")
		wantError(t, "who has not joined", err, nodes.ErrUnknown)

		requireNoError(t, one.Invite(t.Context(), "h", time.Now().Add(time.Hour)))
		requireNoError(t, other.Join(t.Context(), "h", pi))
		got := mustNode(t, one, "pi")
		if got.State != nodes.Waiting || string(got.Key) != string(pi.Key) || string(got.Offer) != string(pi.Offer) || got.Accepted != nil ||
			!got.JoinedAt.Equal(pi.JoinedAt) || got.Process != "" || !got.LinkChanged.IsZero() {
			t.Errorf("it is %+v, want %+v", got, pi)
		}
		again := pi
		again.JoinedAt, again.Offer = pi.JoinedAt.Add(time.Hour), []byte(`{"tools":[1]}`)
		requireNoError(t, one.Join(t.Context(), "h", again)) // the device did not get the answer to its first join
		wantError(t, "another device with the same code", one.Join(t.Context(), "h", newDevice("pi", "other")), nodes.ErrCode)
		wantError(t, "the same device under another name", one.Join(t.Context(), "h", newDevice("pi2", string(pi.Key))), nodes.ErrCode)
		if after := mustNode(t, one, "pi"); !after.JoinedAt.Equal(got.JoinedAt) || string(after.Offer) != string(got.Offer) {
			t.Errorf("it has become %+v", after)
		}

		requireNoError(t, one.Invite(t.Context(), "h2", time.Now().Add(time.Hour)))
		wantError(t, "another device with a code of its own", one.Join(t.Context(), "h2", newDevice("pi", "other")), nodes.ErrTaken)
		requireNoError(t, one.Join(t.Context(), "h2", newDevice("lab", "other"))) // the code can still be used
		all, err := other.Nodes(t.Context())
		if err != nil || len(all) != 2 || all[0].Name != "lab" || all[1].Name != "pi" {
			t.Errorf("there are %+v, %v", all, err)
		}
	})
}

// A known device may join again, with a new code and the same key. Nothing about it changes.
func TestADeviceJoinsAgain(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, _ *nodes.Table) {
		pi := newDevice("pi", "key")
		mustJoin(t, one, pi)
		requireNoError(t, one.Accept(t.Context(), "pi", pi.Offer, []byte(`{"a":"b"}`)))
		requireNoError(t, one.Invite(t.Context(), "new", time.Now().Add(time.Hour)))
		requireNoError(t, one.Join(t.Context(), "new", pi))
		requireNoError(t, one.Join(t.Context(), "new", pi))
		if got := mustNode(t, one, "pi"); got.State != nodes.Accepted || string(got.Accepted) != `{"a":"b"}` {
			t.Errorf("it is %+v", got)
		}
		wantError(t, "the code again", one.Join(t.Context(), "new", newDevice("lab", "k")), nodes.ErrCode)
	})
}

// If two devices want one name at the same time, one of them gets it. The other one can use its code for
// another name.
func TestTwoDevicesJoinUnderOneName(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 20 {
			name := fmt.Sprint("n", i)
			for _, code := range []string{"a", "b"} {
				requireNoError(t, one.Invite(t.Context(), code+name, time.Now().Add(time.Hour)))
			}
			var a, b error
			runBoth(func() { a = one.Join(t.Context(), "a"+name, newDevice(name, "a")) }, func() { b = other.Join(t.Context(), "b"+name, newDevice(name, "b")) })
			key := mustNode(t, one, name).Key
			switch {
			case a == nil && errors.Is(b, nodes.ErrTaken) && string(key) == "a":
				requireNoError(t, other.Join(t.Context(), "b"+name, newDevice(name+"b", "b")))
			case b == nil && errors.Is(a, nodes.ErrTaken) && string(key) == "b":
				requireNoError(t, one.Join(t.Context(), "a"+name, newDevice(name+"a", "a")))
			default:
				t.Errorf("they get %v and %v, and the key is %s", a, b, key)
			}
		}
	})
}

// A code admits only one device, no matter how many use it at once. That device may use it twice at once.
func TestACodeIsUsedOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 20 {
			name := fmt.Sprint("n", i)
			requireNoError(t, one.Invite(t.Context(), name, time.Now().Add(time.Hour)))
			var a, b error
			runBoth(func() { a = one.Join(t.Context(), name, newDevice(name, "a")) }, func() { b = other.Join(t.Context(), name, newDevice(name+"b", "b")) })
			if (a == nil) == (b == nil) || a != nil && !errors.Is(a, nodes.ErrCode) || b != nil && !errors.Is(b, nodes.ErrCode) {
				t.Errorf("two devices get %v and %v", a, b)
			}
			same := fmt.Sprint("same", i)
			requireNoError(t, one.Invite(t.Context(), same, time.Now().Add(time.Hour)))
			runBoth(func() { a = one.Join(t.Context(), same, newDevice(same, "a")) }, func() { b = other.Join(t.Context(), same, newDevice(same, "a")) })
			if a != nil || b != nil {
				t.Errorf("one device gets %v and %v", a, b)
			}
		}
	})
}

func TestAnOwnerAcceptsTheShownOffer(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		accepted := []byte(`{"look":"digest"}`)
		wantError(t, "accept nobody", one.Accept(t.Context(), "pi", nil, accepted), nodes.ErrUnknown)
		pi := newDevice("pi", "key")
		mustJoin(t, one, pi)
		more := []byte(`{"tools":[{"name":"look"}]}`)
		if got, err := other.Link(t.Context(), "pi", "p1", more, nowInMicros()); err != nil || got.State != nodes.Waiting || string(got.Offer) != string(more) {
			t.Errorf("at its link it is %+v, %v", got, err)
		}
		wantError(t, "accept what it offered before", one.Accept(t.Context(), "pi", pi.Offer, accepted), nodes.ErrChanged)
		if got := mustNode(t, one, "pi"); got.State != nodes.Waiting || got.Accepted != nil {
			t.Errorf("then it is %+v", got)
		}
		requireNoError(t, one.Accept(t.Context(), "pi", more, accepted))
		requireNoError(t, one.Accept(t.Context(), "pi", more, accepted))
		if got := mustNode(t, other, "pi"); got.State != nodes.Accepted || string(got.Accepted) != string(accepted) {
			t.Errorf("then it is %+v", got)
		}
		if got, err := one.Link(t.Context(), "pi", "p1", pi.Offer, nowInMicros()); err != nil || got.State != nodes.Accepted || string(got.Accepted) != string(accepted) {
			t.Errorf("with another offer it is %+v, %v", got, err)
		}
	})
}

// If an owner accepts a node while the node changes its offer, either the old offer is accepted, or nothing is.
func TestAcceptWhileTheOfferChanges(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 20 {
			pi := newDevice(fmt.Sprint("pi", i), "key")
			mustJoin(t, one, pi)
			var accepted, linked error
			runBoth(func() { accepted = one.Accept(t.Context(), pi.Name, pi.Offer, []byte(`{}`)) },
				func() { _, linked = other.Link(t.Context(), pi.Name, "p", []byte(`{"new":1}`), nowInMicros()) })
			requireNoError(t, linked)
			got := mustNode(t, one, pi.Name)
			if accepted == nil && got.State != nodes.Accepted || accepted != nil && (got.State != nodes.Waiting || !errors.Is(accepted, nodes.ErrChanged)) ||
				string(got.Offer) != `{"new":1}` {
				t.Errorf("accepting gives %v, and it is %+v", accepted, got)
			}
		}
	})
}

func TestOnlyOneProcessHasALink(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.Link(t.Context(), "pi", "p1", nil, nowInMicros())
		wantError(t, "the link of nobody", err, nodes.ErrUnknown)
		pi := newDevice("pi", "key")
		mustJoin(t, one, pi)
		begun := nowInMicros().Add(-time.Second)
		got, err := one.Link(t.Context(), "pi", "p1", pi.Offer, begun)
		if err != nil || got.Process != "p1" || !got.LinkChanged.Equal(begun) || string(got.Key) != "key" {
			t.Errorf("linked, it is %+v, %v", got, err)
		}
		moved := nowInMicros()
		if got, err := other.Link(t.Context(), "pi", "p2", pi.Offer, moved); err != nil || got.Process != "p2" || !got.LinkChanged.Equal(moved) {
			t.Errorf("with another process, it is %+v, %v", got, err)
		}
		requireNoError(t, one.Unlink(t.Context(), "pi", "p1", nowInMicros().Add(time.Hour))) // too late: another process has the link
		requireNoError(t, one.Unlink(t.Context(), "pi", "", nowInMicros().Add(time.Hour)))
		if got := mustNode(t, one, "pi"); got.Process != "p2" || !got.LinkChanged.Equal(moved) {
			t.Errorf("when the first has lost it, it is %+v", got)
		}
		lost := nowInMicros()
		requireNoError(t, one.Unlink(t.Context(), "pi", "p2", lost))
		if got := mustNode(t, one, "pi"); got.Process != "" || !got.LinkChanged.Equal(lost) {
			t.Errorf("when the other one has lost it, it is %+v", got)
		}
		requireNoError(t, one.Unlink(t.Context(), "nobody", "p2", lost))
	})
}

// The nodes of a process that no longer reports count as away, from its last report on.
func TestNodesOfADeadProcessAreAway(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		long := nowInMicros().Add(-2 * nodes.LinkLifetime)
		for name, process := range map[string]string{"a": "p1", "b": "p1", "c": "p2", "d": "p2"} {
			n := newDevice(name, "key")
			mustJoin(t, one, n)
			_, err := one.Link(t.Context(), name, process, n.Offer, long)
			requireNoError(t, err)
		}
		requireNoError(t, one.Unlink(t.Context(), "d", "p2", long))
		heard := nowInMicros()
		requireNoError(t, other.Hold(t.Context(), "p1", heard))
		requireNoError(t, other.Hold(t.Context(), "", heard))
		all, err := one.Nodes(t.Context())
		requireNoError(t, err)
		for i, process := range []string{"p1", "p1", "", ""} {
			if all[i].Process != process || !all[i].LinkChanged.Equal(long) {
				t.Errorf("it is %+v, want process %q", all[i], process)
			}
		}
		requireNoError(t, other.Hold(t.Context(), "p2", heard)) // the process was paused
		if got := mustNode(t, one, "c"); got.Process != "p2" || !got.LinkChanged.Equal(long) {
			t.Errorf("it is %+v", got)
		}
	})
}

func TestARevokedNodeMustJoinAgain(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		notRun := []byte(`{"status":"not_run"}`)
		wantError(t, "revoke nobody", one.Revoke(t.Context(), "pi", notRun, nowInMicros()), nodes.ErrUnknown)
		pi := newDevice("pi", "key")
		mustJoin(t, one, pi)
		requireNoError(t, one.Accept(t.Context(), "pi", pi.Offer, []byte(`{}`)))
		_, err := one.Link(t.Context(), "pi", "p1", pi.Offer, nowInMicros().Add(-time.Second))
		requireNoError(t, err)
		mustGive(t, one, "sent", "pi")
		_, err = one.Send(t.Context(), "sent", "p1", nowInMicros())
		requireNoError(t, err)
		mustGive(t, one, "waits", "pi")
		at := nowInMicros()
		requireNoError(t, other.Revoke(t.Context(), "pi", notRun, at))
		if got := mustNode(t, one, "pi"); got.State != nodes.Revoked || got.Accepted != nil || got.Process != "" || !got.LinkChanged.Equal(at) {
			t.Errorf("it is %+v", got)
		}
		if got := mustCall(t, one, "waits"); string(got.Outcome) != string(notRun) || !got.Ended.Equal(at) {
			t.Errorf("what was not sent is %+v", got)
		}
		if got := mustCall(t, one, "sent"); got.Outcome != nil || !got.Ended.IsZero() {
			t.Errorf("what was sent is %+v", got)
		}
		requireNoError(t, one.Revoke(t.Context(), "pi", notRun, at.Add(time.Hour)))
		if got := mustNode(t, one, "pi"); !got.LinkChanged.Equal(at) {
			t.Errorf("revoked again, it is %+v", got)
		}

		_, err = one.Link(t.Context(), "pi", "p1", pi.Offer, nowInMicros())
		wantError(t, "link", err, nodes.ErrRevoked)
		wantError(t, "accept", one.Accept(t.Context(), "pi", pi.Offer, []byte(`{}`)), nodes.ErrRevoked)
		_, err = one.Give(t.Context(), newCall("later", "pi"))
		wantError(t, "give", err, nodes.ErrRevoked)
		if got, err := one.Give(t.Context(), newCall("waits", "pi")); err != nil || got.Outcome == nil {
			t.Errorf("a call that was given before is %+v, %v", got, err)
		}
		_, err = one.Send(t.Context(), "sent", "p1", nowInMicros())
		wantError(t, "send", err, nodes.ErrOther)
		wantError(t, "join with the old code", one.Join(t.Context(), fmt.Sprint("hash of ", pi.Name, pi.Key, pi.JoinedAt), pi), nodes.ErrCode)

		mustJoin(t, one, newDevice("pi", "another device"))
		if got := mustNode(t, other, "pi"); got.State != nodes.Waiting || string(got.Key) != "another device" || !got.LinkChanged.IsZero() {
			t.Errorf("joined again, it is %+v", got)
		}
	})
}

// A device gets no calls that were given to another device of the same name, which may have run them.
func TestADeviceGetsNoCallOfItsPredecessor(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		mustLink(t, one, "pi", "first", "p1")
		mustGive(t, one, "a", "pi")
		_, err := one.Send(t.Context(), "a", "p1", nowInMicros())
		requireNoError(t, err)
		requireNoError(t, one.Revoke(t.Context(), "pi", []byte(`{}`), nowInMicros()))
		mustLink(t, one, "pi", "second", "p1")
		mustGive(t, one, "b", "pi")
		if open, err := other.Open(t.Context(), "pi"); err != nil || len(open) != 1 || open[0].ID != "b" {
			t.Errorf("its calls are %+v, %v", open, err)
		}
		_, err = one.Send(t.Context(), "a", "p1", nowInMicros())
		wantError(t, "send it the call of its predecessor", err, nodes.ErrOther)
		if got, err := one.End(t.Context(), "a", []byte(`{"status":"unknown"}`), nowInMicros()); err != nil || got.Outcome == nil {
			t.Errorf("the predecessor's call ends with %+v, %v", got, err)
		}

		requireNoError(t, one.Revoke(t.Context(), "pi", []byte(`{}`), nowInMicros()))
		mustLink(t, one, "pi", "first", "p1") // the first device comes back
		if open, err := other.Open(t.Context(), "pi"); err != nil || len(open) != 0 {
			t.Errorf("its calls are %+v, %v", open, err)
		}
	})
}

// If a node is revoked while it is given a call, the call does not stay open unless it was sent.
func TestGiveWhileTheNodeIsRevoked(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 20 {
			name := fmt.Sprint("pi", i)
			mustJoin(t, one, newDevice(name, "key"))
			var given, revoked error
			runBoth(func() { _, given = one.Give(t.Context(), newCall(name, name)) },
				func() { revoked = other.Revoke(t.Context(), name, []byte(`{}`), nowInMicros()) })
			requireNoError(t, revoked)
			if given != nil {
				wantError(t, "give", given, nodes.ErrRevoked)
			} else if got := mustCall(t, one, name); got.Ended.IsZero() {
				t.Errorf("it is open: %+v", got)
			}
		}
	})
}
