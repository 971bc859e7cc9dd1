package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/agent/stream"
	"parley/agent/transcript"
	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/sessions"
	"parley/tools"
	"parley/tools/testrace"
)

// An instantServer is a model's server without a network, which answers once it has read the request.
type instantServer struct{ answer string }

func (i instantServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil { // as transports do
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(i.answer)),
	}, nil
}

// instantResponsesAnswer is an answer of the Responses API.
const instantResponsesAnswer = `data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"delta":"that is done"}

data: {"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":100,"output_tokens":10}}}

`

// instantModel returns a model that costs only the time of the client's own code.
func instantModel(t testing.TB, api openai.API) llm.Model {
	t.Helper()
	answer := instantResponsesAnswer
	if api != openai.APIResponses {
		answer = agenttest.Reply("that is done").Parts[0].Bytes
	}
	m, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1/v1", Name: "m", API: api, Transport: instantServer{answer}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// logOfSize returns a log of about that many bytes: messages, and calls with results of 1 KB.
func logOfSize(size int) []journal.Record {
	var records []journal.Record
	add := func(turn string, kind sessions.Kind, data any) *journal.Record {
		e := journal.NewEntry(turn, kind, data)
		e.N = int64(len(records) + 1)
		size -= len(e.Data)
		records = append(records, journal.NewRecord(e, data))
		return &records[len(records)-1]
	}
	for n := 0; size > 0; n++ {
		turn := fmt.Sprint("t", n)
		add(turn, sessions.KindTurnStarted, sessions.TurnStarted{Route: json.RawMessage(`{}`)})
		said := add(turn, sessions.KindUser, sessions.User{Name: "Ann", Text: strings.Repeat("what is there <to> be said? ", 10)})
		said.Cause, said.Person = turn, "test:ann"
		add(turn, sessions.KindToolUse, sessions.ToolUse{Name: "read_file", Args: json.RawMessage(`{"path":"a/b/c.txt"}`)}).Call = turn
		add(turn, sessions.KindToolResult, sessions.ToolResult{Content: json.RawMessage(`"` + strings.Repeat(`line of a file\n`, 64) + `"`)}).Call = turn
		add(turn, sessions.KindText, sessions.Text{Text: strings.Repeat("It says this. ", 20)})
		add(turn, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
	}
	return records
}

func toolSpecs() []tools.Spec {
	var all []tools.Spec
	for n := range 20 {
		all = append(all, tools.Spec{Name: fmt.Sprintf("tool_%02d", n), Description: strings.Repeat("Does something. ", 10),
			Schema: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"where"},"limit":{"type":"integer"}}}`)})
	}
	return all
}

// runModelCall does the process's own part of a model call: it renders the log, estimates its size, builds the request
// and reads the answer.
func runModelCall(ctx context.Context, m llm.Model, records []journal.Record, offered []tools.Spec) error {
	r := &llm.Request{System: strings.Repeat("You are Parley. ", 250), Tools: offered, Messages: transcript.Render(records, "", nil)}
	if transcript.Estimate(r) == 0 {
		return io.ErrUnexpectedEOF
	}
	_, err := m.Generate(ctx, r, func(llm.Delta) {})
	return err
}

// BenchmarkModelCall measures a model call without the network and the model.
func BenchmarkModelCall(b *testing.B) {
	for name, c := range map[string]struct {
		size int
		api  openai.API
	}{"20KB": {20_000, ""}, "2MB": {2_000_000, ""}, "20KB-responses": {20_000, openai.APIResponses}, "2MB-responses": {2_000_000, openai.APIResponses}} {
		b.Run(name, func(b *testing.B) {
			m, records, offered := instantModel(b, c.api), logOfSize(c.size), toolSpecs()
			b.ReportAllocs()
			for b.Loop() {
				if err := runModelCall(b.Context(), m, records, offered); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The memory of the process doesn't grow with the number of model calls.
func TestTenThousandModelCallsLeaveNothing(t *testing.T) {
	if testrace.Elsewhere(t) {
		return
	}
	for _, api := range []openai.API{openai.APIChat, openai.APIResponses} {
		t.Run(string(api), func(t *testing.T) { tenThousandCalls(t, instantModel(t, api)) })
	}
}

func tenThousandCalls(t *testing.T, m llm.Model) {
	t.Helper()
	records, offered := logOfSize(1000), toolSpecs()[:2]
	inUse := func(calls int) uint64 {
		for range calls {
			if err := runModelCall(t.Context(), m, records, offered); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := inUse(500)
	after := inUse(10_000)
	t.Logf("%d KB after 500 calls, %d KB after 10,500", before>>10, after>>10)
	if after > before+1<<20 {
		t.Errorf("10,000 calls have left %d KB", (after-before)>>10)
	}
}

// BenchmarkTokenToWatcher measures how long a piece of an answer takes from the server's bytes to a watcher of the
// session, over the embedded bus.
func BenchmarkTokenToWatcher(b *testing.B) {
	events, err := sqlitebus.Open(b.Context(), sqlitebus.Config{Path: filepath.Join(b.TempDir(), "bus.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Close()
	const session = "main:test:1"
	feed, err := events.Subscribe(b.Context(), bus.SessionFeed(session), 0)
	if err != nil {
		b.Fatal(err)
	}
	came := make(chan string, 1)
	go func() {
		for e, err := range feed {
			if err != nil {
				return
			}
			if e.Type == bus.BlockDelta {
				came <- e.Delta
			}
		}
	}()
	reader, writer := io.Pipe()
	m, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1/v1", Name: "m", Transport: streamingServer{reader}, Idle: time.Hour, FirstToken: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	out := stream.New(new(stream.Counter), 0, func(e bus.Event) {
		e.Session, e.Turn = session, "t"
		events.Emit(e)
	}, func(llm.BlockKind) func(string, bool) string { return func(p string, _ bool) string { return p } })
	done := make(chan error, 1)
	go func() {
		_, err := m.Generate(b.Context(), &llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}, out.Delta)
		done <- err
	}()
	piece := []byte(`data: {"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n")
	b.ResetTimer()
	var longest time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := writer.Write(piece); err != nil {
			b.Fatal(err)
		}
		<-came
		longest = max(longest, time.Since(began))
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
	b.StopTimer()
	if _, err := writer.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")); err != nil {
		b.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// A streamingServer writes its answer while it is read.
type streamingServer struct{ answer io.ReadCloser }

func (s streamingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: s.answer,
	}, nil
}
