package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent/nodes"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

// withNodeWaits has a process let turns wait for nodes.
func withNodeWaits(long time.Duration) func(*nodes.Config) {
	return func(c *nodes.Config) { c.WaitTime = func(string) time.Duration { return long } }
}

// wantPostponed checks that a call was postponed, and returns the error that says so.
func wantPostponed(t *testing.T, got callResult) *tools.Postponed {
	t.Helper()
	later, ok := errors.AsType[*tools.Postponed](got.err)
	if !ok {
		t.Fatalf("got %+v and the error %v, want that it is postponed", got.out, got.err)
	}
	wantCode(t, got, tools.NodeAway) // for a caller that can't wait
	return later
}

// nodeWait returns a session's wait for a node.
func nodeWait(id string, until time.Time) sessions.NodeWait {
	return sessions.NodeWait{ID: id, Node: "pi", Session: testSession, Person: "telegram:42", Until: until}
}

// mailIDs returns the ids of the session's mail, in order.
func mailIDs(t *testing.T, b bus.Bus) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	lease, err := b.Claim(ctx, bus.InboundTopic)
	must(t, err)
	got, err := lease.Mail(ctx, 0)
	must(t, err)
	for _, m := range got {
		in, err := bus.DecodeInbound(m.Body)
		must(t, err)
		if in.Kind != bus.Decided || in.Decision == nil || lease.Claim().Key != testSession {
			t.Errorf("%s has the mail %+v", lease.Claim().Key, in)
		}
		ids = append(ids, in.ID)
	}
	must(t, lease.Settle(ctx, bus.End{Done: got[len(got)-1].Seq}))
	return ids
}

// A call for a node that is away waits, at most as long as the operator allows, counted from its first attempt.
func TestACallIsPostponed(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process(withNodeWaits(time.Hour))
		openTestSession(t, a)
		a.join("pi", tool("exec_shell", false))
		later := wantPostponed(t, <-a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(1))))
		if later.Node != "pi" || later.Since.IsZero() || time.Until(later.Until) < 50*time.Minute || time.Until(later.Until) > time.Hour {
			t.Errorf("it is postponed as %+v", later)
		}
		again := toolCall(callKey(1))
		again.WaitsUntil = later.Until
		if second := wantPostponed(t, <-a.startCall(t.Context(), "pi", "exec_shell", again)); !second.Until.Equal(later.Until) {
			t.Errorf("the second attempt waits until %s, want %s", second.Until, later.Until)
		}
		again.WaitsUntil = time.Now()
		got := <-a.startCall(t.Context(), "pi", "exec_shell", again)
		if _, waits := errors.AsType[*tools.Postponed](got.err); waits {
			t.Error("it waits although the time is over")
		}
		wantCode(t, got, tools.NodeAway)
		b := f.process()
		again.WaitsUntil = later.Until
		if got := <-b.startCall(t.Context(), "pi", "exec_shell", again); !errors.As(got.err, new(*tools.Error)) || errors.As(got.err, new(*tools.Postponed)) {
			t.Errorf("without the setting it ends with %v", got.err)
		}
	})
}

// The node is told whether a person has approved a call.
func TestANodeHearsWhatWasApproved(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		d.run = func(f wire.Frame, _ func(string), _ <-chan struct{}) toolnodes.Outcome {
			return doneOutcome(fmt.Sprint(f.Approved))
		}
		d.link(b)
		for n, approved := range []bool{true, false} {
			c := toolCall(callKey(n))
			c.Approved = approved
			wantOutcome(t, <-a.startCall(t.Context(), "pi", "exec_shell", c), toolnodes.Done, fmt.Sprint(approved))
		}
	})
}

// openTestSession opens the session of the tests.
func openTestSession(t *testing.T, p *process) {
	t.Helper()
	_, err := p.store.Open(t.Context(), testSession, 1)
	must(t, err)
}

// A call that was given and never sent is withdrawn when its node goes away: the node never gets it twice.
func TestACallIsTakenBack(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process(withNodeWaits(time.Hour))
		openTestSession(t, a)
		testTakenBack(t, a)
	})
}

