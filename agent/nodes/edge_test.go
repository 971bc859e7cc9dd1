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

// atBroker has a process serve the edge agents at a broker, until it is told to stop.
func (p *process) atBroker(b *mqtttest.Broker, timing nodes.EdgeTiming) (stopSoon context.CancelFunc) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := p.ServeBroker(ctx, nodes.BrokerConfig{
			Server: mqtt.Server{URL: b.URL()}, Edges: p.store.Nodes(), Timing: timing, May: func(name string) bool { return name != "server" },
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

// state returns what is recorded of a node; "" if there is none.
func (p *process) state(name string) stored.State {
	n, err := p.Find(context.WithoutCancel(p.t.Context()), name)
	if err != nil {
		return ""
	}
	return n.State
}

// isHere reports whether a node is here.
func (p *process) isHere(name string) bool { return p.node(name).Process != "" }

// accepted has an agent heard, and an owner accept it.
func (p *process) accepted(a *mqtttest.Agent, names ...string) {
	t := p.t
	t.Helper()
	a.Offer(names...)
	a.Status()
	until(t, a.Name+" is heard with all of its tools", func() bool { return p.state(a.Name) != "" && len(p.node(a.Name).Aside) == len(names) })
	_, err := p.Accept(t.Context(), a.Name, "")
	must(t, err)
	until(t, a.Name+" is here", func() bool { a.Status(); return p.isHere(a.Name) })
}

// replies answers each command with a report that has the id, or hasn't.
func replies(withID bool, result string) func(map[string]any) map[string]any {
	return func(command map[string]any) map[string]any {
		report := map[string]any{"status": "success", "tool": command["payload"].(map[string]any)["tool"], "result": result, "stderr": "", "exit_code": 0}
		if withID {
			report["request_id"] = command["request_id"]
		}
		return report
	}
}

// silent answers nothing.
func silent(map[string]any) map[string]any { return nil }

const done = `{"result":"temp=45.6°C","stderr":"","exit_code":0}`

// An agent is heard, waits, is accepted, and gets a call as the wire has it. Nothing that it returns is trusted.
func TestAnEdgeAgent(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "trusted", replies(true, "temp=45.6°C"))
		a.Offer("bash", "read")
		until(t, "it is known what it offers", func() bool { return p.state("trusted") == stored.Waiting && len(p.node("trusted").Aside) == 2 })
		wantsCode(t, <-p.begin(t.Context(), "trusted", "bash", call("early")), tools.NotFound)
		p.accepted(a, "bash", "read")
		got := <-p.begin(t.Context(), "trusted", "bash", call("1"))
		wants(t, got, toolnodes.Done, done)
		if got.out.Trusted {
			t.Error("what an edge agent says is trusted")
		}
		heard := a.Heard()
		id := nodes.CallID(session, "1")
		want := fmt.Sprintf(`{"command":"tool","payload":{"tool":"bash","parameters":{"x":1},"timeout_ms":30000,"request_id":%q},"request_id":%[1]q}`, id)
		if len(heard) != 1 || !sameJSON(t, heard[0], []byte(want)) {
			t.Errorf("it was sent %s, want %s", heard, want)
		}
		f.mu.Lock()
		told := strings.Join(f.told, "\n")
		f.mu.Unlock()
		if !strings.Contains(told, "The edge agent trusted was heard") {
			t.Errorf("owners were told %q", told)
		}
		must(t, p.Revoke(t.Context(), "trusted"))
		a.Status()
		until(t, "it is revoked", func() bool { return p.state("trusted") == stored.Revoked && !p.isHere("trusted") })
		wantsCode(t, <-p.begin(t.Context(), "trusted", "bash", call("2")), tools.NotFound)
		_, err := p.Accept(t.Context(), "trusted", "") // there is no other way back
		must(t, err)
		until(t, "it is here again", func() bool { a.Status(); return p.isHere("trusted") })
		wants(t, <-p.begin(t.Context(), "trusted", "bash", call("3")), toolnodes.Done, done)
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

// toolsOf returns the names of the tools of the commands that an agent was sent.
func toolsOf(t *testing.T, a *mqtttest.Agent) (names []string) {
	t.Helper()
	for _, raw := range a.Heard() {
		var c struct{ Payload struct{ Tool string } }
		must(t, json.Unmarshal(raw, &c))
		names = append(names, c.Payload.Tool)
	}
	return names
}

// An agent that doesn't say which call a report is of gets one call at a time.
func TestAnOlderEdgeAgent(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "old", silent)
		p.accepted(a, "bash", "read")
		first := p.begin(t.Context(), "old", "bash", call("1"))
		until(t, "the first call is sent", func() bool { return len(a.Heard()) == 1 })
		second := p.begin(t.Context(), "old", "bash", call("2"))
		until(t, "the second call is recorded", func() bool { return len(p.openCalls("old")) == 2 })
		third := p.begin(t.Context(), "old", "read", call("3"))
		until(t, "all calls are recorded", func() bool { return len(p.openCalls("old")) == 3 })
		a.Status()
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "of no call"})
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "too long for this call", "elapsed_ms": 60_000})
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "one"})
		wants(t, <-first, toolnodes.Done, `{"result":"one"}`)
		until(t, "the second call is sent", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "error", "tool": "bash", "error": "no such binary", "error_type": "not_found"})
		wantsCode(t, <-second, tools.NotFound)
		until(t, "the third call is sent", func() bool { return len(a.Heard()) == 3 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "three"})
		wants(t, <-third, toolnodes.Done, `{"result":"three"}`)
		if got := toolsOf(t, a); !slices.Equal(got, []string{"bash", "bash", "read"}) {
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

// A call is late. Until it is reported, or nobody expects that anymore, the agent gets no other call of that tool.
func TestALateReport(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{Call: 100 * time.Millisecond})
		a := mqtttest.NewAgent(b, "old", silent)
		p.accepted(a, "bash", "read")
		wantsCode(t, <-p.begin(t.Context(), "old", "bash", call("1")), tools.OutcomeUnknown)
		wantsCode(t, <-p.begin(t.Context(), "old", "bash", call("2")), tools.ExecutionFailed)
		other := p.begin(t.Context(), "old", "read", call("3"))
		until(t, "another tool is called", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "three"})
		wants(t, <-other, toolnodes.Done, `{"result":"three"}`)
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "late"})
		until(t, "the late report is recorded", func() bool { return len(p.openCalls("old")) == 0 })
		wants(t, <-p.begin(t.Context(), "old", "bash", call("1")), toolnodes.Done, `{"result":"late"}`) // the next attempt
		again := p.begin(t.Context(), "old", "bash", call("4"))
		until(t, "the tool is called again", func() bool { return len(a.Heard()) == 3 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "four"})
		wants(t, <-again, toolnodes.Done, `{"result":"four"}`)
	})
}

