package worker_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/llm"
	"parley/agent/worker"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// A remoteDevice is a device on which tools run.
type remoteDevice struct {
	isHere       atomic.Bool
	ran          atomic.Int32
	until        atomic.Pointer[time.Time] // until when the last call waits
	alternatives []string                  // the devices of which any would do; nil if only this one would
}

// tool is a tool that runs on the device.
func (d *remoteDevice) tool(name, node string) tools.Tool {
	return echo(name, tools.Idempotent, func(call tools.Call, _ string) error {
		until := call.WaitsUntil
		if until.IsZero() {
			until = time.Now().Add(time.Hour)
		}
		d.until.Store(&until)
		if d.isHere.Load() {
			d.ran.Add(1)
			return nil
		}
		later := awayError(node, until)
		later.Alternatives = d.alternatives
		return later
	})
}

// awayError is the error of a call for a node that is away.
func awayError(node string, until time.Time) *tools.Postponed {
	return &tools.Postponed{Node: node, Since: time.Date(2026, 11, 30, 21, 4, 0, 0, time.UTC), Until: until, Failed: tools.Errorf(tools.NodeAway, "%s is away", node)}
}

// publishNodeBack publishes the message to a chat's session that a node is back.
func (b *bench) publishNodeBack(chat, id string) {
	b.t.Helper()
	in := bus.Inbound{ID: id, Kind: bus.Decided, SentAt: time.Now(), Decision: &bus.Decision{State: bus.AskAnswered}}
	if err := bus.PublishNotice(b.t.Context(), b.bus, "main:test:"+chat, in); err != nil {
		b.t.Fatal(err)
	}
}

// nodeWaits waits until exactly n waits for nodes are recorded, and returns them.
func (b *bench) nodeWaits(n int) []sessions.NodeWait {
	b.t.Helper()
	var due []sessions.NodeWait
	for range 2000 {
		var err error
		if due, _, err = b.store.Nodes().DueWaits(b.t.Context(), time.Now().Add(1000*time.Hour), time.Now(), 100); err != nil {
			b.t.Fatal(err)
		}
		if len(due) == n {
			return due
		}
		<-time.After(10 * time.Millisecond)
	}
	b.t.Fatalf("the waits are %+v, want %d", due, n)
	return nil
}

// A turn whose node is away holds no worker and no lease, and continues when the node is back. If the node is away
// again, the turn keeps waiting, up to the same deadline.
func TestATurnWaitsForANode(t *testing.T) {
	var far remoteDevice
	b := newBench(t, actModel(`far {"say":"x"}`), far.tool("far", "pi"))
	b.waits = b.store.Nodes()
	stop := b.run()
	first := b.say("1", "ann", "go")
	said := b.reply()
	if !strings.HasSuffix(said.ID, "#ask/0") || !strings.Contains(said.Text, "waiting for the node `pi`, which has been away since 2026-11-30 21:04 UTC") || len(said.Buttons) != 0 {
		t.Errorf("said %+v", said)
	}
	b.settled()
	if got, want := b.kinds("1"), "turn_started user tool_use usage tool_started turn_parked published"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	wait := b.nodeWaits(1)[0]
	if wait.Node != "pi" || wait.Session != "main:test:1" || wait.Person != "test:ann" || time.Until(wait.Until) < 50*time.Minute {
		t.Errorf("it waits as %+v", wait)
	}
	b.wantReply(b.command("1", owner, "status"), "I've been waiting")
	b.wantReply(b.say("1", "ann", "are you there?"), "I'm waiting for the node `pi`, which has been away since 2026-11-30 21:04 UTC, and then I'll go on")
	stop() // and another process goes on
	b.run()
	b.publishNodeBack("1", wait.ID) // but the node is away again
	again := b.nodeWaits(1)[0]
	for again.ID == wait.ID {
		again = b.nodeWaits(1)[0]
	}
	if !again.Until.Equal(wait.Until.Truncate(time.Millisecond)) {
		t.Errorf("it waits until %s, and did until %s", again.Until, wait.Until)
	}
	b.settled()
	b.publishNodeBack("1", wait.ID) // the old mail once more
	far.isHere.Store(true)
	b.publishNodeBack("1", again.ID)
	b.publishNodeBack("1", again.ID)
	b.wantReply(first, `{"said":"x"}; are you there?`)
	b.settled()
	if len(b.nodeWaits(0)) != 0 || far.ran.Load() != 1 {
		t.Errorf("it ran %d times", far.ran.Load())
	}
	if got := b.kinds("1"); strings.Count(got, "turn_parked") != 2 || strings.Count(got, "ask_ended turn_unparked tool_started") != 2 || strings.Contains(got, "resumed") {
		t.Errorf("log %q", got)
	}
}

