//go:build linux

package nodes

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
	"parley/tools/nodes/mqtt/mqtttest"
)

const edgeName = "living-room-pi"

// askEdge plays a model that makes the edge agent do what a person asks for, and answers with the result.
func askEdge(r agenttest.Request) agenttest.Response {
	asked := ""
	for _, m := range r.Messages() {
		if m.Role == "user" {
			asked = m.Content
		}
	}
	results := r.Results()
	last := strings.Join(results, " ")
	call := func(tool, args string) agenttest.Response {
		if !slices.Contains(r.Tools(), edgeName+"__"+tool) {
			return agenttest.Reply("no such tool")
		}
		return agenttest.Calls(agenttest.Call(edgeName+"__"+tool, args))
	}
	switch {
	case strings.Contains(asked, "commits") && r.Rounds() == 1:
		return call("git_diff", fmt.Sprintf(`{"commit":%q}`, regexp.MustCompile(`[0-9a-f]{7,}`).FindString(last)))
	case r.Rounds() > 0:
		return agenttest.Reply("it gave " + last)
	case strings.Contains(asked, "temperature"):
		return call("bash", `{"command":"vcgencmd measure_temp"}`)
	case strings.Contains(asked, "pin"):
		return call("bash", `{"command":"raspi-gpio get 17"}`)
	case strings.Contains(asked, "file"):
		return call("read", `{"path":"/etc/hostname"}`)
	case strings.Contains(asked, "commits"):
		return call("git_log", `{"max_count":3}`)
	}
	return agenttest.Reply("hello")
}

// edgeDevice answers commands as a device does. Old devices don't say which command a report belongs to.
func edgeDevice(old bool) func(command map[string]any) map[string]any {
	return func(command map[string]any) map[string]any {
		payload, _ := command["payload"].(map[string]any)
		parameters, _ := payload["parameters"].(map[string]any)
		report := map[string]any{"status": "success", "tool": payload["tool"], "stderr": "", "exit_code": 0, "elapsed_ms": 123}
		if !old {
			report["request_id"] = command["request_id"]
		}
		switch what := fmt.Sprint(payload["tool"], parameters); what {
		case "bashmap[command:vcgencmd measure_temp]":
			report["result"] = "temp=45.6°C"
		case "bashmap[command:raspi-gpio get 17]":
			report["result"] = "GPIO 17: level=1 fsel=0 func=INPUT"
		case "readmap[path:/etc/hostname]":
			report["result"] = "raspberrypi"
		case "git_logmap[max_count:3]":
			report["result"] = "a1b2c3d newest\nb2c3d4e older\nc3d4e5f oldest"
		case "git_diffmap[commit:a1b2c3d]":
			report["result"] = "-old\n+new"
		default:
			return map[string]any{"status": "error", "tool": payload["tool"], "error": what, "error_type": "execution_failed"}
		}
		return report
	}
}

// inEdgeWorld returns a world with a broker, a running server, and an edge agent that an owner has accepted.
func inEdgeWorld(t *testing.T, answer func(map[string]any) map[string]any) (*parleytest.HTTPWorld, *parleytest.Process, *mqtttest.Agent) {
	t.Helper()
	b := mqtttest.New(t)
	w := parleytest.ListenHTTP(parleytest.New(t, askEdge,
		fmt.Sprintf("[mqtt]\nurl = %q\ncompatible = \"evoclaw\"\n[nodes.%s]\nagents = [\"main\"]\ntrusted = true\n", b.URL(), edgeName)))
	p := w.Up()
	w.Telegram.Say(1, 1, "hello") // so the owner has a chat
	w.WaitSaid(1, 1)
	a := mqtttest.NewAgent(b, edgeName, answer)
	a.Offer("bash", "read", "git_log", "git_diff")
	parleytest.Wants(t, w.WaitSaid(1, 2)[1], "The edge agent living-room-pi was heard", "parley nodes accept living-room-pi")
	w.Telegram.Say(2, 2, "the temperature, early")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "no such tool")
	out, errs, code := w.Run("nodes", "accept", edgeName, "--yes")
	if code != parleytest.ExitDone {
		t.Fatalf("nodes accept ended with %d: %s%s", code, out, errs)
	}
	parleytest.Wants(t, out, "bash", "git_diff", "read", "none: it is an edge agent", "trusted = true has no effect", "Accepted from living-room-pi")
	a.Status()
	here(w)
	return w, p, a
}

