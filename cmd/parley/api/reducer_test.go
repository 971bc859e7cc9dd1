package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/agent"
	"parley/agent/blocks"
	"parley/agent/llm"
	"parley/bus"
	"parley/bus/redisbus"
	"parley/channels/web"
	"parley/sessions"
	"parley/tools"
	"parley/tools/redact"
)

// A seenBlock is a block as a client shows it.
type seenBlock struct {
	Kind, Text, Tool, Call, Input string
	bus.Detail
	Done bool
}

// A client shows a conversation by the rules of docs/http.md, from any number of streams.
type client struct {
	lastID string
	state  map[string]string // by turn
	blocks map[string]map[int]seenBlock
}

func newClient() *client {
	return &client{state: map[string]string{}, blocks: map[string]map[int]seenBlock{}}
}

// over reports whether a turn has ended.
func (c *client) over() bool { return slices.Contains(slices.Collect(maps.Values(c.state)), "over") }

func (c *client) take(t testing.TB, e frame) {
	t.Helper()
	if e.id != "" {
		c.lastID = e.id
	}
	if e.kind == "snapshot" {
		c.replace(t, e)
		return
	}
	var d bus.Event
	if err := json.Unmarshal([]byte(e.data), &d); err != nil {
		t.Fatal(err)
	}
	turn := c.blocks[d.Turn]
	if turn == nil {
		turn = map[int]seenBlock{}
		c.blocks[d.Turn], c.state[d.Turn] = turn, "running"
	}
	b := turn[d.Block]
	switch e.kind {
	case bus.BlockStart:
		turn[d.Block] = seenBlock{Kind: d.Kind}.with(d)
	case bus.BlockDelta:
		b.Kind, b.Text = d.Kind, b.Text+d.Delta
		turn[d.Block] = b
	case bus.BlockStop:
		b.Kind, b.Done = d.Kind, true
		turn[d.Block] = b.with(d)
	case bus.BlockReset:
		maps.DeleteFunc(turn, func(n int, _ seenBlock) bool { return n >= d.Block })
	case bus.TurnComplete, bus.TurnError:
		c.state[d.Turn] = "over"
		maps.DeleteFunc(turn, func(_ int, b seenBlock) bool { return !b.Done })
	}
}

// with adds what an event says about its block besides the text.
func (b seenBlock) with(d bus.Event) seenBlock {
	b.Tool, b.Call = d.Tool, d.Call
	if d.Detail == nil {
		return b
	}
	if d.Input != nil {
		b.Input, b.Text = string(d.Input), ""
	}
	b.Failed, b.Cut, b.Reason = b.Failed || d.Failed, b.Cut || d.Cut, cmp.Or(d.Reason, b.Reason)
	b.Metadata = cmp.Or(d.Metadata, b.Metadata)
	if d.Cause != "" {
		b.Cause, b.Name = d.Cause, d.Name
	}
	return b
}

func (c *client) replace(t testing.TB, e frame) {
	t.Helper()
	var snap struct {
		Turns  []struct{ Turn, State string }
		Blocks []struct {
			Turn  string
			Block int
			Kind  string
			Text  string
			Tool  string
			Call  string
			bus.Detail
			Done bool
		}
	}
	if err := json.Unmarshal([]byte(e.data), &snap); err != nil {
		t.Fatal(err)
	}
	clear(c.blocks)
	clear(c.state)
	for _, turn := range snap.Turns {
		c.blocks[turn.Turn], c.state[turn.Turn] = map[int]seenBlock{}, "running"
		if turn.State != "running" && turn.State != "parked" {
			c.state[turn.Turn] = "over"
		}
	}
	for _, b := range snap.Blocks {
		seen := seenBlock{Kind: b.Kind, Text: b.Text, Tool: b.Tool, Call: b.Call, Input: string(b.Input), Detail: b.Detail, Done: b.Done}
		seen.Detail.Input = nil
		c.blocks[b.Turn][b.Block] = seen
	}
}

// secret is a text that nobody may see.
const secret = "swordfish-and-a-number-4711"

// A talker is a model that answers with two calls, and writes one piece for each value of next. The first call
// returns a long text, the second fails.
type talker struct{ next chan struct{} }

func (talker) Info() llm.Info { return llm.Info{Name: "talker"} }

