package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/nodes"
	stored "parley/sessions/nodes"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// A call goes to the node and its outcome comes back, both in the process that has the link and in another one.
func TestACallIsRunAndItsOutcomeComes(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		d.run = func(f wire.Frame, report func(string), _ <-chan struct{}) toolnodes.Outcome {
			report("half way")
			return doneOutcome(string(f.Args))
		}
		d.link(a)
		var mu sync.Mutex
		var reports []string
		for i, p := range []*process{a, b} {
			c := toolCall(callKey(i))
			c.Progress = func(text string) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, text)
			}
			got := <-p.startCall(t.Context(), "pi", "exec_shell", c)
			wantOutcome(t, got, toolnodes.Done, `{"x":1}`)
			if got.out.Node != "pi" || got.out.Trusted {
				t.Errorf("the outcome is said to be of %s, trusted: %t", got.out.Node, got.out.Trusted)
			}
		}
		waitUntil(t, "all is acknowledged", func() bool { return d.unacknowledged() == 0 })
		if calls, most := d.ran(); calls != 2 || most != 1 {
			t.Errorf("%d calls were run, one of them %d times", calls, most)
		}
	})
}

// Progress reports of a running call reach its waiter in another process, and a flood of them is limited.
func TestProgressComes(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		heard := make(chan string, 1000)
		d.run = func(_ wire.Frame, report func(string), _ <-chan struct{}) toolnodes.Outcome {
			for range 300 {
				report(strings.Repeat("p", 5000))
			}
			<-heard
			return doneOutcome(`1`)
		}
		d.link(a)
		c := toolCall(callKey(0))
		c.Progress = func(text string) { heard <- text }
		wantOutcome(t, <-b.startCall(t.Context(), "pi", "exec_shell", c), toolnodes.Done, `1`)
		if n := len(heard); n > 20 {
			t.Errorf("%d of 300 reports came", n)
		}
		close(heard)
		for text := range heard {
			if len(text) > 2010 {
				t.Errorf("a report has %d bytes", len(text))
			}
		}
	})
}

// A node whose process stands still links to another process in the middle of a call: the call runs once, and each
// attempt gets its outcome.
func TestALinkIsLostInTheMiddleOfACall(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b, worker := f.process(), f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		finish := make(chan struct{})
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome {
			<-finish
			return doneOutcome(`"late"`)
		}
		d.link(a)
		came := worker.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0)))
		waitUntil(t, "it runs", func() bool { calls, _ := d.ran(); return calls == 1 })
		d.link(b) // the old link is not closed
		waitUntil(t, "b has the link", func() bool { return d.countReceived(wire.Call) == 2 })
		close(finish)
		wantOutcome(t, <-came, toolnodes.Done, `"late"`)
		wantOutcome(t, <-a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0))), toolnodes.Done, `"late"`)
		if calls, most := d.ran(); calls != 1 || most != 1 {
			t.Errorf("%d calls were run, one of them %d times", calls, most)
		}
		waitUntil(t, "it is acknowledged", func() bool { return d.unacknowledged() == 0 })
	})
}

// Outcomes of calls that ended while the node had no link are recorded at its next link.
func TestAnOutcomeComesAtTheNextLink(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		finish := make(chan struct{})
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome {
			<-finish
			return doneOutcome(`"kept"`)
		}
		d.link(a)
		came := b.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0)))
		waitUntil(t, "it runs", func() bool { calls, _ := d.ran(); return calls == 1 })
		a.stop()
		waitUntil(t, "it is away", func() bool { return b.node("pi").Process == "" })
		close(finish)
		waitUntil(t, "it has ended", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.outcomes[onlyKey(d.runs)] != nil })
		d.link(b)
		wantOutcome(t, <-came, toolnodes.Done, `"kept"`)
		if _, most := d.ran(); most != 1 {
			t.Errorf("the call was run %d times", most)
		}
	})
}

// onlyKey returns the key of a map with one entry.
func onlyKey(m map[string]int) (id string) {
	for id = range m {
	}
	return id
}

// A worker that ends in the middle of a call does not end the call: the next one gets the outcome.
func TestTheNextWorkerGetsTheOutcome(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		finish := make(chan struct{})
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome {
			<-finish
			return doneOutcome(`1`)
		}
		d.link(a)
		ctx, cancel := context.WithCancel(t.Context())
		came := b.startCall(ctx, "pi", "exec_shell", toolCall(callKey(0)))
		waitUntil(t, "it runs", func() bool { calls, _ := d.ran(); return calls == 1 })
		cancel()
		if got := <-came; !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v", got.err)
		}
		next := a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0)))
		close(finish)
		wantOutcome(t, <-next, toolnodes.Done, `1`)
		if n := d.countReceived(wire.Cancel); n != 0 {
			t.Errorf("the node was told to end it")
		}
	})
}

