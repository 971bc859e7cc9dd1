package nodes_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/nodes"
	stored "parley/sessions/nodes"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/mqtt"
	"parley/tools/nodes/mqtt/mqtttest"
	"parley/tools/nodes/wire"
)

// serveBroker has a process serve the edge agents at a broker, until stopSoon is called.
func (p *process) serveBroker(b *mqtttest.Broker, timing nodes.EdgeTiming) (stopSoon context.CancelFunc) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := p.ServeBroker(ctx, nodes.BrokerConfig{
			Server: mqtt.Server{URL: b.URL()}, Edges: p.store.Nodes(), Timing: timing, MayHaveName: func(name string) bool { return name != "server" },
			Tools: func(name string) []string {
				if name == "listed" {
					return []string{"relay"}
				}
				return nil
			},
		})
		if err != nil {
			p.t.Error(err)
		}
	}()
	stop := p.stop
	p.stop = sync.OnceFunc(func() { cancel(); <-done; stop() })
	p.t.Cleanup(p.stop)
	return cancel
}

// state returns the recorded state of a node; "" if there is none.
func (p *process) state(name string) stored.State {
	n, err := p.Find(context.WithoutCancel(p.t.Context()), name)
	if err != nil {
		return ""
	}
	return n.State
}

// isHere reports whether a node is here.
func (p *process) isHere(name string) bool { return p.node(name).Process != "" }

// acceptAgent waits until an agent is heard, and has an owner accept it.
func (p *process) acceptAgent(a *mqtttest.Agent, names ...string) {
	t := p.t
	t.Helper()
	a.Offer(names...)
	a.Status()
	waitUntil(t, a.Name+" is heard with all of its tools", func() bool { return p.state(a.Name) != "" && len(p.node(a.Name).Unaccepted) == len(names) })
	_, err := p.Accept(t.Context(), a.Name, "")
	must(t, err)
	waitUntil(t, a.Name+" is here", func() bool { a.Status(); return p.isHere(a.Name) })
}

// replyWith answers each command with a report, with or without the call's id.
func replyWith(withID bool, result string) func(map[string]any) map[string]any {
	return func(command map[string]any) map[string]any {
		report := map[string]any{"status": "success", "tool": command["payload"].(map[string]any)["tool"], "result": result, "stderr": "", "exit_code": 0}
		if withID {
			report["request_id"] = command["request_id"]
		}
		return report
	}
}

// noReply answers nothing.
func noReply(map[string]any) map[string]any { return nil }

const doneReport = `{"result":"temp=45.6°C","stderr":"","exit_code":0}`

// An agent is heard, waits, is accepted, and gets a call in the wire format. None of its results is trusted.
func TestAnEdgeAgent(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "trusted", replyWith(true, "temp=45.6°C"))
		a.Offer("bash", "read")
		waitUntil(t, "it is known what it offers", func() bool { return p.state("trusted") == stored.Waiting && len(p.node("trusted").Unaccepted) == 2 })
		wantCode(t, <-p.startCall(t.Context(), "trusted", "bash", toolCall("early")), tools.NotFound)
		p.acceptAgent(a, "bash", "read")
		got := <-p.startCall(t.Context(), "trusted", "bash", toolCall("1"))
		wantOutcome(t, got, toolnodes.Done, doneReport)
		if got.out.Trusted {
			t.Error("what an edge agent says is trusted")
		}
		heard := a.Heard()
		id := nodes.CallID(testSession, "1")
		want := fmt.Sprintf(`{"command":"tool","payload":{"tool":"bash","parameters":{"x":1},"timeout_ms":30000,"request_id":%q},"request_id":%[1]q}`, id)
		if len(heard) != 1 || !sameJSON(t, heard[0], []byte(want)) {
			t.Errorf("it was sent %s, want %s", heard, want)
		}
		f.mu.Lock()
		told := strings.Join(f.notices, "\n")
		f.mu.Unlock()
		if !strings.Contains(told, "The edge agent trusted was heard") {
			t.Errorf("owners were told %q", told)
		}
		must(t, p.Revoke(t.Context(), "trusted"))
		a.Status()
		waitUntil(t, "it is revoked", func() bool { return p.state("trusted") == stored.Revoked && !p.isHere("trusted") })
		wantCode(t, <-p.startCall(t.Context(), "trusted", "bash", toolCall("2")), tools.NotFound)
		_, err := p.Accept(t.Context(), "trusted", "") // this is the only way back
		must(t, err)
		waitUntil(t, "it is here again", func() bool { a.Status(); return p.isHere("trusted") })
		wantOutcome(t, <-p.startCall(t.Context(), "trusted", "bash", toolCall("3")), toolnodes.Done, doneReport)
	})
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var of [2]any
	for i, raw := range [][]byte{a, b} {
		must(t, json.Unmarshal(raw, &of[i]))
	}
	return fmt.Sprint(of[0]) == fmt.Sprint(of[1])
}

