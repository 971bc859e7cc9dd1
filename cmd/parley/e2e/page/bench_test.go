package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// entriesOf makes the log of a session with so many turns of six entries: a call with its result, and an answer.
func entriesOf(turns int) []map[string]any {
	var all []map[string]any
	add := func(turn int, kind string, data map[string]any, more ...string) {
		e := map[string]any{"n": len(all) + 1, "turn": fmt.Sprint("e", turn), "kind": kind, "at": "2026-01-02T03:04:05Z", "data": data}
		for i := 0; i < len(more); i += 2 {
			e[more[i]] = more[i+1]
		}
		all = append(all, e)
	}
	for n := range turns {
		call := fmt.Sprint("c", n)
		add(n, "turn_started", map[string]any{})
		add(n, "user", map[string]any{"text": fmt.Sprintf("what is in file %d?", n)}, "cause", fmt.Sprint("m", n))
		add(n, "tool_use", map[string]any{"name": "read_file", "args": map[string]any{"path": fmt.Sprintf("file%d.txt", n)}}, "call", call)
		add(n, "tool_result", map[string]any{"content": strings.Repeat("one line of the file\n", 20)}, "call", call)
		add(n, "text", map[string]any{"text": fmt.Sprintf("## File %d\n\nIt has **lines**:\n\n- one\n- two with `code`\n\n%s", n, strings.Repeat("And some words. ", 20))})
		add(n, "turn_done", map[string]any{"state": "done"})
	}
	return all
}

// keeps has a stage keep a session's log.
func (s *stage) keeps(entries []map[string]any) {
	s.sessions = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"sessions":[{"key":"main:web:owner:x","entries":%d,"created":"2026-01-02T03:04:05Z","updated":"2026-01-02T03:04:05Z"}]}`, len(entries))
	}
	s.mux.HandleFunc("GET /v1/sessions/{key}", func(w http.ResponseWriter, r *http.Request) { serveEntries(w, r, entries) })
}

// serveEntries answers a request for a part of a session's log.
func serveEntries(w http.ResponseWriter, r *http.Request, entries []map[string]any) {
	after, _ := strconv.Atoi(r.FormValue("after"))
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	after = min(after, len(entries))
	_ = json.NewEncoder(w).Encode(map[string]any{"last": len(entries), "entries": entries[after:min(after+limit, len(entries))]})
}

// snapshot tells a snapshot with the newest turns of a log, as the server does.
func (s *stage) snapshot(entries []map[string]any) {
	var turns, blocks []map[string]any
	for _, e := range entries {
		turn, data := e["turn"].(string), e["data"].(map[string]any)
		b := map[string]any{"turn": turn, "block": e["n"], "kind": e["kind"], "done": true, "call": e["call"]}
		switch e["kind"] {
		case "turn_started":
			turns = append(turns, map[string]any{"turn": turn, "causes": []string{"m" + turn[1:]}, "state": "done"})
			continue
		case "turn_done":
			continue
		case "user":
			b["cause"], b["text"] = e["cause"], data["text"]
		case "text":
			b["text"] = data["text"]
		case "tool_use":
			b["tool"], b["input"] = data["name"], data["args"]
		case "tool_result":
			raw, _ := json.Marshal(data["content"]) // it is a text
			b["text"] = string(raw)
		}
		blocks = append(blocks, b)
	}
	raw, _ := json.Marshal(map[string]any{"turns": turns, "blocks": blocks}) // it is made of texts
	s.tell(0, "snapshot", string(raw))
}

// longTasks has a tab note how long each task lasted that kept the page from acting for more than 50 ms.
const longTasks = `(window.tasks = [], new PerformanceObserver(l => window.tasks.push(...l.getEntries().map(e => e.duration))).observe({type: 'longtask'}), true)`

// BenchmarkALongConversation opens the page with a session, reads all its 10,000 entries back, and then has an
// answer come with 200 tokens a second, for ten seconds. It says when the page first showed something, and how long
// the longest task of each part kept the page from acting (0 if none took longer than 50 ms).
func BenchmarkALongConversation(b *testing.B) {
	const turns, newest, tokens = 10_000 / 6, 8, 2000
	entries := entriesOf(turns)
	for b.Loop() {
		s := newStage(b)
		s.keeps(entries)
		x := s.open(newBrowser(b))
		eval[bool](x, longTasks)
		longest := func(unit string) {
			b.ReportMetric(eval[float64](x, "Math.max(0, ...window.tasks)"), "longest-ms-"+unit)
			eval[bool](x, "(window.tasks = [], true)")
		}
		s.snapshot(entries[len(entries)-6*newest:])
		x.waitText(".answer", fmt.Sprintf("File %d", turns-1))
		b.ReportMetric(eval[float64](x, "performance.getEntriesByName('first-contentful-paint')[0].startTime"), "first-paint-ms")
		longest("open")
		for shown := newest; shown < turns; {
			x.press("Show earlier messages")
			x.wait("earlier messages", fmt.Sprintf("document.querySelectorAll('.turn').length > %d", shown))
			shown = eval[int](x, "document.querySelectorAll('.turn').length")
		}
		longest("earlier")
		s.tell(1, "turn_start", `{"turn":"t1","causes":["m"]}`)
		s.tell(2, "block_start", block(0, "text"))
		pace := time.NewTicker(time.Second / 200)
		for n := range tokens {
			s.tell(3+n, "block_delta", block(0, "text", "delta", quoted([]string{"a ", "word ", "and **bold** ", "more.\n\n"}[n%4])))
			<-pace.C
		}
		pace.Stop()
		s.tell(3+tokens, "block_delta", block(0, "text", "delta", `"the end"`))
		x.waitText(".answer", "the end")
		longest("stream")
	}
}