// A call that is stopped, or that takes too long, is ended at the node.
func TestACallIsCancelled(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		d.run = func(_ wire.Frame, _ func(string), cancelled <-chan struct{}) toolnodes.Outcome {
			<-cancelled
			return toolnodes.Outcome{Status: toolnodes.Failed, Error: tools.Errorf(tools.Timeout, "it was ended")}
		}
		d.link(a)
		ctx, stop := context.WithCancelCause(t.Context())
		came := b.startCall(ctx, "pi", "exec_shell", toolCall(callKey(0)))
		waitUntil(t, "it runs", func() bool { calls, _ := d.ran(); return calls == 1 })
		stop(tools.ErrUnwanted)
		if got := <-came; !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v", got.err)
		}
		waitUntil(t, "the node has ended it", func() bool { return d.countReceived(wire.Cancel) == 1 && d.unacknowledged() == 0 })
		late, end := context.WithCancelCause(t.Context())
		came = b.startCall(late, "pi", "exec_shell", toolCall(callKey(1)))
		waitUntil(t, "it runs again", func() bool { calls, _ := d.ran(); return calls == 2 })
		end(context.DeadlineExceeded)
		wantCode(t, <-came, tools.Timeout)
	})
}

// A node that is lost in the middle of a call leaves an unknown outcome, unless the call is pure.
func TestANodeIsLost(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false), tool("read_file", true))
		block := make(chan struct{})
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome { <-block; return doneOutcome(`1`) }
		d.link(a)
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		once, pure := a.startCall(ctx, "pi", "exec_shell", toolCall(callKey(0))), a.startCall(ctx, "pi", "read_file", toolCall(callKey(1)))
		waitUntil(t, "both run", func() bool { calls, _ := d.ran(); return calls == 2 })
		d.leave()
		got := <-once
		wantCode(t, got, tools.OutcomeUnknown)
		if !got.out.Trusted {
			t.Error("the server's own words are said to be a stranger's")
		}
		wantCode(t, <-pure, tools.Timeout)
		close(block)
	})
}

// A node that is away is given no call, and nothing is recorded.
func TestANodeIsAway(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false))
		got := <-a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0)))
		wantCode(t, got, tools.NodeAway)
		if open, err := a.store.Nodes().Open(t.Context(), "pi"); err != nil || len(open) > 0 {
			t.Errorf("%d calls wait (%v)", len(open), err)
		}
		d.link(a)
		wantOutcome(t, <-a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0))), toolnodes.Done, `"done"`)
	})
}

// A call that is recorded just as its node goes away runs when the node comes back soon, or is never sent.
func TestANodeGoesAwayBeforeACallIsSent(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		must(t, link(t, a, "pi")) // the node seems to be here
		came := b.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0)))
		ctx, end := context.WithCancelCause(t.Context())
		late := b.startCall(ctx, "pi", "exec_shell", toolCall(callKey(1)))
		waitUntil(t, "the call is given", func() bool { return isGiven(b, callKey(1)) })
		end(context.DeadlineExceeded)
		wantCode(t, <-late, tools.NodeAway)
		d.link(b)
		wantOutcome(t, <-came, toolnodes.Done, `"done"`)
		wantCode(t, <-b.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(1))), tools.NodeAway) // so the store has decided
		if calls, _ := d.ran(); calls != 1 {
			t.Errorf("%d calls were run", calls)
		}
	})
}

// isGiven reports whether a call is in the store.
func isGiven(p *process, key string) bool {
	_, err := p.store.Nodes().Call(context.Background(), nodes.CallID(testSession, key))
	return err == nil
}

// link records that a dead process has a node's link.
func link(t *testing.T, p *process, node string) error {
	t.Helper()
	_, err := p.store.Nodes().Link(t.Context(), node, "dead", p.node(node).Node.Offer, time.Now())
	return err
}

// A revoked node loses its link in any process, and can't open another. Its sent calls end as unknown.
func TestANodeIsRevoked(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		block := make(chan struct{})
		defer close(block)
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome { <-block; return doneOutcome(`1`) }
		d.link(a)
		came := b.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0)))
		waitUntil(t, "it runs", func() bool { calls, _ := d.ran(); return calls == 1 })
		must(t, b.Revoke(t.Context(), "pi"))
		wantCode(t, <-came, tools.OutcomeUnknown)
		wantCode(t, <-b.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(1))), tools.NotFound)
		waitUntil(t, "the link is gone", func() bool { return d.conn.Write(wire.Frame{Type: wire.Progress}) != nil })
		refused, is := errors.AsType[*wire.Refusal](dialError(d, a))
		if !is || refused.Reason != wire.ReasonRevoked {
			t.Errorf("the link ended with %v", refused)
		}
	})
}

