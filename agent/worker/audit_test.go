package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent"
	"parley/sessions"
	"parley/tools"
)

// An auditRecorder keeps the audit records of a test, and counts those that came before the call's result was in the
// log.
type auditRecorder struct {
	mu            sync.Mutex
	all           []sessions.AuditRecord
	recordedEarly int
	isLogged      func(call string) bool
}

func (r *auditRecorder) record(_ context.Context, record sessions.AuditRecord) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	record.Arguments = slices.Clone(record.Arguments)
	r.all = append(r.all, record)
	if !r.isLogged(record.Call) {
		r.recordedEarly++
	}
	return nil
}

// lossCounter counts the records that were lost, and nothing else.
type lossCounter struct{ lost atomic.Int32 }

func (*lossCounter) Turn(agent.EndedTurn)               {}
func (*lossCounter) Step()                              {}
func (*lossCounter) Tool(string, string, time.Duration) {}
func (*lossCounter) Batch(int, time.Duration)           {}
func (*lossCounter) Compaction(string)                  {}
func (l *lossCounter) ReadAloud(string)                 {}
func (l *lossCounter) SessionOpened(bool)               {}
func (l *lossCounter) AuditLost()                       { l.lost.Add(1) }
func (*lossCounter) Judged(string)                      {}

// secretHider takes out one secret.
type secretHider struct{}

func (secretHider) Text(text string) string { return strings.ReplaceAll(text, "my-secret", "***") }
func (h secretHider) JSON(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(h.Text(string(raw)))
}
func (h secretHider) Stream() func(string, bool) string {
	return func(piece string, _ bool) string { return h.Text(piece) }
}
func (h secretHider) JSONStream() func(string, bool) string { return h.Stream() }

// shellTool is a tool whose result has an exit code.
func shellTool() tools.Tool {
	type args struct {
		Command string `json:"command"`
	}
	return tools.New(tools.Spec{Name: "shell", Effect: tools.Once}, func(_ context.Context, _ tools.Call, a args) (any, error) {
		if a.Command == "slow" {
			return nil, tools.Errorf(tools.Timeout, "too slow")
		}
		return struct {
			ExitCode int    `json:"exit_code"`
			Stdout   string `json:"stdout"`
		}{3, "out"}, nil
	})
}

// Each call is recorded once its result is in the log: its arguments, the guard's decision, and how it ended.
func TestCallsAreAudited(t *testing.T) {
	b := newBench(t, singleCallModel(`shell {"command":"my-secret"}`, `shell {"command":"no"}`, `shell {"command":"slow"}`, `shell {"cmd":1}`, `shell {"command":"`+strings.Repeat("long ", 2000)+`"}`), shellTool())
	b.agent.Guard = func(_ context.Context, c tools.Call) tools.Verdict {
		switch {
		case strings.Contains(string(c.Args), "no"):
			return tools.Verdict{Decision: tools.Deny}
		case strings.Contains(string(c.Args), "long"):
			return tools.Verdict{Decision: tools.Ask}
		}
		return tools.Verdict{}
	}
	b.agent.Redact = secretHider{}
	var r auditRecorder
	r.isLogged = func(call string) bool { return strings.Contains(b.kinds("1"), "tool_result") }
	b.audit = r.record
	b.run()
	b.say("1", "ann", "go")
	b.reply()
	var got []string
	for _, a := range r.all {
		code := ""
		if a.ExitCode != nil {
			code = fmt.Sprint(" exit ", *a.ExitCode)
		}
		args := string(a.Arguments)
		if len(args) > 4096 || len(args) > 100 && !json.Valid(a.Arguments) {
			t.Errorf("%d bytes of arguments are recorded", len(args))
		}
		got = append(got, fmt.Sprintf("%s %s %.21s %s %s%s", a.By, a.Tool, args, a.Verdict, a.Result, code))
		if a.Kind != sessions.AuditTool || a.Agent != "main" || a.Session != "main:test:1" || a.Turn == "" || a.Call == "" || a.At.IsZero() {
			t.Errorf("a record is %+v", a)
		}
	}
	want := []string{
		`test:ann shell {"command":"***"} allow ok exit 3`, `test:ann shell {"command":"no"} deny permission_denied`, `test:ann shell {"command":"slow"} allow timeout`,
		`test:ann shell {"cmd":1} deny invalid_args`, `test:ann shell {"command":"long long ask permission_denied`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the records are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.recordedEarly > 0 {
		t.Errorf("%d records came before the result was in the log", r.recordedEarly)
	}
}

// A record that can't be kept fails no call. It is counted, and logged.
func TestALostAuditRecordIsCounted(t *testing.T) {
	b := newBench(t, singleCallModel(`shell {"command":"x"}`), shellTool())
	var told bytes.Buffer
	b.log = slog.NewTextHandler(&told, nil)
	seen := &lossCounter{}
	b.audit, b.observer = func(context.Context, sessions.AuditRecord) error { return errors.New("no room") }, seen
	stop := b.run()
	b.say("1", "ann", "go")
	if out := b.reply().Text; !strings.Contains(out, "exit_code") {
		t.Errorf("the model was told %s", out)
	}
	stop()
	if seen.lost.Load() != 1 || !strings.Contains(told.String(), "not in the audit") || strings.Contains(told.String(), `command`) {
		t.Errorf("%d are counted, and the log says %s", seen.lost.Load(), told.String())
	}
}
