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

// each runs a test on a database of each kind, with the tables of two processes.
func each(t *testing.T, test func(t *testing.T, one, other *nodes.Table)) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		if _, err := one.Open(t.Context(), session, 1); err != nil {
			t.Fatal(err)
		}
		test(t, one.Nodes(), other.Nodes())
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails the test unless an error is, or is not, what it is to be.
func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// now is the time to the microsecond, which is what tables store.
func now() time.Time { return time.Now().Truncate(time.Microsecond).UTC() }

func device(name, key string) nodes.Node {
	return nodes.Node{Name: name, Key: []byte(key), Offer: []byte(`{"tools":[]}`), Joined: now()}
}

// join makes a code and has a device join with it.
func join(t *testing.T, table *nodes.Table, n nodes.Node) {
	t.Helper()
	code := fmt.Sprint("hash of ", n.Name, n.Key, n.Joined)
	must(t, table.Invite(t.Context(), code, time.Now().Add(time.Hour)))
	must(t, table.Join(t.Context(), code, n))
}

// both runs two functions at once, and waits for them.
func both(one, other func()) {
	var all sync.WaitGroup
	all.Go(one)
	all.Go(other)
	all.Wait()
}

func look(t *testing.T, table *nodes.Table, name string) nodes.Node {
	t.Helper()
	n, err := table.Node(t.Context(), name)
	must(t, err)
	return n
}

func TestADeviceJoinsWithACode(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		pi := device("pi", "\x00key\xff")
		wants(t, "a code that was never made", one.Join(t.Context(), "h", pi), nodes.ErrCode)
		must(t, one.Invite(t.Context(), "h", time.Now()))
		wants(t, "a code that is too old", other.Join(t.Context(), "h", pi), nodes.ErrCode)
		_, err := one.Node(t.Context(), "pi")
		wants(t, "who has not joined", err, nodes.ErrUnknown)

		must(t, one.Invite(t.Context(), "h", time.Now().Add(time.Hour)))
		must(t, other.Join(t.Context(), "h", pi))
		got := look(t, one, "pi")
		if got.State != nodes.Waiting || string(got.Key) != string(pi.Key) || string(got.Offer) != string(pi.Offer) || got.Accepted != nil ||
			!got.Joined.Equal(pi.Joined) || got.Process != "" || !got.Since.IsZero() {
			t.Errorf("it is %+v, want %+v", got, pi)
		}
		again := pi
		again.Joined, again.Offer = pi.Joined.Add(time.Hour), []byte(`{"tools":[1]}`)
		must(t, one.Join(t.Context(), "h", again)) // it has not heard that it has joined
		wants(t, "another device with the same code", one.Join(t.Context(), "h", device("pi", "other")), nodes.ErrCode)
		wants(t, "the same device under another name", one.Join(t.Context(), "h", device("pi2", string(pi.Key))), nodes.ErrCode)
		if after := look(t, one, "pi"); !after.Joined.Equal(got.Joined) || string(after.Offer) != string(got.Offer) {
			t.Errorf("it has become %+v", after)
		}

		must(t, one.Invite(t.Context(), "h2", time.Now().Add(time.Hour)))
		wants(t, "another device with a code of its own", one.Join(t.Context(), "h2", device("pi", "other")), nodes.ErrTaken)
		must(t, one.Join(t.Context(), "h2", device("lab", "other"))) // the code is still good
		all, err := other.Nodes(t.Context())
		if err != nil || len(all) != 2 || all[0].Name != "lab" || all[1].Name != "pi" {
			t.Errorf("there are %+v, %v", all, err)
		}
	})
}

// A device that is there may join again, with a new code and the same key: it stays what it is.
func TestADeviceJoinsAnew(t *testing.T) {
	each(t, func(t *testing.T, one, _ *nodes.Table) {
		pi := device("pi", "key")
		join(t, one, pi)
		must(t, one.Accept(t.Context(), "pi", pi.Offer, []byte(`{"a":"b"}`)))
		must(t, one.Invite(t.Context(), "new", time.Now().Add(time.Hour)))
		must(t, one.Join(t.Context(), "new", pi))
		must(t, one.Join(t.Context(), "new", pi))
		if got := look(t, one, "pi"); got.State != nodes.Accepted || string(got.Accepted) != `{"a":"b"}` {
			t.Errorf("it is %+v", got)
		}
		wants(t, "the code again", one.Join(t.Context(), "new", device("lab", "k")), nodes.ErrCode)
	})
}