func dialError(d *device, p *process) error {
	_, err := d.dial(p)
	return err
}

// Agents get only tools that an owner has accepted. Owners are told about tools that wait; a tool that is withdrawn
// needs no owner.
func TestToolsWaitToBeAccepted(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.joinWaiting("pi", tool("exec_shell", false), tool("read_file", true))
		wantCode(t, <-a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0))), tools.NotFound)
		digest := a.node("pi").Digest()
		accepted, err := b.Accept(t.Context(), "pi", digest)
		must(t, err)
		if !slices.Equal(accepted, []string{"exec_shell", "read_file"}) {
			t.Errorf("%v was accepted", accepted)
		}
		waitForTools(t, a, "exec_shell", "read_file")
		d.offer.Tools = []toolnodes.Tool{tool("exec_shell", true), tool("new", false)} // one changed, one new, one fewer
		d.link(a)
		waitForTools(t, b)
		wantCode(t, <-b.startCall(t.Context(), "pi", "new", toolCall(callKey(1))), tools.NotFound)
		if _, err := a.Accept(t.Context(), "pi", digest); !errors.Is(err, stored.ErrChanged) {
			t.Errorf("what has changed is accepted: %v", err)
		}
		_, err = a.Accept(t.Context(), "pi", "")
		must(t, err)
		waitForTools(t, b, "exec_shell", "new")
		d.send(wire.Frame{Type: wire.Offer, Offer: &toolnodes.Offer{Tools: d.offer.Tools[:1]}})
		waitForTools(t, b, "exec_shell")
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.notices) != 2 || !strings.Contains(f.notices[0], "has joined") || !strings.Contains(f.notices[1], "exec_shell, new") {
			t.Errorf("the owners were told %q", f.notices)
		}
	})
}

// waitForTools waits until agents get these tools in a process.
func waitForTools(t *testing.T, p *process, want ...string) {
	t.Helper()
	waitUntil(t, strings.Join(want, ", "), func() bool {
		var names []string
		all, _ := p.View()
		for _, n := range all {
			for _, t := range n.Tools {
				names = append(names, t.Name)
			}
		}
		return slices.Equal(names, want)
	})
}

// A node that sends too much harms only itself.
func TestAHostileNode(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		victim, d := a.join("pi", tool("exec_shell", false)), a.join("evil", tool("exec_shell", false))
		finish := make(chan struct{})
		victim.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome {
			<-finish
			return doneOutcome(`"mine"`)
		}
		victim.link(a)
		d.link(a)
		came := a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0)))
		waitUntil(t, "it runs", func() bool { calls, _ := victim.ran(); return calls == 1 })
		forged := doneOutcome(`"forged"`)
		d.send(wire.Frame{Type: wire.Result, ID: onlyKey(victim.runs), Outcome: &forged})
		waitUntil(t, "its link is gone", func() bool { return a.node("evil").Process == "" })
		close(finish)
		wantOutcome(t, <-came, toolnodes.Done, `"mine"`)

		d.link(a)
		d.send(wire.Frame{Type: wire.Result, ID: "unknown", Outcome: &forged})
		waitUntil(t, "an unknown call is acknowledged", func() bool { return d.countReceived(wire.Ack) == 1 })
		d.send(wire.Frame{Type: wire.Offer, Offer: &toolnodes.Offer{Tools: []toolnodes.Tool{tool("no name", false)}}})
		waitUntil(t, "its link is gone", func() bool { return a.node("evil").Process == "" })

		for _, out := range []toolnodes.Outcome{{}, {Status: "well"}, {Status: toolnodes.Failed, Error: tools.Errorf("made_up", "no")}} {
			d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome { return out }
			d.link(a)
			wantCode(t, <-a.startCall(t.Context(), "evil", "exec_shell", toolCall("evil"+string(out.Status))), tools.ExecutionFailed)
			d.leave()
			waitUntil(t, "its link is gone", func() bool { return a.node("evil").Process == "" })
		}
	})
}

