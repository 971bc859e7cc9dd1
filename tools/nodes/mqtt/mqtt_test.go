package mqtt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/mqtt"
	"parley/tools/nodes/mqtt/mqtttest"
)

func TestReports(t *testing.T) {
	for _, c := range []struct{ report, content, code, message string }{
		{report: `{"status": "success", "tool": "bash", "result": "temp=45.6°C", "stderr": "", "exit_code": 0, "elapsed_ms": 123}`,
			content: `{"result":"temp=45.6°C","stderr":"","exit_code":0}`},
		{report: `{"status": "success", "request_id": "x", "result": {"a": [1]}, "elapsed_ms": 1.5}`, content: `{"result":{"a":[1]}}`},
		{report: `{"status": "success", "tool": "bash", "error": {"of": "another type"}}`, content: `{}`},
		{report: `{"status": "error", "tool": "bash", "error": "Command timed out after 30000ms", "error_type": "timeout"}`,
			code: "timeout", message: "Command timed out after 30000ms"},
		{report: `{"status": "error", "tool": "bash", "error": "no", "error_type": "not_found"}`, code: "not_found", message: "no"},
		{report: `{"status": "error", "tool": "bash", "error": "no", "error_type": "permission_denied"}`, code: "permission_denied", message: "no"},
		{report: `{"status": "error", "tool": "bash", "error": "no", "error_type": "invalid_params"}`, code: "invalid_args", message: "no"},
		{report: `{"status": "error", "tool": "bash", "error_type": "execution_failed", "stderr": "it broke\n", "exit_code": 2, "result": ""}`,
			code: "execution_failed", message: "the device did not say why\nexit code: 2\nstderr: it broke"},
		{report: `{"status": "error", "tool": "bash", "error": "no", "error_type": "another one"}`, code: "execution_failed", message: "no"},
	} {
		r, err := mqtt.ParseReport([]byte(c.report))
		if err != nil {
			t.Errorf("%s: %v", c.report, err)
			continue
		}
		out, err := r.Outcome()
		if err != nil {
			t.Error(err)
		}
		failed := tools.Error{}
		if out.Error != nil {
			failed = *out.Error
		}
		if string(out.Content) != c.content || string(failed.Code) != c.code || failed.Message != c.message {
			t.Errorf("%s gives %s %q", c.report, out.Content, failed)
		}
	}
	for _, other := range []string{"", "alive", "[]", `{"status": "running", "tool": "bash"}`, `{"status": "success"}`, `{"fitness": 1}`} {
		if _, err := mqtt.ParseReport([]byte(other)); !errors.Is(err, mqtt.ErrNoReport) {
			t.Errorf("%q: %v", other, err)
		}
	}
}

func TestNames(t *testing.T) {
	for payload, want := range map[string]string{
		`["read", "bash", "read"]`: "bash read", `{"capabilities": ["git_log", "rm -rf /", ""]}`: "git_log", `[]`: "",
		`"text"`: "no list", `{"tools": ["bash"]}`: "no list", `[{"name": "bash"}]`: "no list", `null`: "no list", `alive`: "no list",
	} {
		names, ok := mqtt.Names([]byte(payload))
		got := strings.Join(names, " ")
		if !ok {
			got = "no list"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", payload, got, want)
		}
	}
}

func TestOffer(t *testing.T) {
	offer := mqtt.OfferOf([]string{"relay", "bash"}, 30*time.Second)
	if len(offer.Tools) != 2 || offer.Tools[0].Name != "bash" || offer.Tools[1].Name != "relay" || offer.Tools[0].Timeout != 30_000 {
		t.Errorf("%+v", offer)
	}
	for _, one := range offer.Tools {
		if !json.Valid(one.Schema) || one.Pure || one.Description == "" {
			t.Errorf("%+v", one)
		}
	}
}

// Messages of edge agents arrive unchanged over a real broker; a message that is too large doesn't end the connection.
func TestConn(t *testing.T) {
	t.Parallel()
	b := mqtttest.New(t)
	heard := make(chan mqtt.Message, 20)
	conn, err := mqtt.Server{URL: b.URL()}.Dial(t.Context(), func(m mqtt.Message) { heard <- m })
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pi := mqtttest.NewAgent(b, "pi", func(map[string]any) map[string]any { return map[string]any{"status": "success", "tool": "bash"} })
	pi.Say("status", []byte("alive"))
	pi.Say("reports", bytes.Repeat([]byte("x"), nodes.MaxResult+1))
	pi.Say("reports", bytes.Repeat([]byte("x"), 5*nodes.MaxResult))
	pi.Say("reports", bytes.Repeat([]byte("y"), nodes.MaxResult))
	pi.Offer("bash")
	for _, want := range []struct {
		kind  mqtt.Kind
		bytes int
		large bool
	}{{mqtt.KindStatus, 5, false}, {mqtt.KindReports, 0, true}, {mqtt.KindReports, 0, true}, {mqtt.KindReports, nodes.MaxResult, false}, {mqtt.KindCapabilities, 8, false}} {
		if m := <-heard; m.Agent != "pi" || m.Kind != want.kind || len(m.Payload) != want.bytes || m.TooLarge != want.large || m.Retained {
			t.Errorf("%s %s: %d bytes, too large: %t, retained: %t", m.Agent, m.Kind, len(m.Payload), m.TooLarge, m.Retained)
		}
	}
	if err := conn.Send(t.Context(), "pi", mqtt.Command{ID: "tool-1", Tool: "bash", Parameters: []byte(`{"command":"true"}`), Timeout: time.Second}); err != nil {
		t.Fatal(err)
	}
	if m := <-heard; m.Kind != mqtt.KindReports || string(m.Payload) != `{"status":"success","tool":"bash"}` {
		t.Errorf("%+v", m)
	}
	b.Kill()
	<-conn.Lost()
	if conn.Err() == nil {
		t.Error("it is not said why the connection is lost")
	}
	if err := conn.Send(t.Context(), "pi", mqtt.Command{ID: "tool-2", Tool: "bash"}); err == nil {
		t.Error("a command was sent over a lost connection")
	}
}

func TestDial(t *testing.T) {
	t.Parallel()
	b := mqtttest.New(t, "allow_anonymous false")
	if _, err := (mqtt.Server{URL: b.URL(), User: "parley", Password: "wrong"}).Dial(t.Context(), nil); err == nil {
		t.Error("a broker that knows nobody was reached")
	}
	b.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := (mqtt.Server{URL: b.URL()}).Dial(ctx, nil); err == nil {
		t.Error("a broker that is gone was reached")
	}
	cancel()
	if _, err := (mqtt.Server{URL: b.URL()}).Dial(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