// sentToolNames returns the names of the tools of the commands that were sent to an agent.
func sentToolNames(t *testing.T, a *mqtttest.Agent) (names []string) {
	t.Helper()
	for _, raw := range a.Heard() {
		var c struct{ Payload struct{ Tool string } }
		must(t, json.Unmarshal(raw, &c))
		names = append(names, c.Payload.Tool)
	}
	return names
}

// An agent whose reports don't name their calls gets one call at a time.
func TestAnOlderEdgeAgent(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "old", noReply)
		p.acceptAgent(a, "bash", "read")
		first := p.startCall(t.Context(), "old", "bash", toolCall("1"))
		waitUntil(t, "the first call is sent", func() bool { return len(a.Heard()) == 1 })
		second := p.startCall(t.Context(), "old", "bash", toolCall("2"))
		waitUntil(t, "the second call is recorded", func() bool { return len(p.openCalls("old")) == 2 })
		third := p.startCall(t.Context(), "old", "read", toolCall("3"))
		waitUntil(t, "all calls are recorded", func() bool { return len(p.openCalls("old")) == 3 })
		a.Status()
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "of no call"})
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "too long for this call", "elapsed_ms": 60_000})
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "one"})
		wantOutcome(t, <-first, toolnodes.Done, `{"result":"one"}`)
		waitUntil(t, "the second call is sent", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "error", "tool": "bash", "error": "no such binary", "error_type": "not_found"})
		wantCode(t, <-second, tools.NotFound)
		waitUntil(t, "the third call is sent", func() bool { return len(a.Heard()) == 3 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "three"})
		wantOutcome(t, <-third, toolnodes.Done, `{"result":"three"}`)
		if got := sentToolNames(t, a); !slices.Equal(got, []string{"bash", "bash", "read"}) {
			t.Errorf("it was sent %s", got)
		}
	})
}

// openCalls returns the calls of an edge agent that have not ended.
func (p *process) openCalls(node string) []stored.Call {
	p.t.Helper()
	open, err := p.store.Nodes().OpenWithoutKey(context.WithoutCancel(p.t.Context()), node)
	must(p.t, err)
	return open
}

// Until a late call is reported, or its report is no longer expected, the agent gets no other call of that tool.
func TestALateReport(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{Call: 100 * time.Millisecond})
		a := mqtttest.NewAgent(b, "old", noReply)
		p.acceptAgent(a, "bash", "read")
		wantCode(t, <-p.startCall(t.Context(), "old", "bash", toolCall("1")), tools.OutcomeUnknown)
		wantCode(t, <-p.startCall(t.Context(), "old", "bash", toolCall("2")), tools.ExecutionFailed)
		other := p.startCall(t.Context(), "old", "read", toolCall("3"))
		waitUntil(t, "another tool is called", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "three"})
		wantOutcome(t, <-other, toolnodes.Done, `{"result":"three"}`)
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "late"})
		waitUntil(t, "the late report is recorded", func() bool { return len(p.openCalls("old")) == 0 })
		wantOutcome(t, <-p.startCall(t.Context(), "old", "bash", toolCall("1")), toolnodes.Done, `{"result":"late"}`) // the next attempt
		again := p.startCall(t.Context(), "old", "bash", toolCall("4"))
		waitUntil(t, "the tool is called again", func() bool { return len(a.Heard()) == 3 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "four"})
		wantOutcome(t, <-again, toolnodes.Done, `{"result":"four"}`)
	})
}