// Of two devices that want one name at the same time, one gets it, and the other one can use its code for another name.
func TestTwoDevicesJoinUnderOneName(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 20 {
			name := fmt.Sprint("n", i)
			for _, code := range []string{"a", "b"} {
				must(t, one.Invite(t.Context(), code+name, time.Now().Add(time.Hour)))
			}
			var a, b error
			both(func() { a = one.Join(t.Context(), "a"+name, device(name, "a")) }, func() { b = other.Join(t.Context(), "b"+name, device(name, "b")) })
			key := look(t, one, name).Key
			switch {
			case a == nil && errors.Is(b, nodes.ErrTaken) && string(key) == "a":
				must(t, other.Join(t.Context(), "b"+name, device(name+"b", "b")))
			case b == nil && errors.Is(a, nodes.ErrTaken) && string(key) == "b":
				must(t, one.Join(t.Context(), "a"+name, device(name+"a", "a")))
			default:
				t.Errorf("they get %v and %v, and the key is %s", a, b, key)
			}
		}
	})
}

// A code lets one device in, however many use it at once; and the one may use it twice at once.
func TestACodeIsUsedOnce(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 20 {
			name := fmt.Sprint("n", i)
			must(t, one.Invite(t.Context(), name, time.Now().Add(time.Hour)))
			var a, b error
			both(func() { a = one.Join(t.Context(), name, device(name, "a")) }, func() { b = other.Join(t.Context(), name, device(name+"b", "b")) })
			if (a == nil) == (b == nil) || a != nil && !errors.Is(a, nodes.ErrCode) || b != nil && !errors.Is(b, nodes.ErrCode) {
				t.Errorf("two devices get %v and %v", a, b)
			}
			same := fmt.Sprint("same", i)
			must(t, one.Invite(t.Context(), same, time.Now().Add(time.Hour)))
			both(func() { a = one.Join(t.Context(), same, device(same, "a")) }, func() { b = other.Join(t.Context(), same, device(same, "a")) })
			if a != nil || b != nil {
				t.Errorf("one device gets %v and %v", a, b)
			}
		}
	})
}

func TestAnOwnerAcceptsWhatWasLookedAt(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		accepted := []byte(`{"look":"digest"}`)
		wants(t, "accept nobody", one.Accept(t.Context(), "pi", nil, accepted), nodes.ErrUnknown)
		pi := device("pi", "key")
		join(t, one, pi)
		more := []byte(`{"tools":[{"name":"look"}]}`)
		if got, err := other.Link(t.Context(), "pi", "p1", more, now()); err != nil || got.State != nodes.Waiting || string(got.Offer) != string(more) {
			t.Errorf("at its link it is %+v, %v", got, err)
		}
		wants(t, "accept what it offered before", one.Accept(t.Context(), "pi", pi.Offer, accepted), nodes.ErrChanged)
		if got := look(t, one, "pi"); got.State != nodes.Waiting || got.Accepted != nil {
			t.Errorf("then it is %+v", got)
		}
		must(t, one.Accept(t.Context(), "pi", more, accepted))
		must(t, one.Accept(t.Context(), "pi", more, accepted))
		if got := look(t, other, "pi"); got.State != nodes.Accepted || string(got.Accepted) != string(accepted) {
			t.Errorf("then it is %+v", got)
		}
		if got, err := one.Link(t.Context(), "pi", "p1", pi.Offer, now()); err != nil || got.State != nodes.Accepted || string(got.Accepted) != string(accepted) {
			t.Errorf("with another offer it is %+v, %v", got, err)
		}
	})
}