// A report that is not expected anymore never comes: the call has ended then, and the tool is called again.
func TestAReportThatNeverComes(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{Call: 100 * time.Millisecond, Late: time.Millisecond})
		a := mqtttest.NewAgent(b, "old", silent)
		p.accepted(a, "bash")
		wantsCode(t, <-p.begin(t.Context(), "old", "bash", call("1")), tools.OutcomeUnknown)
		if open := p.openCalls("old"); len(open) > 0 {
			t.Errorf("%+v is open", open)
		}
		again := p.begin(t.Context(), "old", "bash", call("2"))
		until(t, "the tool is called again", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "two"})
		wants(t, <-again, toolnodes.Done, `{"result":"two"}`)
	})
}

// An agent that says which call a report is of gets several at a time.
func TestAnEdgeAgentGetsSeveralCalls(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{})
		answer := replies(true, "temp=45.6°C")
		wait := make(chan struct{})
		a := mqtttest.NewAgent(b, "new", func(command map[string]any) map[string]any {
			if command["request_id"] != nodes.CallID(session, "0") {
				<-wait
			}
			return answer(command)
		})
		p.accepted(a, "bash")
		wants(t, <-p.begin(t.Context(), "new", "bash", call("0")), toolnodes.Done, done)
		var all []<-chan called
		for i := range 5 {
			all = append(all, p.begin(t.Context(), "new", "bash", call(key(i))))
		}
		until(t, "all calls are sent", func() bool { return len(a.Heard()) == 6 })
		close(wait)
		for _, one := range all {
			wants(t, <-one, toolnodes.Done, done)
		}
	})
}

// /stop can't reach an agent: its call runs on, and nobody waits.
func TestAnEdgeCallIsStopped(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "old", silent)
		p.accepted(a, "bash")
		ctx, stop := context.WithCancelCause(t.Context())
		stopped := p.begin(ctx, "old", "bash", call("1"))
		until(t, "the call is sent", func() bool { return len(a.Heard()) == 1 })
		stop(tools.ErrUnwanted)
		if got := <-stopped; !errors.Is(got.err, context.Canceled) {
			t.Errorf("%+v", got)
		}
		next := p.begin(t.Context(), "old", "bash", call("2")) // it may still run
		until(t, "the next call is recorded", func() bool { return len(p.openCalls("old")) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "one"})
		until(t, "the next call is sent", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "two"})
		wants(t, <-next, toolnodes.Done, `{"result":"two"}`)
	})
}

