package mqtttest

import (
	"encoding/json"
	"sync"

	"parley/tools/plainjson"
)

// An Agent is an edge agent. It is written from the description of the wire alone: it reads objects from its topic commands,
// and writes objects to its topic reports.
type Agent struct {
	Name   string
	broker *Broker
	client *Client
	answer func(command map[string]any) (report map[string]any)

	mu    sync.Mutex
	heard []json.RawMessage
	doing sync.WaitGroup
}

// NewAgent connects an agent to a broker. answer returns the report of each command; nil means that there is none.
func NewAgent(b *Broker, name string, answer func(command map[string]any) (report map[string]any)) *Agent {
	b.t.Helper()
	a := &Agent{Name: name, broker: b, answer: answer}
	a.client = b.Client(func(_ string, payload []byte) { a.hear(payload) }, "evoclaw/agents/"+name+"/commands")
	b.t.Cleanup(a.doing.Wait)
	return a
}

// hear runs a command.
func (a *Agent) hear(payload []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = append(a.heard, payload)
	var command map[string]any
	if err := json.Unmarshal(payload, &command); err != nil {
		a.broker.t.Errorf("a command is no object: %s", payload)
		return
	}
	a.doing.Go(func() {
		if report := a.answer(command); report != nil {
			a.Report(report)
		}
	})
}

// IsListening reports whether the agent gets the commands that are published now.
func (a *Agent) IsListening() bool { return a.client.IsListening() }

// Heard returns the commands that the agent was sent.
func (a *Agent) Heard() []json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]json.RawMessage(nil), a.heard...)
}

// Report publishes a report.
func (a *Agent) Report(report map[string]any) { a.say("reports", false, report) }

// Status publishes a sign of life.
func (a *Agent) Status() { a.say("status", false, map[string]any{"uptime": 1}) }

// Offer publishes the agent's capabilities, which the broker keeps.
func (a *Agent) Offer(capabilities ...string) { a.say("capabilities", true, capabilities) }

// Say publishes anything to one of the agent's topics. It doesn't wait until the broker has confirmed that: after a message
// of some megabytes, Mosquitto may hold the confirmation back until the agent says something else.
func (a *Agent) Say(kind string, payload []byte) {
	a.client.Publish("evoclaw/agents/"+a.Name+"/"+kind, 1, false, payload)
}

func (a *Agent) say(kind string, retained bool, what any) {
	raw, err := plainjson.Marshal(what)
	if err != nil {
		a.broker.t.Error(err)
		return
	}
	a.broker.Publish(a.client, "evoclaw/agents/"+a.Name+"/"+kind, retained, raw)
}