func (m talker) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	r.Restore()
	a := &llm.Answer{Usage: llm.Usage{Input: 1, Output: 1}}
	a.Blocks = []llm.Block{
		{Kind: llm.BlockThinking, Text: "I know " + secret + ". Let me look."},
		{Kind: llm.BlockText, Text: "I look, and say nothing of " + secret + "."},
		{Kind: llm.BlockToolUse, Name: "long", Args: json.RawMessage(`{"of": "` + secret + `"}`)},
		{Kind: llm.BlockToolUse, Name: "fail", Args: json.RawMessage(`{}`)},
	}
	if last := r.Messages[len(r.Messages)-1]; last.Blocks[0].Kind == llm.BlockToolResult {
		a.Blocks = []llm.Block{{Kind: llm.BlockText, Text: "One was long, and one has failed."}}
	}
	for i, b := range a.Blocks {
		name := b.Name
		for whole := b.Text + string(b.Args); whole != ""; whole = whole[min(7, len(whole)):] {
			select {
			case <-m.next:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			emit(llm.Delta{Block: i, Kind: b.Kind, Name: name, Text: whole[:min(7, len(whole))]})
			name = ""
		}
	}
	return a, nil
}

// A client shows the same conversation whether it watches from the beginning, is cut off after each event, or comes
// at any later time, with SQLite and with Redis. No stream shows a secret, and each ended block is in the log.
func TestOneReducerShowsTheSameConversation(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { watchInAllWays(t, func(x *rig) mover { return x.bus }) })
	t.Run("Redis", func(t *testing.T) {
		url := os.Getenv("PARLEY_TEST_REDIS_URL")
		if url == "" {
			t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
		}
		watchInAllWays(t, func(x *rig) mover {
			b, err := redisbus.Open(t.Context(), redisbus.Config{URL: url, Prefix: fmt.Sprintf("reducer%d", os.Getpid())})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			return b
		})
	})
}