// The broker is killed in the middle of a call. Nothing is published twice, and what was not sent is sent.
func TestTheBrokerIsKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		a := mqtttest.NewAgent(b, "new", silent)
		p := f.process(func(c *nodes.Config) {
			c.Point = func(name string) {
				if name == "edge:recorded" { // the agent, too, has to connect again
					until(t, "the agent listens", a.IsListening)
				}
			}
		})
		p.atBroker(b, nodes.EdgeTiming{Call: 5 * time.Second})
		p.accepted(a, "bash", "read")
		first := p.begin(t.Context(), "new", "bash", call("0"))
		until(t, "the first call is sent", func() bool { return len(a.Heard()) == 1 })
		a.Report(map[string]any{"status": "success", "tool": "bash", "result": "zero", "request_id": nodes.CallID(session, "0")}) // so it gets several
		wants(t, <-first, toolnodes.Done, `{"result":"zero"}`)
		lost := p.begin(t.Context(), "new", "bash", call("1"))
		until(t, "the call is sent", func() bool { return len(a.Heard()) == 2 })
		b.Kill()
		waits := p.begin(t.Context(), "new", "read", call("2"))
		until(t, "the other call is recorded", func() bool { return len(p.openCalls("new")) == 2 })
		b.Restart()
		until(t, "the other call is sent", func() bool { return len(a.Heard()) == 3 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "two", "request_id": nodes.CallID(session, "2")})
		wants(t, <-waits, toolnodes.Done, `{"result":"two"}`)
		wantsCode(t, <-lost, tools.OutcomeUnknown)
		if got := toolsOf(t, a); !slices.Equal(got, []string{"bash", "bash", "read"}) {
			t.Errorf("it was sent %s", got)
		}
	})
}

// The process that has the broker stops in the middle of a call. The next one publishes what was not sent, and only that, and
// gets the report of what was.
func TestAnotherProcessTakesTheBroker(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		one, other := f.process(), f.process()
		one.atBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "old", silent)
		one.accepted(a, "bash", "read")
		until(t, "the other process knows the tools", func() bool { must(t, other.Load(t.Context())); return len(other.node("old").Tools) == 2 })
		sent := other.begin(t.Context(), "old", "bash", call("1"))
		until(t, "the call is sent", func() bool { return len(a.Heard()) == 1 })
		one.stop()
		unsent := other.begin(t.Context(), "old", "read", call("2"))
		until(t, "the other call is recorded", func() bool { return len(other.openCalls("old")) == 2 })
		other.atBroker(b, nodes.EdgeTiming{})
		until(t, "the agent is taken over", func() bool { n := other.node("old"); return n.Process != "" })
		until(t, "the report is heard", func() bool {
			a.Report(map[string]any{"status": "success", "tool": "bash", "result": "one"})
			return len(other.openCalls("old")) == 1
		})
		wants(t, <-sent, toolnodes.Done, `{"result":"one"}`)
		until(t, "the other call is sent", func() bool { return len(a.Heard()) == 2 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "two"})
		wants(t, <-unsent, toolnodes.Done, `{"result":"two"}`)
		if got := toolsOf(t, a); !slices.Equal(got, []string{"bash", "read"}) {
			t.Errorf("it was sent %s", got)
		}
	})
}

// The process that has the broker ends between recording that a call is sent and publishing it. Nobody publishes it later,
// because nobody can know that it was not published.
func TestNothingIsPublishedTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
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
		stopSoon = one.atBroker(b, timing)
		a := mqtttest.NewAgent(b, "old", silent)
		one.accepted(a, "bash", "read")
		other := f.process()
		lost := other.begin(t.Context(), "old", "bash", call("1"))
		until(t, "the call is recorded as sent", func() bool { open := other.openCalls("old"); return len(open) == 1 && !open[0].SentAt.IsZero() })
		one.stop()
		other.atBroker(b, timing)
		wantsCode(t, <-lost, tools.OutcomeUnknown)
		next := other.begin(t.Context(), "old", "read", call("2"))
		until(t, "the next call is sent", func() bool { return len(a.Heard()) == 1 })
		a.Report(map[string]any{"status": "success", "tool": "read", "result": "two"})
		wants(t, <-next, toolnodes.Done, `{"result":"two"}`)
		if got := toolsOf(t, a); !slices.Equal(got, []string{"read"}) {
			t.Errorf("it was sent %s", got)
		}
	})
}