// If only a capability is named, the call goes to the least busy node that is here. Each attempt gets the same node.
func TestAnyNode(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		finish := make(chan struct{})
		var all []*device
		for _, name := range []string{"away", "busy", "free", "plain"} {
			d := a.joinWaiting(name, tool("snap", false))
			if name != "plain" {
				d.offer.Capabilities = []string{"camera"}
			}
			d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome { <-finish; return doneOutcome(`1`) }
			d.link(a)
			_, err := a.Accept(t.Context(), name, "")
			must(t, err)
			all = append(all, d)
		}
		all[0].leave()
		waitUntil(t, "one is away", func() bool { return a.node("away").Process == "" })
		one := a.startCall(t.Context(), "busy", "snap", toolCall(callKey(0)))
		waitUntil(t, "one is busy", func() bool { calls, _ := all[1].ran(); return calls == 1 })
		other := a.startCall(t.Context(), "any:camera", "snap", toolCall(callKey(1)))
		waitUntil(t, "the other one runs", func() bool { calls, _ := all[2].ran(); return calls == 1 })
		close(finish)
		<-one
		for range 2 {
			got := <-other
			wantOutcome(t, got, toolnodes.Done, `1`)
			if got.out.Node != "free" {
				t.Errorf("%s ran it", got.out.Node)
			}
			other = a.startCall(t.Context(), "any:camera", "snap", toolCall(callKey(1)))
		}
		wantCode(t, <-a.startCall(t.Context(), "any:printer", "snap", toolCall(callKey(2))), tools.NotFound)
	})
}

// A code can be used once, however it is typed; names and keys are checked.
func TestJoining(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		code, until, err := a.Invite(t.Context())
		must(t, err)
		if left := time.Until(until); left > 10*time.Minute || left < 9*time.Minute {
			t.Errorf("it lasts %s", left)
		}
		public := make([]byte, 32)
		for name, want := range map[string]error{"Pi": errTest, "any:x": errTest, "": errTest} {
			if _, err := a.Join(t.Context(), code, name, public); err == nil {
				t.Errorf("%q: %v, want %v", name, err, want)
			}
		}
		if _, err := a.Join(t.Context(), code, "pi", public[:31]); err == nil {
			t.Error("a broken key has joined")
		}
		if _, err := a.Join(t.Context(), "aaaaa-aaaaa", "pi", public); !errors.Is(err, stored.ErrCode) {
			t.Errorf("a wrong code: %v", err)
		}
		_, err = a.Join(t.Context(), strings.ToUpper(strings.ReplaceAll(code, "-", " ")), "pi", public)
		must(t, err)
		if _, err := a.Join(t.Context(), code, "other", public); !errors.Is(err, stored.ErrCode) {
			t.Errorf("a used code: %v", err)
		}
	})
}

var errTest = errors.New("any")

// A call's agent must be allowed to use the node.
func TestWhoMayUseANode(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		a.join("forbidden", tool("exec_shell", false)).link(a)
		a.join("pi", tool("exec_shell", false)).link(a)
		wantCode(t, <-a.startCall(t.Context(), "forbidden", "exec_shell", toolCall(callKey(0))), tools.NotFound)
		stranger := toolCall(callKey(1))
		stranger.Agent = "other"
		wantCode(t, <-a.startCall(t.Context(), "pi", "exec_shell", stranger), tools.NotFound)
		all, err := a.Nodes(t.Context(), toolCall(callKey(2)))
		must(t, err)
		if len(all) != 1 || all[0].Name != "pi" || !all[0].IsHere || len(all[0].Tools) != 1 {
			t.Errorf("there are %+v", all)
		}
	})
}

// The tools of a node, and the tool nodes, give the model the node's results.
func TestTheTools(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false), tool("read_file", true))
		d.run = func(f wire.Frame, _ func(string), _ <-chan struct{}) toolnodes.Outcome {
			return doneOutcome(`{"got":` + string(f.Args) + `}`)
		}
		d.link(a)
		set := tools.NewSet(append(toolnodes.ToolsOf(a, toolnodes.Device{Name: "pi"}, a.node("pi").Tools), toolnodes.New(a, ""))...)
		for i, c := range []struct{ name, args, want string }{
			{"pi__exec_shell", `{"n":12345678901234567}`, `{"got":{"n":12345678901234567}}`},
			{"nodes", `{"action":"invoke","node":"pi","tool":"exec_shell","args":{"n":12345678901234567}}`, `{"node":"pi","result":{"got":{"n":12345678901234567}}}`},
			{"nodes", `{"action":"describe","node":"pi"}`, `"name":"exec_shell"`},
			{"nodes", `{"action":"list"}`, `"here":true`},
		} {
			one, _ := set.Lookup(c.name)
			with := toolCall(callKey(i))
			with.Name, with.Args = c.name, json.RawMessage(c.args)
			result, err := one.Run(t.Context(), with)
			if err != nil || !strings.Contains(string(result.Content), c.want) {
				t.Errorf("%s %s: %s, %v", c.name, c.args, result.Content, err)
			}
		}
	})
}