// A turn that waits for the first of several nodes says so, and has one wait, whichever node comes back.
func TestATurnWaitsForTheFirstOfTwoNodes(t *testing.T) {
	far := remoteDevice{alternatives: []string{"lab", "pi"}}
	b := newBench(t, actModel(`far {"say":"x"}`), far.tool("far", "pi"))
	b.waits = b.store.Nodes()
	b.run()
	first := b.say("1", "ann", "go")
	if said := b.reply(); !strings.Contains(said.Text, "waiting for whichever of the nodes `lab`, `pi` comes back first") {
		t.Errorf("said %q", said.Text)
	}
	b.settled()
	both := b.nodeWaits(2)
	if both[0].ID != both[1].ID || both[0].Node == both[1].Node {
		t.Errorf("it waits as %+v", both)
	}
	far.isHere.Store(true)
	b.publishNodeBack("1", both[0].ID)
	b.publishNodeBack("1", both[1].ID)
	b.wantReply(first, `{"said":"x"}`)
	b.settled()
	if len(b.nodeWaits(0)) != 0 || far.ran.Load() != 1 {
		t.Errorf("it ran %d times", far.ran.Load())
	}
}

// Whoever stops the turn ends the wait; mail about it comes too late.
func TestStopEndsTheWaitForANode(t *testing.T) {
	var far remoteDevice
	b := newBench(t, actModel(`far {"say":"x"}`), far.tool("far", "pi"))
	b.waits = b.store.Nodes()
	b.run()
	b.say("1", "ann", "go")
	b.reply()
	b.settled()
	wait := b.nodeWaits(1)[0]
	b.wantReply(b.say("1", "ann", "/stop"), "Stopped.")
	b.settled()
	b.nodeWaits(0)
	far.isHere.Store(true)
	b.publishNodeBack("1", wait.ID)
	b.settled()
	if got := b.kinds("1"); !strings.Contains(got, "tool_result notice turn_done") || far.ran.Load() != 0 {
		t.Errorf("log %q; it ran %d times", got, far.ran.Load())
	}
}

// Two calls of one answer wait for two nodes, beside one that needs an approval, which is asked for once.
func TestATurnWaitsForTwoNodesAndAPerson(t *testing.T) {
	var far, near remoteDevice
	b, _, ran := newActBench(t, actModel(`far {"say":"x"}`, `near {"say":"y"}`, `act {"say":"z"}`), far.tool("far", "pi"), near.tool("near", "lab"))
	b.agent.Guard = func(ctx context.Context, call tools.Call) tools.Verdict {
		if call.Name == "far" {
			return tools.Verdict{Decision: tools.Ask, Reason: "it is far"}
		}
		return guardAct(ctx, call)
	}
	b.waits = b.store.Nodes()
	b.run()
	first := b.say("1", "ann", "go")
	ids := map[string]bool{}
	for range 3 {
		out := b.reply()
		if m := askIDs.FindStringSubmatch(out.Text); m != nil {
			ids[m[1]] = true
		} else if !strings.Contains(out.Text, "waiting for the node `lab`") {
			t.Errorf("said %q", out.Text)
		}
	}
	near.isHere.Store(true)
	b.publishNodeBack("1", b.nodeWaits(1)[0].ID)
	b.nodeWaits(0)
	for id := range ids {
		b.command("1", owner, "approve "+id)
		b.wantEnd(id, "Approved by Olga")
	}
	if out := b.reply(); !strings.Contains(out.Text, "waiting for the node `pi`") {
		t.Errorf("said %q", out.Text)
	}
	wait := b.nodeWaits(1)[0]
	far.isHere.Store(true)
	b.publishNodeBack("1", wait.ID)
	b.wantReply(first, "{\"said\":\"x\"}\n{\"said\":\"y\"}\n{\"said\":\"z\"}")
	if far.ran.Load() != 1 || near.ran.Load() != 1 || ran.Load() != 1 {
		t.Errorf("they ran %d, %d and %d times", far.ran.Load(), near.ran.Load(), ran.Load())
	}
}

// Where turns can't wait for nodes, the call fails.
func TestACallFailsWhereTurnsCannotWait(t *testing.T) {
	var far remoteDevice
	b := newBench(t, actModel(`far {"say":"x"}`), far.tool("far", "pi"))
	b.run()
	b.wantReply(b.say("1", "ann", "go"), `"code":"node_away"`)
}