// testTakenBack checks that a call is withdrawn if its node goes away before it is sent, and runs once the node is
// back.
func testTakenBack(t *testing.T, a *process) {
	t.Helper()
	d := a.join("pi", tool("exec_shell", false))
	// Another process seems to have the link, and never sends anything.
	_, err := a.store.Nodes().Link(t.Context(), "pi", "gone", []byte(offerOf(t, d)), time.Now())
	must(t, err)
	came := a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(1)))
	id := nodes.CallID(testSession, callKey(1))
	waitUntil(t, "the call is given", func() bool { _, err := a.store.Nodes().Call(t.Context(), id); return err == nil })
	must(t, a.store.Nodes().Unlink(t.Context(), "pi", "gone", time.Now()))
	later := wantPostponed(t, <-came)
	if _, err := a.store.Nodes().Call(t.Context(), id); err == nil {
		t.Error("the call is still given")
	}
	d.link(a)
	again := toolCall(callKey(1))
	again.WaitsUntil = later.Until
	wantOutcome(t, <-a.startCall(t.Context(), "pi", "exec_shell", again), toolnodes.Done, `"done"`)
	if calls, most := d.ran(); calls != 1 || most != 1 {
		t.Errorf("%d calls ran, one of them %d times", calls, most)
	}
}

// The session is told by the process to which the node comes back, and by any process when the wait is over or the node
// is revoked.
func TestSessionsAreToldThatANodeIsBack(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process(withNodeWaits(time.Hour))
		openTestSession(t, a)
		d := a.join("pi", tool("exec_shell", false))
		soon := time.Now().Add(time.Hour)
		must(t, a.OpenWait(t.Context(), nodeWait("node:1", soon)))
		must(t, a.OpenWait(t.Context(), nodeWait("node:1", soon)))
		if err := a.OpenWait(t.Context(), sessions.NodeWait{ID: "node:0", Node: "pi", Session: "main:telegram:none", Until: soon}); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("a wait of no session is opened with %v", err)
		}
		a.stop() // a process that knows the wait only from the store tells the session
		b, c := f.process(withNodeWaits(time.Hour)), f.process(withNodeWaits(time.Hour))
		waits, err := b.store.Nodes().WaitsIn(t.Context(), testSession)
		if err != nil || !waits {
			t.Errorf("it waits: %v, %v", waits, err)
		}
		d.link(c)
		if got := mailIDs(t, f.bus()); len(got) != 1 || got[0] != "node:1" {
			t.Errorf("it has the mail %v", got)
		}
		must(t, b.CloseWait(t.Context(), "node:1"))
		must(t, b.CloseWait(t.Context(), "node:1"))
		// The node is here now, as if it had come back between the call and the wait.
		must(t, b.OpenWait(t.Context(), nodeWait("node:2", soon)))
		if got := mailIDs(t, f.bus()); len(got) != 1 || got[0] != "node:2" {
			t.Errorf("it has the mail %v", got)
		}
		must(t, b.CloseWait(t.Context(), "node:2"))
		d.leave()
		waitUntil(t, "the link is gone", func() bool { return b.node("pi").Process == "" })
		must(t, b.OpenWait(t.Context(), nodeWait("node:3", time.Now().Add(300*time.Millisecond))))
		if got := mailIDs(t, f.bus()); len(got) != 1 || got[0] != "node:3" {
			t.Errorf("it has the mail %v", got)
		}
		must(t, b.CloseWait(t.Context(), "node:3"))
		must(t, b.OpenWait(t.Context(), nodeWait("node:4", soon)))
		must(t, b.Revoke(t.Context(), "pi"))
		if got := mailIDs(t, f.bus()); len(got) != 1 || got[0] != "node:4" {
			t.Errorf("it has the mail %v", got)
		}
		wantCode(t, <-b.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(1))), tools.NotFound)
	})
}

