package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/agent/llm"
	"parley/sessions"
	"parley/tools/testlog"
)

// watchLog has the bench write a log, and returns a function that waits until n lines with one of these
// messages are there and returns them.
func watchLog(t *testing.T, b *bench, messages ...string) (lines func(n int) []map[string]any, raw *testlog.Buffer) {
	t.Helper()
	raw = &testlog.Buffer{}
	b.log = slog.NewJSONHandler(raw, nil)
	return func(n int) (found []map[string]any) {
		t.Helper()
		b.settled()
		for scan := bufio.NewScanner(strings.NewReader(raw.String())); scan.Scan(); {
			line := map[string]any{}
			if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(messages, fmt.Sprint(line["msg"])) {
				found = append(found, line)
			}
		}
		if len(found) != n {
			t.Fatalf("%d lines, want %d:\n%s", len(found), n, raw.String())
		}
		return found
	}, raw
}

// wantValues fails the test unless a line of the log has these values.
func wantValues(t *testing.T, line map[string]any, values map[string]any) {
	t.Helper()
	for name, value := range values {
		if fmt.Sprint(line[name]) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v, in %v", name, line[name], value, line)
		}
	}
}

// The log has one line for the beginning of a turn and one for its end, with its usage and without its texts; the audit
// has a record of it.
func TestATurnIsLoggedAndNoted(t *testing.T) {
	b := newBench(t, singleCallModel(`shell {"command":"my-words"}`), shellTool())
	b.agent.Model = pricedModel{b.agent.Model}
	lines, raw := watchLog(t, b, "turn begins", "turn ended")
	var mu sync.Mutex
	var noted []sessions.AuditRecord
	b.note = func(r sessions.AuditRecord) {
		mu.Lock()
		defer mu.Unlock()
		noted = append(noted, r)
	}
	b.run()
	id := b.say("1", "ann", "my-words")
	b.reply()
	both := lines(2)
	wantValues(t, both[0], map[string]any{"msg": "turn begins", "turn": id, "session": "main:test:1", "agent": "main", "model": "scripted", "person": "test:ann", "messages": 1})
	wantValues(t, both[1], map[string]any{
		"msg": "turn ended", "level": "INFO", "turn": id, "session": "main:test:1", "agent": "main", "model": "scripted", "state": "done",
		"model_calls": 2, "calls": 1, "input": 20, "output": 10, "microdollars": 14, "code": nil,
	})
	if strings.Contains(raw.String(), "my-words") {
		t.Errorf("the log has what was said: %s", raw.String())
	}
	mu.Lock()
	defer mu.Unlock()
	if len(noted) != 1 {
		t.Fatalf("noted %+v", noted)
	}
	r := noted[0]
	if r.Kind != sessions.AuditTurn || r.Turn != id || r.By != "test:ann" || r.Session != "main:test:1" || r.Result != "done" || r.Used == nil ||
		r.Used.ModelCalls != 2 || r.Used.Calls != 1 || r.Used.Input != 20 || r.Used.Cost == nil || *r.Used.Cost != 14 || r.At.IsZero() {
		t.Errorf("noted %+v with %+v", r, r.Used)
	}
}

// pricedModel is a model whose answers cost 7 millionths of a dollar each.
type pricedModel struct{ llm.Model }

func (p pricedModel) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	answer, err := p.Model.Generate(ctx, r, emit)
	if err == nil {
		answer.Usage.Priced, answer.Usage.Cost = true, 7
	}
	return answer, err
}

// A turn that a limit refuses has one line and one record, which name the rule.
func TestARefusedTurnIsLoggedAndNoted(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) { return textAnswer("yes"), nil })
	b.limit.TurnsHour = 1
	lines, raw := watchLog(t, b, "turn begins", "turn ended", "message refused")
	var mu sync.Mutex
	var noted []sessions.AuditRecord
	b.note = func(r sessions.AuditRecord) {
		mu.Lock()
		defer mu.Unlock()
		noted = append(noted, r)
	}
	b.run()
	b.say("1", "ann", "first")
	b.reply()
	id := b.say("1", "ann", "my-words")
	b.reply()
	all := lines(3)
	wantValues(t, all[2], map[string]any{"msg": "message refused", "id": id, "person": "test:ann", "rule": "too_many_turns", "session": "main:test:1"})
	if strings.Contains(raw.String(), "my-words") {
		t.Errorf("the log has what was said: %s", raw.String())
	}
	mu.Lock()
	defer mu.Unlock()
	if len(noted) != 2 || noted[1].Kind != sessions.AuditRefusal || noted[1].Result != "too_many_turns" || noted[1].Turn != id || noted[1].Address != "test:1" ||
		!slices.Equal(noted[1].Messages, []string{id}) {
		t.Errorf("noted %+v", noted)
	}
}

// The end of a turn that fails says why, as a warning.
func TestAFailedTurnIsLogged(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return llm.Answer{}, &llm.Error{Fault: llm.Rejected, Status: 400}
	})
	lines, _ := watchLog(t, b, "turn ended")
	b.run()
	id := b.say("1", "ann", "hello")
	b.reply()
	end := lines(1)[0]
	wantValues(t, end, map[string]any{"level": "WARN", "turn": id, "state": "failed"})
	if end["code"] == nil {
		t.Errorf("it does not say why: %v", end)
	}
}