// Who accepts while the node says that it offers something else has accepted the one offer, or has not accepted.
func TestAcceptWhileTheOfferChanges(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 20 {
			pi := device(fmt.Sprint("pi", i), "key")
			join(t, one, pi)
			var accepted, linked error
			both(func() { accepted = one.Accept(t.Context(), pi.Name, pi.Offer, []byte(`{}`)) },
				func() { _, linked = other.Link(t.Context(), pi.Name, "p", []byte(`{"new":1}`), now()) })
			must(t, linked)
			got := look(t, one, pi.Name)
			if accepted == nil && got.State != nodes.Accepted || accepted != nil && (got.State != nodes.Waiting || !errors.Is(accepted, nodes.ErrChanged)) ||
				string(got.Offer) != `{"new":1}` {
				t.Errorf("accepting gives %v, and it is %+v", accepted, got)
			}
		}
	})
}

func TestALinkIsOfOneProcess(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		_, err := one.Link(t.Context(), "pi", "p1", nil, now())
		wants(t, "the link of nobody", err, nodes.ErrUnknown)
		pi := device("pi", "key")
		join(t, one, pi)
		begun := now().Add(-time.Second)
		got, err := one.Link(t.Context(), "pi", "p1", pi.Offer, begun)
		if err != nil || got.Process != "p1" || !got.Since.Equal(begun) || string(got.Key) != "key" {
			t.Errorf("linked, it is %+v, %v", got, err)
		}
		moved := now()
		if got, err := other.Link(t.Context(), "pi", "p2", pi.Offer, moved); err != nil || got.Process != "p2" || !got.Since.Equal(moved) {
			t.Errorf("with another process, it is %+v, %v", got, err)
		}
		must(t, one.Unlink(t.Context(), "pi", "p1", now().Add(time.Hour))) // too late
		must(t, one.Unlink(t.Context(), "pi", "", now().Add(time.Hour)))
		if got := look(t, one, "pi"); got.Process != "p2" || !got.Since.Equal(moved) {
			t.Errorf("when the first has lost it, it is %+v", got)
		}
		lost := now()
		must(t, one.Unlink(t.Context(), "pi", "p2", lost))
		if got := look(t, one, "pi"); got.Process != "" || !got.Since.Equal(lost) {
			t.Errorf("when the other one has lost it, it is %+v", got)
		}
		must(t, one.Unlink(t.Context(), "nobody", "p2", lost))
	})
}

// The nodes of a process that says nothing anymore are away, since it has said something last.
func TestTheNodesOfADeadProcessAreAway(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		long := now().Add(-2 * nodes.LinkAge)
		for name, process := range map[string]string{"a": "p1", "b": "p1", "c": "p2", "d": "p2"} {
			n := device(name, "key")
			join(t, one, n)
			_, err := one.Link(t.Context(), name, process, n.Offer, long)
			must(t, err)
		}
		must(t, one.Unlink(t.Context(), "d", "p2", long))
		heard := now()
		must(t, other.Hold(t.Context(), "p1", heard))
		must(t, other.Hold(t.Context(), "", heard))
		all, err := one.Nodes(t.Context())
		must(t, err)
		for i, process := range []string{"p1", "p1", "", ""} {
			if all[i].Process != process || !all[i].Since.Equal(long) {
				t.Errorf("it is %+v, want process %q", all[i], process)
			}
		}
		must(t, other.Hold(t.Context(), "p2", heard)) // it stood still
		if got := look(t, one, "c"); got.Process != "p2" || !got.Since.Equal(long) {
			t.Errorf("it is %+v", got)
		}
	})
}