// If a late report never comes, the call ends after a while, and the tool can be called again.
func TestAReportThatNeverComes(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{Call: 100 * time.Millisecond, LateReport: time.Millisecond})
		a := mqtttest.NewAgent(b, "old", noReply)
		p.acceptAgent(a, "bash")
		wantCode(t, <-p.startCall(t.Context(), "old", "bash", toolCall("1")), tools.OutcomeUnknown)
		if open := p.openCalls("old"); len(open) > 0 {
			t.Errorf("%+v is open", open)
		}
		again := p.startCall(t.Context(), "old", "bash", toolCall("2"))
		waitUntil(t, "the tool is called again", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "two"})
		wantOutcome(t, <-again, toolnodes.Done, `{"result":"two"}`)
	})
}

// An agent whose reports name their calls gets several at a time.
func TestAnEdgeAgentGetsSeveralCalls(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{})
		answer := replyWith(true, "temp=45.6°C")
		wait := make(chan struct{})
		a := mqtttest.NewAgent(b, "new", func(command map[string]any) map[string]any {
			if command["request_id"] != nodes.CallID(testSession, "0") {
				<-wait
			}
			return answer(command)
		})
		p.acceptAgent(a, "bash")
		wantOutcome(t, <-p.startCall(t.Context(), "new", "bash", toolCall("0")), toolnodes.Done, doneReport)
		var all []<-chan callResult
		for i := range 5 {
			all = append(all, p.startCall(t.Context(), "new", "bash", toolCall(callKey(i))))
		}
		waitUntil(t, "all calls are sent", func() bool { return len(a.Heard()) == 6 })
		close(wait)
		for _, one := range all {
			wantOutcome(t, <-one, toolnodes.Done, doneReport)
		}
	})
}

// /stop can't reach an edge agent: its call continues to run, and nobody waits for it.
func TestAnEdgeCallIsStopped(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "old", noReply)
		p.acceptAgent(a, "bash")
		ctx, stop := context.WithCancelCause(t.Context())
		stopped := p.startCall(ctx, "old", "bash", toolCall("1"))
		waitUntil(t, "the call is sent", func() bool { return len(a.Heard()) == 1 })
		stop(tools.ErrUnwanted)
		if got := <-stopped; !errors.Is(got.err, context.Canceled) {
			t.Errorf("%+v", got)
		}
		next := p.startCall(t.Context(), "old", "bash", toolCall("2")) // it may still run
		waitUntil(t, "the next call is recorded", func() bool { return len(p.openCalls("old")) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "one"})
		waitUntil(t, "the next call is sent", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "two"})
		wantOutcome(t, <-next, toolnodes.Done, `{"result":"two"}`)
	})
}

// The broker is killed in the middle of a call. Nothing is published twice, and unsent calls are sent.
func TestTheBrokerIsKilled(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		a := mqtttest.NewAgent(b, "new", noReply)
		p := f.process(func(c *nodes.Config) {
			c.Point = func(name string) {
				if name == "edge:recorded" { // the agent, too, has to connect again
					waitUntil(t, "the agent listens", a.IsListening)
				}
			}
		})
		p.serveBroker(b, nodes.EdgeTiming{Call: 5 * time.Second})
		p.acceptAgent(a, "bash", "read")
		first := p.startCall(t.Context(), "new", "bash", toolCall("0"))
		waitUntil(t, "the first call is sent", func() bool { return len(a.Heard()) == 1 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "zero", "request_id": nodes.CallID(testSession, "0")}) // so the agent gets several calls
		wantOutcome(t, <-first, toolnodes.Done, `{"result":"zero"}`)
		lost := p.startCall(t.Context(), "new", "bash", toolCall("1"))
		waitUntil(t, "the call is sent", func() bool { return len(a.Heard()) == 2 })
		b.Kill()
		waits := p.startCall(t.Context(), "new", "read", toolCall("2"))
		waitUntil(t, "the other call is recorded", func() bool { return len(p.openCalls("new")) == 2 })
		b.Restart()
		waitUntil(t, "the other call is sent", func() bool { return len(a.Heard()) == 3 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "two", "request_id": nodes.CallID(testSession, "2")})
		wantOutcome(t, <-waits, toolnodes.Done, `{"result":"two"}`)
		wantCode(t, <-lost, tools.OutcomeUnknown)
		if got := sentToolNames(t, a); !slices.Equal(got, []string{"bash", "bash", "read"}) {
			t.Errorf("it was sent %s", got)
		}
	})
}