// An agent that says nothing for long is away.
func TestASilentEdgeAgent(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{Silence: time.Second})
		a := mqtttest.NewAgent(b, "old", replies(false, "temp=45.6°C"))
		p.accepted(a, "bash")
		until(t, "it is away", func() bool { return !p.isHere("old") })
		wantsCode(t, <-p.begin(t.Context(), "old", "bash", call("1")), tools.NodeAway)
		if len(a.Heard()) > 0 {
			t.Error("it was sent a call")
		}
		until(t, "it is here", func() bool { a.Say("status", []byte("any text")); return p.isHere("old") })
	})
}

// The operator lists the tools of an agent that doesn't name them.
func TestAListedEdgeAgent(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{})
		a := mqtttest.NewAgent(b, "listed", replies(false, "temp=45.6°C"))
		until(t, "it is heard", func() bool { a.Status(); return p.state("listed") == stored.Waiting })
		if tools := p.node("listed").Aside; len(tools) != 1 || tools[0].Name != "relay" {
			t.Errorf("it offers %+v", tools)
		}
	})
}

// An agent can't say anything about the calls of others, and nobody who says too much stops others.
func TestHostileEdgeAgents(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{})
		good := mqtttest.NewAgent(b, "good", silent)
		evil := mqtttest.NewAgent(b, "evil", silent)
		p.accepted(good, "bash")
		p.accepted(evil, "bash")
		first := p.begin(t.Context(), "good", "bash", call("1"))
		until(t, "the call is sent", func() bool { return len(good.Heard()) == 1 })
		id := nodes.CallID(session, "1")
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
				wants(t, got, toolnodes.Done, `{"result":"one"}`)
				heard = true
			case <-time.After(200 * time.Millisecond):
			}
		}

		second := p.begin(t.Context(), "good", "bash", call("2"))
		until(t, "the call is sent", func() bool { return len(good.Heard()) == 2 })
		good.Say("reports", bytes.Repeat([]byte("x"), 8*toolnodes.MaxResult))
		wantsCode(t, <-second, tools.ExecutionFailed)
	})
}

// The names of edge agents and of devices with a key are apart, and no name is taken that nobody can have.
func TestNamesOfEdgeAgents(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		b := mqtttest.New(t)
		p := f.process()
		p.atBroker(b, nodes.EdgeTiming{})
		edge := mqtttest.NewAgent(b, "edge", silent)
		p.accepted(edge, "bash")
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
			return ok(`"true"`)
		}
		d.link(p)
		ctx, stop := context.WithCancelCause(t.Context())
		came := p.begin(ctx, "device", "bash", call("1"))
		<-began
		before := p.node("device")
		impostor := mqtttest.NewAgent(b, "device", silent)
		impostor.Offer("bash", "read")
		impostor.Status()
		for range 5 {
			impostor.Report(map[string]any{"status": "success", "tool": "bash", "result": "forged", "request_id": nodes.CallID(session, "1")})
			impostor.Report(map[string]any{"status": "success", "tool": "bash", "result": "forged"})
		}
		server := mqtttest.NewAgent(b, "server", silent)
		server.Status()
		for _, name := range []string{"Living-Room", "a_b", "-x", strings.Repeat("a", 33), "living-room-pi"} {
			mqtttest.NewAgent(b, name, silent).Status()
		}
		until(t, "the last one is heard", func() bool { return p.state("living-room-pi") == stored.Waiting })
		all, err := p.List(t.Context())
		must(t, err)
		if len(all) != 3 {
			t.Errorf("the nodes are %+v", all)
		}
		if now := p.node("device"); !bytes.Equal(now.Key, before.Key) || now.Process != before.Process || !bytes.Equal(now.Node.Offer, before.Node.Offer) {
			t.Errorf("%+v was %+v", now, before)
		}
		if c, err := p.store.Nodes().Call(t.Context(), nodes.CallID(session, "1")); err != nil || !c.Ended.IsZero() {
			t.Errorf("an edge agent has ended the call of a device: %+v (%v)", c, err)
		}
		stop(tools.ErrUnwanted)
		<-came
	})
}