// The four example conversations work, and the server sends the device what the description of the protocol says.
func TestEdgeConversations(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"new": false, "old": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, a := inEdgeWorld(t, edgeDevice(old))
			for chat, c := range map[int64]struct{ asks, gets string }{
				3: {"the temperature?", "temp=45.6°C"},
				4: {"the pin?", "GPIO 17: level=1 fsel=0 func=INPUT"},
				5: {"the file?", "raspberrypi"},
			} {
				w.Telegram.Say(chat, chat, c.asks)
				parleytest.Wants(t, w.WaitSaid(chat, 1)[0], "it gave", c.gets, `"exit_code":0`)
			}
			w.Telegram.Say(1, 1, "the commits?")
			var asked telegramtest.Message
			parleytest.WaitFor(t, "an approval, because a stranger wrote the commits", func() bool {
				for _, m := range w.Telegram.Sent(1) {
					if len(m.Buttons) > 0 {
						asked = m
					}
				}
				return asked.ID != 0
			})
			w.Telegram.PressButton(1, 1, asked.ID, "Approve")
			parleytest.WaitFor(t, "the diff", func() bool {
				return slices.ContainsFunc(w.Telegram.Sent(1), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "+new") })
			})
			wantCommands(t, a)
			out, _, _ := w.Run("doctor")
			parleytest.Wants(t, out, "MQTT broker", "it can be reached", "node living-room-pi")
			out, _, _ = w.Run("metrics")
			parleytest.Wants(t, out, `parley_node_up{node="living-room-pi"} 1`, `parley_node_calls_total{node="living-room-pi",result="ok"} 5`)
		})
	}
}

// wantCommands checks that the agent got the commands of the description, compared as JSON and without the ids.
func wantCommands(t *testing.T, a *mqtttest.Agent) {
	t.Helper()
	want := map[string]bool{}
	for _, one := range []string{
		`"tool": "bash", "parameters": {"command": "vcgencmd measure_temp"}`,
		`"tool": "bash", "parameters": {"command": "raspi-gpio get 17"}`,
		`"tool": "read", "parameters": {"path": "/etc/hostname"}`,
		`"tool": "git_log", "parameters": {"max_count": 3}`,
		`"tool": "git_diff", "parameters": {"commit": "a1b2c3d"}`,
	} {
		want[one] = false
	}
	heard := a.Heard()
	if len(heard) != len(want) {
		t.Errorf("%d commands were sent: %s", len(heard), heard)
	}
	for _, raw := range heard {
		var sent map[string]any
		parleytest.Must(t, json.Unmarshal(raw, &sent))
		id, _ := sent["request_id"].(string)
		found := false
		for one, was := range want {
			var like map[string]any
			parleytest.Must(t, json.Unmarshal(fmt.Appendf(nil, `{"command": "tool", "payload": {%s, "timeout_ms": 30000, "request_id": %q}, "request_id": %[2]q}`, one, id), &like))
			if !was && id != "" && reflect.DeepEqual(sent, like) {
				want[one], found = true, true
			}
		}
		if !found {
			t.Errorf("%s was sent", raw)
		}
	}
}

// If the server is killed in the middle of a call, the next one gets the call's report and does not publish the command
// again.
func TestTheServerIsKilledInAnEdgeCall(t *testing.T) {
	t.Parallel()
	begun := make(chan map[string]any, 10)
	device := edgeDevice(false)
	w, p, a := inEdgeWorld(t, func(command map[string]any) map[string]any {
		begun <- device(command)
		return nil
	})
	w.Telegram.Say(3, 3, "the temperature?")
	report := <-begun
	p.Kill()
	p = w.Up()
	parleytest.WaitFor(t, "the answer", func() bool { // the agent repeats its report until it is acknowledged
		a.Report(report)
		return len(w.Telegram.Sent(3)) > 0
	})
	parleytest.Wants(t, w.WaitSaid(3, 1)[0], "it gave", "temp=45.6°C")
	w.Telegram.Say(4, 4, "the pin?")
	report = <-begun
	parleytest.WaitFor(t, "the other answer", func() bool { // a few more reports may be dropped after so many
		a.Report(report)
		return len(w.Telegram.Sent(4)) > 0
	})
	parleytest.Wants(t, w.WaitSaid(4, 1)[0], "GPIO 17")
	if heard := a.Heard(); len(heard) != 2 {
		t.Errorf("it was sent %s", heard)
	}
	p.Stop()
}