// The process that has the broker stops in the middle of a call. The next one publishes only the calls that were not
// sent, and gets the reports of the others.
func TestAnotherProcessTakesTheBroker(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		one, other := f.process(), f.process()
		one.serveBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "old", noReply)
		one.acceptAgent(a, "bash", "read")
		waitUntil(t, "the other process knows the tools", func() bool { must(t, other.Load(t.Context())); return len(other.node("old").Tools) == 2 })
		sent := other.startCall(t.Context(), "old", "bash", toolCall("1"))
		waitUntil(t, "the call is sent", func() bool { return len(a.Heard()) == 1 })
		one.stop()
		unsent := other.startCall(t.Context(), "old", "read", toolCall("2"))
		waitUntil(t, "the other call is recorded", func() bool { return len(other.openCalls("old")) == 2 })
		other.serveBroker(b, nodes.EdgeTiming{})
		waitUntil(t, "the agent is taken over", func() bool { n := other.node("old"); return n.Process != "" })
		waitUntil(t, "the report is heard", func() bool {
			a.Report(map[string]any{"status": "success", "tool": "bash", "result": "one"})
			return len(other.openCalls("old")) == 1
		})
		wantOutcome(t, <-sent, toolnodes.Done, `{"result":"one"}`)
		waitUntil(t, "the other call is sent", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "two"})
		wantOutcome(t, <-unsent, toolnodes.Done, `{"result":"two"}`)
		if got := sentToolNames(t, a); !slices.Equal(got, []string{"bash", "read"}) {
			t.Errorf("it was sent %s", got)
		}
	})
}

// The process that has the broker ends between recording that a call is sent and publishing it. Nobody publishes it
// later, because it may have been published.
func TestNothingIsPublishedTwice(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		var stopSoon context.CancelFunc
		one := f.process(func(c *nodes.Config) {
			c.Point = func(name string) {
				if name == "edge:recorded" {
					stopSoon()
				}
			}
		})
		timing := nodes.EdgeTiming{Call: 100 * time.Millisecond}
		stopSoon = one.serveBroker(b, timing)
		a := mqtttest.NewAgent(b, "old", noReply)
		one.acceptAgent(a, "bash", "read")
		other := f.process()
		lost := other.startCall(t.Context(), "old", "bash", toolCall("1"))
		waitUntil(t, "the call is recorded as sent", func() bool { open := other.openCalls("old"); return len(open) == 1 && !open[0].SentAt.IsZero() })
		one.stop()
		other.serveBroker(b, timing)
		wantCode(t, <-lost, tools.OutcomeUnknown)
		next := other.startCall(t.Context(), "old", "read", toolCall("2"))
		waitUntil(t, "the next call is sent", func() bool { return len(a.Heard()) == 1 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "two"})
		wantOutcome(t, <-next, toolnodes.Done, `{"result":"two"}`)
		if got := sentToolNames(t, a); !slices.Equal(got, []string{"read"}) {
			t.Errorf("it was sent %s", got)
		}
	})
}

// An agent that is silent for too long counts as away.
func TestASilentEdgeAgent(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{Silence: time.Second})
		a := mqtttest.NewAgent(b, "old", replyWith(false, "temp=45.6°C"))
		p.acceptAgent(a, "bash")
		waitUntil(t, "it is away", func() bool { return !p.isHere("old") })
		wantCode(t, <-p.startCall(t.Context(), "old", "bash", toolCall("1")), tools.NodeAway)
		if len(a.Heard()) > 0 {
			t.Error("it was sent a call")
		}
		waitUntil(t, "it is here", func() bool { a.Say("status", []byte("any text")); return p.isHere("old") })
	})
}

// The operator lists the tools of an agent that doesn't list them itself.
func TestAListedEdgeAgent(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "listed", replyWith(false, "temp=45.6°C"))
		waitUntil(t, "it is heard", func() bool { a.Status(); return p.state("listed") == stored.Waiting })
		if tools := p.node("listed").Unaccepted; len(tools) != 1 || tools[0].Name != "relay" {
			t.Errorf("it offers %+v", tools)
		}
	})
}