// A forgotten session no longer waits.
func TestErasingASessionEndsItsNodeWait(t *testing.T) {
	var far remoteDevice
	b := newBench(t, actModel(`far {"say":"x"}`), far.tool("far", "pi"))
	b.waits = b.store.Nodes()
	b.run()
	for i, erase := range []func(chat string) error{
		func(chat string) error { _, err := b.store.EraseSession(t.Context(), "main:test:"+chat); return err },
		func(string) error { _, err := b.store.ErasePerson(t.Context(), "test:ann"); return err },
	} {
		chat := string(rune('1' + i))
		b.say(chat, "ann", "go")
		b.reply()
		b.settled()
		b.nodeWaits(1)
		if err := erase(chat); err != nil {
			t.Fatal(err)
		}
		b.nodeWaits(0)
	}
}

// awaitingNode is the kind of a process of the crash tests that waits for a node.
const awaitingNode = "waiting for a node"

// nodeWorker returns a worker whose agent calls a tool of a node. The node is away until the file "here" exists.
func nodeWorker(h *crashHome, made agent.Agent, point func(string)) *worker.Worker {
	made.Tools = tools.NewSet(echo("far", tools.Idempotent, func(call tools.Call, _ string) error {
		if _, err := os.Stat(filepath.Join(h.dir, "here")); err != nil {
			return awayError("pi", time.Now().Add(time.Hour))
		}
		f, err := os.OpenFile(filepath.Join(h.dir, "keys"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(call.Key + "\n")
		return err
	}))
	made.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`far {"say":"1"}`), nil
		}
		return textAnswer("done: " + strings.Join(toolResults(r), "")), nil
	})
	return worker.New(agent.Config{
		Bus: h.bus, Events: h.bus, Store: h.store, Budget: h.store, NodeWaits: h.store.Nodes(),
		Agents:      func(context.Context, string) (agent.Agent, error) { return made, nil },
		Limits:      func() agent.Limits { return agent.Limits{Turns: 3, TurnsHour: 100, TokensDay: 1e6} },
		MaxInFlight: 64, Drain: time.Second, Log: slog.New(slog.DiscardHandler), Point: point,
	})
}

// The process is killed once at each line by which a turn begins to wait for a node and continues.
func TestKilledWhileANodeIsAway(t *testing.T) {
	t.Parallel()
	before := []string{"c4", "park:before", "park", "park:waiting", "park:published", "settled"}
	after := []string{"unpark:before", "unpark", "c4:before", "c4", "c5:before", "c5", "c6", "settled"}
	for i, at := range append(before, after...) {
		runSharedAndSeparate(t, at+map[bool]string{true: " waiting", false: " going on"}[i < len(before)], func(t *testing.T, dir string) {
			publishFirstMessage(t, dir)
			if i < len(before) {
				runKilled(t, dir, at, awaitingNode)
			}
			runToEnd(t, dir, awaitingNode)
			h := openHome(t, dir)
			due, _, err := h.store.Nodes().DueWaits(t.Context(), time.Now().Add(1000*time.Hour), time.Now(), 10)
			if err != nil || len(due) != 1 {
				t.Fatalf("the waits are %+v, %v", due, err)
			}
			in := bus.Inbound{ID: due[0].ID, Kind: bus.Decided, SentAt: time.Now(), Decision: &bus.Decision{State: bus.AskAnswered}}
			if err := bus.PublishNotice(t.Context(), h.bus, due[0].Session, in); err != nil {
				t.Fatal(err)
			}
			h.Close()
			if err := os.WriteFile(filepath.Join(dir, "here"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if i >= len(before) {
				runKilled(t, dir, at, awaitingNode)
			}
			runToEnd(t, dir, awaitingNode)
			checkWaited(t, dir)
		})
	}
}

func checkWaited(t *testing.T, dir string) {
	t.Helper()
	h := openHome(t, dir)
	said := outboundMail(t, h.bus)
	if len(said) != 2 || !strings.Contains(said[0].Text, "waiting for the node `pi`") || !strings.Contains(said[1].Text, `done: {"said":"1"}`) {
		t.Errorf("said %+v", said)
	}
	keys, err := os.ReadFile(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(keys))
	for _, key := range all {
		if key != all[0] { // the same key is the same call for the node
			t.Errorf("it ran under the keys %v", all)
		}
	}
	kinds := map[sessions.Kind]int{}
	for e, err := range h.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind]++
	}
	if kinds[sessions.KindTurnParked] != 1 || kinds[sessions.KindAskEnded] != 1 || kinds[sessions.KindTurnUnparked] != 1 || kinds[sessions.KindTurnDone] != 1 || kinds[sessions.KindToolResult] != 1 {
		t.Errorf("the log has %v", kinds)
	}
	if due, _, err := h.store.Nodes().DueWaits(t.Context(), time.Now().Add(1000*time.Hour), time.Now(), 10); err != nil || len(due) != 0 {
		t.Errorf("the waits are %+v, %v", due, err)
	}
}
