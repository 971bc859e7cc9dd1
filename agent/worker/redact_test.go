package worker_test

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/tools"
	"parley/tools/redact"
)

const swordfish = "swordfish-and-a-number-4711"

// A spellingModel emits its answer a few letters at a time.
type spellingModel struct{ model }

func (m spellingModel) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	a, err := m.model(ctx, *r)
	for i, b := range a.Blocks {
		name := b.Name
		for text := b.Text + string(b.Args); text != ""; text = text[min(3, len(text)):] {
			emit(llm.Delta{Block: i, Kind: b.Kind, Name: name, Text: text[:min(3, len(text))]})
			name = ""
		}
	}
	return &a, err
}

// No output of an agent contains a secret: not its answer, in pieces and complete, nor messages, results, arguments,
// progress, errors and the session's log.
func TestNoSecretLeavesAnAgent(t *testing.T) {
	leak := tools.New(tools.Spec{Name: "leak", Description: "x", Effect: tools.Once},
		func(_ context.Context, c tools.Call, a struct {
			Path string `json:"path"`
		}) (any, error) {
			c.Progress("at " + swordfish + " now")
			c.Progress("building step 3 of 4") // a key may begin with a number
			c.Progress("-----BEGIN RSA PRIVATE KEY-----")
			c.Progress("MIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi")
			c.Progress("-----END RSA PRIVATE KEY-----")
			c.Progress("building step 4 of 4")
			if a.Path == "fail" {
				return nil, errors.New("no such thing: " + swordfish)
			}
			return map[string]string{"out": "it is " + swordfish, "coded": base64.StdEncoding.EncodeToString([]byte("x:" + swordfish))}, nil
		})
	m := model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`leak {"path":"`+swordfish+`"}`, `leak {"path":"fail"}`), nil
		}
		return textAnswer("I know " + swordfish + ", " + strings.Join(toolResults(r), " ")), nil
	})
	b := newBench(t, m, leak)
	b.agent.Model = spellingModel{m}
	r, err := redact.New([]string{swordfish}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.agent.Redact = r
	var mu sync.Mutex
	var seen strings.Builder
	var deltas strings.Builder
	var progress []string
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	feed, err := b.bus.Subscribe(ctx, bus.SessionFeed("main:test:1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for e, err := range feed {
			if err != nil {
				return
			}
			mu.Lock()
			if e.Type == bus.ToolProgress {
				progress = append(progress, e.Delta)
			}
			deltas.WriteString(e.Delta)
			seen.WriteString(e.Delta + "\n")
			if e.Detail != nil {
				seen.WriteString(string(e.Input) + "\n")
			}
			if e.Error != nil {
				seen.WriteString(e.Error.Message + "\n")
			}
			mu.Unlock()
			if e.Type == bus.TurnComplete {
				return
			}
		}
	}()
	b.run()
	b.say("1", "ann", "go and find "+swordfish)
	out := b.reply().Text
	<-over
	if strings.Contains(out, "swordfish") || strings.Contains(out, base64.StdEncoding.EncodeToString([]byte("x:" + swordfish))[8:24]) || !strings.HasPrefix(out, "I know [redacted], ") {
		t.Errorf("it said %s", out)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, report := range []string{"at [redacted] now", "building step 3 of 4", "building step 4 of 4"} {
		if !slices.Contains(progress, report) {
			t.Errorf("the reports of progress were %q: %q is missing", progress, report)
		}
	}
	if strings.Contains(seen.String(), "MIIEow") || strings.Contains(seen.String(), "sword") || strings.Contains(deltas.String(), "swordfish") || !strings.Contains(deltas.String(), "I know [redacted], ") || !strings.Contains(seen.String(), "no such thing: [redacted]") ||
		!strings.Contains(seen.String(), "go and find [redacted]\n") || !strings.Contains(seen.String(), `{"path":"[redacted]"}`+"\n") || !strings.Contains(seen.String(), `"out":"it is [redacted]"`) {
		t.Errorf("the events say\n%s\n%s", deltas.String(), seen.String())
	}
	for e, err := range b.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != "tool_use" && e.Kind != "user" && strings.Contains(string(e.Data), "swordfish") { // what people say, and what the model itself wants done, stays as it is
			t.Errorf("the log has %s: %s", e.Kind, e.Data)
		}
	}
}

// An agent without a Redactor shows everything.
func TestWithoutARedactor(t *testing.T) {
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer(swordfish), nil })
	var none agent.Redactor
	b.agent.Redact = none
	b.run()
	b.wantReply(b.say("1", "ann", "go"), swordfish)
}