// An agent can't report other agents' calls, and an agent that sends too much doesn't block others.
func TestHostileEdgeAgents(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{})
		good := mqtttest.NewAgent(b, "good", noReply)
		evil := mqtttest.NewAgent(b, "evil", noReply)
		p.acceptAgent(good, "bash")
		p.acceptAgent(evil, "bash")
		first := p.startCall(t.Context(), "good", "bash", toolCall("1"))
		waitUntil(t, "the call is sent", func() bool { return len(good.Heard()) == 1 })
		id := nodes.CallID(testSession, "1")
		evil.Report(map[string]any{"status": "success", "tool": "bash", "result": "forged", "request_id": id})
		evil.Report(map[string]any{"status": "success", "tool": "bash", "result": "forged", "request_id": "of nobody"})
		evil.Report(map[string]any{"status": "success", "tool": "bash", "result": "forged"})
		for range 2000 {
			evil.Say("reports", fmt.Appendf(nil, `{"status":"success","tool":"bash","request_id":%q}`, id))
		}
		evil.Say("reports", bytes.Repeat([]byte("x"), 8*toolnodes.MaxResult))
		for heard := false; !heard; { // the broker may drop some while its queue is full
			good.Report(map[string]any{"status": "success", "tool": "bash", "result": "one", "request_id": id})
			select {
			case got := <-first:
				wantOutcome(t, got, toolnodes.Done, `{"result":"one"}`)
				heard = true
			case <-time.After(200 * time.Millisecond):
			}
		}

		second := p.startCall(t.Context(), "good", "bash", toolCall("2"))
		waitUntil(t, "the call is sent", func() bool { return len(good.Heard()) == 2 })
		good.Say("reports", bytes.Repeat([]byte("x"), 8*toolnodes.MaxResult))
		wantCode(t, <-second, tools.ExecutionFailed)
	})
}

// An edge agent and a device with a key can't share a name, and an invalid name is ignored.
func TestNamesOfEdgeAgents(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.serveBroker(b, nodes.EdgeTiming{})
		edge := mqtttest.NewAgent(b, "edge", noReply)
		p.acceptAgent(edge, "bash")
		public, private, err := ed25519.GenerateKey(rand.Reader)
		must(t, err)
		code, _, err := p.Invite(t.Context())
		must(t, err)
		if _, err := p.Join(t.Context(), code, "edge", public); !errors.Is(err, stored.ErrTaken) {
			t.Errorf("a device has joined under the name of an edge agent: %v", err)
		}
		own, err := f.key(t.Context())
		must(t, err)
		for _, key := range []ed25519.PrivateKey{private, make([]byte, ed25519.PrivateKeySize)} {
			n := wire.Node{Server: p.url, ServerKey: own.Public().(ed25519.PublicKey), Name: "edge", Key: key}
			if _, err := n.Dial(t.Context()); err == nil {
				t.Error("a link was opened under the name of an edge agent")
			}
		}

		d := p.join("device", tool("bash", false))
		began := make(chan struct{})
		d.run = func(_ wire.Frame, _ func(string), cancelled <-chan struct{}) toolnodes.Outcome {
			close(began)
			<-cancelled
			return doneOutcome(`"true"`)
		}
		d.link(p)
		ctx, stop := context.WithCancelCause(t.Context())
		came := p.startCall(ctx, "device", "bash", toolCall("1"))
		<-began
		before := p.node("device")
		impostor := mqtttest.NewAgent(b, "device", noReply)
		impostor.Offer("bash", "read")
		impostor.Status()
		for range 5 {
			impostor.Report(map[string]any{"status": "success", "tool": "bash", "result": "forged", "request_id": nodes.CallID(testSession, "1")})
			impostor.Report(map[string]any{"status": "success", "tool": "bash", "result": "forged"})
		}
		server := mqtttest.NewAgent(b, "server", noReply)
		server.Status()
		for _, name := range []string{"Living-Room", "a_b", "-x", strings.Repeat("a", 33), "living-room-pi"} {
			mqtttest.NewAgent(b, name, noReply).Status()
		}
		waitUntil(t, "the last one is heard", func() bool { return p.state("living-room-pi") == stored.Waiting })
		all, err := p.List(t.Context())
		must(t, err)
		if len(all) != 3 {
			t.Errorf("the nodes are %+v", all)
		}
		if now := p.node("device"); !bytes.Equal(now.Key, before.Key) || now.Process != before.Process || !bytes.Equal(now.Node.Offer, before.Node.Offer) {
			t.Errorf("%+v was %+v", now, before)
		}
		if c, err := p.store.Nodes().Call(t.Context(), nodes.CallID(testSession, "1")); err != nil || !c.Ended.IsZero() {
			t.Errorf("an edge agent has ended the call of a device: %+v (%v)", c, err)
		}
		stop(tools.ErrUnwanted)
		<-came
	})
}
