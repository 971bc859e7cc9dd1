package api_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/channels/web"
	"parley/sessions"
	"parley/tools"
)

// A caller is a model that first calls tools, and then answers in several pieces.
type caller struct{ blocks []llm.Block }

func (caller) Info() llm.Info { return llm.Info{Name: "caller"} }

func (m caller) Generate(_ context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	r.Restore()
	a := &llm.Answer{Usage: llm.Usage{Input: 1, Output: 1}, Blocks: m.blocks}
	if last := r.Messages[len(r.Messages)-1]; last.Blocks[0].Kind == llm.BlockToolResult {
		a.Blocks = []llm.Block{{Kind: llm.BlockText, Text: "It is 45.6 degrees warm."}}
	}
	for i, b := range a.Blocks {
		name := b.Name
		for whole := b.Text + string(b.Args); whole != ""; whole = whole[min(7, len(whole)):] {
			emit(llm.Delta{Block: i, Kind: b.Kind, Name: name, Text: whole[:min(7, len(whole))]})
			name = ""
		}
	}
	return a, nil
}

// measuring returns a tool that returns a text. The tool fails if it runs before watchers have the event of its call.
func (x *rig) measuring() tools.Tool {
	return tools.New(tools.Spec{Name: "bash", Description: "x", Effect: tools.Once}, func(ctx context.Context, c tools.Call, _ struct {
		Command string `json:"command"`
	}) (any, error) {
		for e, err := range x.store.Read(ctx, c.Session, 1) {
			if err != nil || e.Kind == sessions.KindToolUse && e.Call == c.ID {
				return "temp=45.6°C", err
			}
		}
		return nil, tools.Errorf(tools.ExecutionFailed, "the log doesn't have the call")
	})
}

// use returns a call of bash with a command.
func use(command string) llm.Block {
	raw, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return llm.Block{Kind: llm.BlockToolUse, Name: "bash", Args: raw}
}

// streamed lets a model answer one message, and returns the events of the turn, except those of the person's words.
func (x *rig) streamed(m llm.Model) (happened []bus.Event) {
	x.t.Helper()
	x.workOn(x.bus, m, func(a *agent.Agent) { a.Tools = tools.NewSet(x.measuring()) })
	f := x.watch(watched, chatToken, "")
	defer f.close()
	f.must() // the snapshot
	if r := x.post(chatToken, `{"to": "agent", "text": "how warm is it?"}`); r.StatusCode != 202 {
		x.t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for {
		e := f.must()
		x.inLog(e)
		d := bus.Event{Type: e.kind}
		if err := json.Unmarshal([]byte(e.data), &d); err != nil {
			x.t.Fatal(err)
		}
		if d.Kind != string(sessions.KindUser) && (strings.HasPrefix(e.kind, "block_") || e.kind == bus.TurnComplete) {
			happened = append(happened, d)
		}
		if e.kind == bus.TurnComplete {
			return happened
		}
	}
}

// A turn with a tool call streams its blocks in the expected order. The log has each block before its block_stop, and
// the tool runs after the block of its call.
func TestTheStreamOfATurnWithATool(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Agent.Say = web.New(x.bus, "main").Say })
	var course []string
	texts := map[string]string{}
	happened := x.streamed(caller{[]llm.Block{use("vcgencmd measure_temp")}})
	for _, e := range happened {
		step := strings.TrimSpace(e.Type + " " + e.Kind)
		if e.Type == bus.BlockDelta {
			texts[e.Kind] += e.Delta
			if course[len(course)-1] == step {
				continue // another piece of the same block
			}
		}
		course = append(course, step)
	}
	want := []string{
		"block_start tool_use", "block_delta tool_use", "block_stop tool_use",
		"block_start tool_result", "block_delta tool_result", "block_stop tool_result",
		"block_start text", "block_delta text", "block_stop text", "turn_complete",
	}
	if !slices.Equal(course, want) {
		t.Errorf("streamed were %q, want %q", course, want)
	}
	for kind, want := range map[string]string{"tool_use": `{"command":"vcgencmd measure_temp"}`, "tool_result": `"temp=45.6°C"`, "text": "It is 45.6 degrees warm."} {
		if texts[kind] != want {
			t.Errorf("the %s is %s, want %s", kind, texts[kind], want)
		}
	}
}

// The results of several calls come after the calls, in the same order.
func TestTheStreamOfATurnWithSeveralCalls(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Agent.Say = web.New(x.bus, "main").Say })
	thought := llm.Block{Kind: llm.BlockThinking, Text: "Let me see.", Provider: json.RawMessage(`{"signature":"s"}`)}
	happened := x.streamed(caller{[]llm.Block{thought, {Kind: llm.BlockText, Text: "I look."}, use("a"), use("b"), use("c")}})
	byNumber := map[int]bus.Event{}
	for _, e := range happened {
		if e.Type == bus.BlockStop {
			byNumber[e.Block] = e
		}
	}
	var kinds, asked, answered []string
	for n := 1; n <= len(byNumber); n++ { // block 0 is what the person said
		e := byNumber[n]
		kinds = append(kinds, e.Kind)
		switch e.Kind {
		case "tool_use":
			asked = append(asked, e.Call)
		case "tool_result":
			answered = append(answered, e.Call)
			if e.Detail == nil || e.Failed {
				t.Errorf("the result is %+v", e.Detail)
			}
		}
	}
	want := []string{"thinking", "text", "tool_use", "tool_use", "tool_use", "tool_result", "tool_result", "tool_result", "text"}
	if !slices.Equal(kinds, want) || !reflect.DeepEqual(asked, answered) {
		t.Errorf("the blocks are %q of the calls %q and %q, want %q", kinds, asked, answered, want)
	}
}