func TestARevokedNodeMustJoinAgain(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		notRun := []byte(`{"status":"not_run"}`)
		wants(t, "revoke nobody", one.Revoke(t.Context(), "pi", notRun, now()), nodes.ErrUnknown)
		pi := device("pi", "key")
		join(t, one, pi)
		must(t, one.Accept(t.Context(), "pi", pi.Offer, []byte(`{}`)))
		_, err := one.Link(t.Context(), "pi", "p1", pi.Offer, now().Add(-time.Second))
		must(t, err)
		give(t, one, "sent", "pi")
		_, err = one.Send(t.Context(), "sent", "p1", now())
		must(t, err)
		give(t, one, "waits", "pi")
		at := now()
		must(t, other.Revoke(t.Context(), "pi", notRun, at))
		if got := look(t, one, "pi"); got.State != nodes.Revoked || got.Accepted != nil || got.Process != "" || !got.Since.Equal(at) {
			t.Errorf("it is %+v", got)
		}
		if got := call(t, one, "waits"); string(got.Outcome) != string(notRun) || !got.Ended.Equal(at) {
			t.Errorf("what was not sent is %+v", got)
		}
		if got := call(t, one, "sent"); got.Outcome != nil || !got.Ended.IsZero() {
			t.Errorf("what was sent is %+v", got)
		}
		must(t, one.Revoke(t.Context(), "pi", notRun, at.Add(time.Hour)))
		if got := look(t, one, "pi"); !got.Since.Equal(at) {
			t.Errorf("revoked again, it is %+v", got)
		}

		_, err = one.Link(t.Context(), "pi", "p1", pi.Offer, now())
		wants(t, "link", err, nodes.ErrRevoked)
		wants(t, "accept", one.Accept(t.Context(), "pi", pi.Offer, []byte(`{}`)), nodes.ErrRevoked)
		_, err = one.Give(t.Context(), sample("later", "pi"))
		wants(t, "give", err, nodes.ErrRevoked)
		if got, err := one.Give(t.Context(), sample("waits", "pi")); err != nil || got.Outcome == nil {
			t.Errorf("a call that was given before is %+v, %v", got, err)
		}
		_, err = one.Send(t.Context(), "sent", "p1", now())
		wants(t, "send", err, nodes.ErrOther)
		wants(t, "join with the old code", one.Join(t.Context(), fmt.Sprint("hash of ", pi.Name, pi.Key, pi.Joined), pi), nodes.ErrCode)

		join(t, one, device("pi", "another device"))
		if got := look(t, other, "pi"); got.State != nodes.Waiting || string(got.Key) != "another device" || !got.Since.IsZero() {
			t.Errorf("joined again, it is %+v", got)
		}
	})
}

// A device gets no call that another one of the same name was given, which may have run it.
func TestADeviceGetsNoCallOfItsPredecessor(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		link(t, one, "pi", "first", "p1")
		give(t, one, "a", "pi")
		_, err := one.Send(t.Context(), "a", "p1", now())
		must(t, err)
		must(t, one.Revoke(t.Context(), "pi", []byte(`{}`), now()))
		link(t, one, "pi", "second", "p1")
		give(t, one, "b", "pi")
		if open, err := other.Open(t.Context(), "pi"); err != nil || len(open) != 1 || open[0].ID != "b" {
			t.Errorf("its calls are %+v, %v", open, err)
		}
		_, err = one.Send(t.Context(), "a", "p1", now())
		wants(t, "send it the call of its predecessor", err, nodes.ErrOther)
		if got, err := one.End(t.Context(), "a", []byte(`{"status":"unknown"}`), now()); err != nil || got.Outcome == nil {
			t.Errorf("the predecessor's call ends with %+v, %v", got, err)
		}

		must(t, one.Revoke(t.Context(), "pi", []byte(`{}`), now()))
		link(t, one, "pi", "first", "p1") // the first one comes back
		if open, err := other.Open(t.Context(), "pi"); err != nil || len(open) != 0 {
			t.Errorf("its calls are %+v, %v", open, err)
		}
	})
}

// No call that was not sent stays open at a revoked node, whoever gives it one at the same time.
func TestGiveWhileTheNodeIsRevoked(t *testing.T) {
	each(t, func(t *testing.T, one, other *nodes.Table) {
		for i := range 20 {
			name := fmt.Sprint("pi", i)
			join(t, one, device(name, "key"))
			var given, revoked error
			both(func() { _, given = one.Give(t.Context(), sample(name, name)) },
				func() { revoked = other.Revoke(t.Context(), name, []byte(`{}`), now()) })
			must(t, revoked)
			if given != nil {
				wants(t, "give", given, nodes.ErrRevoked)
			} else if got := call(t, one, name); got.Ended.IsZero() {
				t.Errorf("it is open: %+v", got)
			}
		}
	})
}