// A call for any node with a capability waits for all such nodes, and continues with the first one that is back.
func TestACallWaitsForAnyNode(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process(withNodeWaits(time.Hour))
		openTestSession(t, a)
		devices := map[string]*device{}
		for _, name := range []string{"door", "hall", "plain"} {
			d := a.joinWaiting(name, tool("snap", false))
			if name != "plain" {
				d.offer.Capabilities = []string{"camera"}
			}
			d.link(a)
			_, err := a.Accept(t.Context(), name, "")
			must(t, err)
			d.leave()
			waitUntil(t, "the link is gone", func() bool { return a.node(name).Process == "" })
			devices[name] = d
		}
		later := wantPostponed(t, <-a.startCall(t.Context(), "any:camera", "snap", toolCall(callKey(1))))
		if later.Node != "door" || fmt.Sprint(later.Alternatives) != "[door hall]" {
			t.Fatalf("it waits for %q, one of %v", later.Node, later.Alternatives)
		}
		wait := sessions.NodeWait{ID: "node:1", Node: later.Node, AnyOfNodes: later.Alternatives, Session: testSession, Person: "telegram:42", Until: later.Until}
		must(t, a.OpenWait(t.Context(), wait))
		must(t, a.OpenWait(t.Context(), wait))
		b := f.process(withNodeWaits(time.Hour))
		devices["plain"].link(b) // nobody waits for it
		devices["hall"].link(b)
		if got := mailIDs(t, f.bus()); fmt.Sprint(got) != "[node:1]" {
			t.Errorf("it has the mail %v", got)
		}
		must(t, b.CloseWait(t.Context(), "node:1"))
		if waits, err := b.store.Nodes().WaitsIn(t.Context(), testSession); waits || err != nil {
			t.Errorf("it still waits: %v, %v", waits, err)
		}
		again := toolCall(callKey(1))
		again.WaitsUntil = later.Until
		got := <-a.startCall(t.Context(), "any:camera", "snap", again)
		wantOutcome(t, got, toolnodes.Done, `"done"`)
		if got.out.Node != "hall" {
			t.Errorf("%s ran it", got.out.Node)
		}
		again.WaitsUntil, again.Key = time.Now(), callKey(2)
		devices["hall"].leave()
		waitUntil(t, "the link is gone", func() bool { return a.node("hall").Process == "" })
		late := <-a.startCall(t.Context(), "any:camera", "snap", again)
		if _, waits := errors.AsType[*tools.Postponed](late.err); waits {
			t.Error("it waits although the time is over")
		}
		wantCode(t, late, tools.NodeAway)
	})
}

// A call for any node that was not sent before its node went away goes to another node that is here.
func TestACallForAnyNodeIsTakenBack(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process(withNodeWaits(time.Hour))
		openTestSession(t, a)
		var devices []*device
		for _, name := range []string{"door", "hall"} {
			d := a.joinWaiting(name, tool("snap", false))
			d.offer.Capabilities = []string{"camera"}
			d.link(a)
			_, err := a.Accept(t.Context(), name, "")
			must(t, err)
			d.leave()
			waitUntil(t, "the link is gone", func() bool { return a.node(name).Process == "" })
			devices = append(devices, d)
		}
		// Another process seems to have the link, and never sends anything.
		_, err := a.store.Nodes().Link(t.Context(), "door", "gone", []byte(offerOf(t, devices[0])), time.Now())
		must(t, err)
		came := a.startCall(t.Context(), "any:camera", "snap", toolCall(callKey(1)))
		waitUntil(t, "the call is given", func() bool {
			_, err := a.store.Nodes().Call(t.Context(), nodes.CallID(testSession, callKey(1)))
			return err == nil
		})
		devices[1].link(a)
		must(t, a.store.Nodes().Unlink(t.Context(), "door", "gone", time.Now()))
		later := wantPostponed(t, <-came)
		must(t, a.OpenWait(t.Context(), sessions.NodeWait{ID: "node:1", Node: later.Node, AnyOfNodes: later.Alternatives, Session: testSession, Until: later.Until}))
		if got := mailIDs(t, f.bus()); fmt.Sprint(got) != "[node:1]" {
			t.Errorf("it has the mail %v", got)
		}
		again := toolCall(callKey(1))
		again.WaitsUntil = later.Until
		got := <-a.startCall(t.Context(), "any:camera", "snap", again)
		wantOutcome(t, got, toolnodes.Done, `"done"`)
		if calls, _ := devices[1].ran(); got.out.Node != "hall" || calls != 1 {
			t.Errorf("%s ran it, and hall %d calls", got.out.Node, calls)
		}
	})
}

// offerOf returns what a device offers, as it is recorded.
func offerOf(t *testing.T, d *device) string {
	t.Helper()
	raw, err := plainjson.Marshal(d.offer)
	must(t, err)
	return string(raw)
}

// A lossyStore withdraws calls, but loses its first answer.
type lossyStore struct {
	nodes.Calls
	lost atomic.Bool
}

func (f *lossyStore) Withdraw(ctx context.Context, id string) (bool, error) {
	withdrawn, err := f.Calls.Withdraw(ctx, id)
	if withdrawn && f.lost.CompareAndSwap(false, true) {
		return false, errors.New("the answer is lost")
	}
	return withdrawn, err
}

// A call that was withdrawn is postponed although the store's answer was lost, and doesn't count as erased.
func TestTheAnswerOfAWithdrawalIsLost(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		var store *lossyStore
		a := f.process(withNodeWaits(time.Hour), func(c *nodes.Config) {
			store = &lossyStore{Calls: c.Calls}
			c.Calls = store
		})
		openTestSession(t, a)
		testTakenBack(t, a)
		if !store.lost.Load() {
			t.Error("no answer was lost")
		}
	})
}
