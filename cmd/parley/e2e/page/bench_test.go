package page

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdpio "github.com/chromedp/cdproto/io"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// entriesOf returns the log of a session with this many turns of six entries each. A turn includes a call with its
// result, and an answer.
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

// keeps makes a stage serve these entries as its session's log.
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

// snapshot sends a snapshot with the newest turns of a log, as the server does.
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

// longTasks makes a tab record the length of each task that blocked the page for more than 50 ms.
const longTasks = `(window.tasks = [], new PerformanceObserver(l => window.tasks.push(...l.getEntries().map(e => e.duration))).observe({type: 'longtask'}), true)`

// traceCategories are the categories of a trace: the tasks of threads, and what runs in the tasks, including garbage
// collection.
var traceCategories = &tracing.TraceConfig{IncludedCategories: []string{"devtools.timeline", "disabled-by-default-devtools.timeline", "v8"}, ExcludedCategories: []string{"*"}}

// trace starts a trace of the browser. The function that it returns ends the trace, and returns what the tab's page
// did.
func (x *tab) trace() (end func() []traced) {
	command(x, tracing.Start, tracing.StartParams{TransferMode: tracing.StartTransferModeReturnAsStream, TraceConfig: traceCategories})
	eval[bool](x, "(console.timeStamp('this page'), true)")
	return func() []traced {
		done, stop := iter.Pull2(chromedp.Events(x.ctx, tracing.TracingComplete))
		defer stop()
		command(x, tracing.End, cdp.Empty{})
		e, err, _ := done()
		if err != nil {
			x.t.Fatal(err)
		}
		var raw []byte
		for {
			part := command(x, cdpio.Read, cdpio.ReadParams{Handle: e.Stream, Size: 1 << 20})
			if raw = append(raw, part.Data...); part.EOF {
				break
			}
		}
		var all struct{ TraceEvents []traced }
		if err := json.Unmarshal(raw, &all); err != nil {
			x.t.Fatal(err)
		}
		return ofThisPage(all.TraceEvents)
	}
}

// ofThisPage returns the events of the thread that recorded the beginning of the trace, because other tabs may be open.
func ofThisPage(all []traced) []traced {
	n := slices.IndexFunc(all, func(e traced) bool { return e.Name == "TimeStamp" })
	if n < 0 {
		return nil
	}
	noted := all[n]
	return slices.DeleteFunc(all, func(e traced) bool { return e.Pid != noted.Pid || e.Tid != noted.Tid })
}

// command sends a command to a tab's browser, and returns the result.
func command[P, R any](x *tab, c cdp.Command[P, R], params P) (result R) {
	x.t.Helper()
	x.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
		result, err = cdp.Call(ctx, t, c, params)
		return err
	}))
	return result
}

// A traced is an event of a trace: a task of a thread, or something that ran in a task. Times are in microseconds; Tdur
// excludes the time for which the thread waited for a processor.
type traced struct {
	Name          string
	Pid, Tid      int
	Ts, Dur, Tdur float64
}

// longestTask returns the longest working time of a task in milliseconds, and a description of what ran in that task.
func longestTask(all []traced) (ms float64, what string) {
	var longest traced
	for _, e := range all {
		if e.Name == "RunTask" && e.Tdur > longest.Tdur {
			longest = e
		}
	}
	ran := map[string]float64{}
	for _, e := range all {
		if e.Name != "RunTask" && e.Ts >= longest.Ts && e.Ts < longest.Ts+longest.Dur {
			ran[e.Name] += e.Tdur / 1000
		}
	}
	names := slices.SortedFunc(maps.Keys(ran), func(a, b string) int { return cmp.Compare(ran[b], ran[a]) })
	for _, name := range names[:min(6, len(names))] {
		what += fmt.Sprintf(", %s %.1f", name, ran[name])
	}
	return longest.Tdur / 1000, fmt.Sprintf("%.1f ms of work in %.1f ms%s", longest.Tdur/1000, longest.Dur/1000, what)
}

// BenchmarkALongConversation opens the page with a session, and adds turns until the page holds its maximum. Then it
// loads all 10,000 earlier entries, and finally streams an answer with 200 tokens a second for ten seconds. When the
// answer begins, the page drops the earlier entries and the oldest turns. The benchmark reports when the page first
// showed something, the longest task of each part that blocked the page (0 if none took longer than 50 ms), and the
// longest working time of a task. On a busy machine, a task takes longer than its working time.
func BenchmarkALongConversation(b *testing.B) {
	const turns, newest, tokens = 10_000 / 6, 32, 2000
	entries := entriesOf(turns)
	worst := map[string]float64{} // the worst values of all rounds
	report := func(unit string, ms float64) {
		worst[unit] = max(worst[unit], ms)
		b.ReportMetric(worst[unit], unit)
	}
	for b.Loop() {
		s := newStage(b)
		s.keeps(entries)
		x := s.open(newBrowser(b))
		eval[bool](x, longTasks)
		end := x.trace()
		longest := func(unit string) {
			report("longest-ms-"+unit, eval[float64](x, "Math.max(0, ...window.tasks)"))
			ms, what := longestTask(end())
			report("longest-work-ms-"+unit, ms)
			b.Logf("%s: %s", unit, what)
			eval[bool](x, "(window.tasks = [], true)")
			end = x.trace()
		}
		s.snapshot(entries[len(entries)-6*newest:])
		x.waitText(".answer", fmt.Sprintf("File %d", turns-1))
		report("first-paint-ms", eval[float64](x, "performance.getEntriesByName('first-contentful-paint')[0].startTime"))
		longest("open")
		for n := range mostTurns - newest {
			s.tell(0, "turn_start", fmt.Sprintf(`{"turn":"l%d","causes":["x%[1]d"]}`, n))
			for _, step := range []string{"start", "delta", "stop"} {
				s.tell(0, "block_"+step, fmt.Sprintf(`{"turn":"l%d","block":0,"kind":"text","delta":"Short %[1]d."}`, n))
			}
			s.tell(0, "turn_complete", fmt.Sprintf(`{"turn":"l%d","causes":["x%[1]d"]}`, n))
		}
		x.waitText(".answer", fmt.Sprintf("Short %d.", mostTurns-newest-1))
		longest("live")
		for parts := 1; eval[bool](x, "!!document.querySelector('.earlier')"); parts++ {
			x.press("Show earlier messages")
			x.wait("earlier messages", fmt.Sprintf("document.querySelectorAll('.earlier-part').length >= %d", parts))
		}
		x.waitText(".answer", "File 0")
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
		x.wait("the oldest to leave", fmt.Sprintf("document.querySelectorAll('.turn').length === %d", keptTurns))
		longest("stream")
		end()
	}
}