func watchInAllWays(t *testing.T, open func(*rig) mover) {
	hidden, err := redact.New([]string{secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var moves mover
	x := newRig(t, func(x *rig) {
		moves = open(x)
		x.cfg.Events, x.cfg.Agent.Say, x.cfg.Redact = moves, web.New(moves, "main").Say, func() blocks.Redactor { return hidden }
	})
	m := talker{make(chan struct{})}
	x.workOn(moves, m, func(a *agent.Agent) { a.Tools, a.Redact = tools.NewSet(long(), fail()), hidden })

	whole, cut := newClient(), newClient()
	uncut, cutting := x.watch(watched, chatToken, ""), x.watch(watched, chatToken, "")
	whole.take(t, uncut.must())
	cut.take(t, cutting.must())
	if r := x.post(chatToken, `{"to": "agent", "text": "look for `+secret+`"}`); r.StatusCode != 202 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	news := make(chan frame)
	go func() {
		defer close(news)
		for e, err := uncut.next(); err == nil; e, err = uncut.next() {
			news <- e
		}
	}()
	defer func() {
		uncut.close()
		for range news {
			continue
		}
	}()
	var happened []frame
	var late []*feed // one stream opened after each event
	for !whole.over() {
		var e frame
		select {
		case m.next <- struct{}{}:
			continue
		case e = <-news:
		}
		happened = append(happened, e)
		whole.take(t, e)
		x.inLog(e)
		late = append(late, x.watch(watched, chatToken, ""))
		if cutting == nil {
			cutting = x.watch(watched, chatToken, cut.lastID)
		}
		cut.take(t, cutting.must())
		if cut.lastID != "" {
			cutting.close()
			cutting = nil
		}
	}
	for !cut.over() {
		cutting = x.watch(watched, chatToken, cut.lastID)
		cut.take(t, cutting.must())
		cutting.close()
	}
	whole.wantSame(t, "cut off after each event", cut)
	late = append(late, x.watch(watched, chatToken, "1")) // from an id that is no longer held
	for i, f := range late {
		c := newClient()
		for !c.over() {
			e := f.must()
			if strings.Contains(e.data, "sword") || strings.Contains(e.data, "4711") {
				t.Errorf("a late one saw %s", e.data)
			}
			c.take(t, e)
		}
		f.close()
		whole.wantSame(t, fmt.Sprintf("came after event %d", i), c)
	}
	wantConversation(t, happened, whole)
}

// long returns a tool whose result is longer than what watchers see of it.
func long() tools.Tool {
	return tools.New(tools.Spec{Name: "long", Description: "x", Effect: tools.Once}, func(_ context.Context, _ tools.Call, _ struct {
		Of string `json:"of"`
	}) (any, error) {
		return secret + strings.Repeat(" word", blocks.MostOfCall/4), nil
	})
}

// fail returns a tool that always fails.
func fail() tools.Tool {
	return tools.New(tools.Spec{Name: "fail", Description: "x", Effect: tools.Once}, func(context.Context, tools.Call, struct{}) (any, error) {
		return nil, errors.New("no such thing as " + secret)
	})
}

// inLog fails the test if an event ends a block that the log doesn't have yet.
func (x *rig) inLog(e frame) {
	x.t.Helper()
	if e.kind != bus.BlockStop {
		return
	}
	var d bus.Event
	if err := json.Unmarshal([]byte(e.data), &d); err != nil {
		x.t.Fatal(err)
	}
	for entry, err := range x.store.Read(x.t.Context(), watched, 1) {
		if err != nil {
			x.t.Fatal(err)
		}
		if entry.Turn == d.Turn && entry.Kind == sessions.Kind(d.Kind) && entry.Call == d.Call {
			return
		}
	}
	x.t.Errorf("the log does not have what %s %s ends", e.kind, e.data)
}

// wantSame fails the test unless another client shows the same conversation.
func (c *client) wantSame(t *testing.T, how string, other *client) {
	t.Helper()
	if !reflect.DeepEqual(c.blocks, other.blocks) || !reflect.DeepEqual(c.state, other.state) {
		t.Errorf("who %s shows\n%+v %v\nand who has seen all\n%+v %v", how, other.blocks, other.state, c.blocks, c.state)
	}
}

// wantConversation checks the order of the events and the conversation that the client shows in the end.
func wantConversation(t *testing.T, happened []frame, c *client) {
	t.Helper()
	var course []string
	for _, e := range happened {
		if strings.Contains(e.data, "sword") || strings.Contains(e.data, "4711") {
			t.Errorf("%s shows %s", e.kind, e.data)
		}
		var d bus.Event
		if err := json.Unmarshal([]byte(e.data), &d); err != nil {
			t.Fatal(err)
		}
		if step := strings.TrimPrefix(e.kind, "block_") + " " + d.Kind; !strings.HasPrefix(e.kind, "tool_") && e.kind != bus.Used && (len(course) == 0 || course[len(course)-1] != step) {
			course = append(course, step)
		}
	}
	result := "start tool_result|delta tool_result|stop tool_result|"
	want := "turn_start |start user|delta user|stop user|" +
		"start thinking|delta thinking|start text|delta text|start tool_use|delta tool_use|start tool_use|delta tool_use|" +
		"stop thinking|stop text|stop tool_use|" + result + result +
		"start text|delta text|stop text|turn_complete "
	if got := strings.Join(course, "|"); got != want {
		t.Errorf("what happened:\n%s\nwant\n%s", got, want)
	}
	for turn, all := range c.blocks {
		calls := []string{all[3].Call, all[4].Call}
		for n, b := range map[int]seenBlock{
			0: {Kind: "user", Text: "look for [redacted]", Detail: bus.Detail{Cause: turn, Name: "chat"}},
			1: {Kind: "thinking", Text: "I know [redacted]. Let me look."},
			2: {Kind: "text", Text: "I look, and say nothing of [redacted]."},
			3: {Kind: "tool_use", Tool: "long", Call: calls[0], Input: `{"of":"[redacted]"}`},
			4: {Kind: "tool_use", Tool: "fail", Call: calls[1], Input: `{}`},
			5: {Kind: "tool_result", Tool: "long", Call: calls[0], Text: all[5].Text, Detail: bus.Detail{Cut: true, Metadata: bus.ResultMetadata{Bytes: 20490, MIME: "text/plain"}}},
			6: {Kind: "tool_result", Tool: "fail", Call: calls[1], Text: `{"error":{"code":"execution_failed","message":"no such thing as [redacted]"}}`, Detail: bus.Detail{Failed: true, Reason: "execution_failed", Metadata: bus.ResultMetadata{Bytes: 27, MIME: "text/plain"}}},
			7: {Kind: "text", Text: "One was long, and one has failed."},
		} {
			if b.Done = true; !reflect.DeepEqual(all[n], b) {
				t.Errorf("block %d is %+v, want %+v", n, all[n], b)
			}
		}
		if text := all[5].Text; !json.Valid([]byte(text)) || len(text) > blocks.MostOfCall || len(text) < blocks.MostOfCall/2 || len(all) != 8 || calls[0] == calls[1] || calls[0] == "" {
			t.Errorf("%d blocks, and a result of %d bytes", len(all), len(text))
		}
	}
}
