package page

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// handTimers makes new timers of a tab that wait for seconds run only when the test says so. window.timers contains
// these timers.
const handTimers = `(window.timers = new Map(), (() => {
	let last = 1e6;
	const set = (real, repeats) => (run, ms) => (ms >= 1000 ? (window.timers.set(++last, {run, ms, repeats}), last) : real(run, ms));
	const clear = real => id => window.timers.delete(id) || real(id);
	window.setTimeout = set(window.setTimeout.bind(window), false);
	window.setInterval = set(window.setInterval.bind(window), true);
	window.clearTimeout = clear(window.clearTimeout.bind(window));
	window.clearInterval = clear(window.clearInterval.bind(window));
})(), true)`

// While the server is away, a view tries again at each tick of its clock, and soon after a failed request. It does not
// send more and more requests.
func TestAnOutageDoesNotMultiplyRequests(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var asked atomic.Int64
	s.jobs = func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	x := s.open(newBrowser(t))
	x.forgive("503")
	<-s.lastID
	eval[bool](x, handTimers)
	eval[bool](x, "(location.hash = '#/jobs', true)")
	const retries = "[...window.timers].filter(([, t]) => !t.repeats && t.ms === 5000)"
	x.wait("the first retry", retries+".length === 1")
	const ticks = 4
	for n := range ticks {
		if before := asked.Load(); before != int64(n)+1 {
			t.Fatalf("%d requests after %d ticks", before, n)
		}
		// The promise of a request settles some time after its answer arrives, which the next timer shows.
		const newestRetry = "Math.max(..." + retries + ".map(([id]) => id))"
		newest := eval[int](x, newestRetry)
		eval[bool](x, "(window.timers.forEach(t => t.repeats && t.ms === 15000 && t.run()), true)")
		x.wait("the next retry", fmt.Sprintf("%s > %d", newestRetry, newest))
		if waiting := eval[int](x, retries+".length"); waiting != 1 {
			t.Fatalf("%d retries wait after %d ticks", waiting, n+1)
		}
	}
	eval[bool](x, "("+retries+".forEach(([id, t]) => (window.timers.delete(id), t.run())), true)")
	x.wait("what follows the retry", retries+".length === 1")
	if n := asked.Load(); n != ticks+2 {
		t.Errorf("%d requests after %d ticks and a retry", n, ticks)
	}
}

// If the page could not read the tasks or jobs of a conversation, it reads them again without a new event, whether a
// list or a single item failed.
func TestWhatFailsBesideATurnIsReadAgain(t *testing.T) {
	t.Parallel()
	const (
		about    = `"id":"a","parent":"main:web:owner:x","session":"helper:agent:p:a","turn":"t1","call":"k1","agent":"helper","title":"Look.","awaited":true,"stopping":false,"started":"2026-01-02T03:04:05Z","usage":{"calls":2,"input":1000,"output":20}`
		snapshot = `{"turns":[{"turn":"t1","causes":["m1"],"state":"running"}],"blocks":[{"turn":"t1","block":0,"kind":"tool_use","tool":"task","call":"k1","text":"","input":{},"done":true}]}`
	)
	s := newStage(t)
	var lists, ones atomic.Int64
	second := func(count *atomic.Int64, status int, text string) http.HandlerFunc { // it fails the first time
		return func(w http.ResponseWriter, _ *http.Request) {
			if count.Add(1) == 1 {
				w.WriteHeader(status)
				return
			}
			_, _ = w.Write([]byte(text))
		}
	}
	s.tasks = second(&lists, http.StatusServiceUnavailable, `{"tasks":[{`+about+`,"state":"running"}],"more":false}`)
	s.mux.HandleFunc("GET /v1/tasks/a", second(&ones, http.StatusTooManyRequests, `{`+about+`,"state":"done","ended":"2026-01-02T03:05:05Z"}`))
	x := s.open(newBrowser(t))
	x.forgive("503")
	x.forgive("429")
	<-s.lastID
	eval[bool](x, "(later => (window.setTimeout = (run, ms) => later(run, ms === 5000 ? 0 : ms), true))(window.setTimeout)")
	s.tell(0, "snapshot", snapshot)
	x.waitText(".beside.task.running", "working")
	s.happens("task", `{"session":"main:web:owner:x","id":"a","state":"done"}`)
	x.waitText(".beside.task.ok", "done")
	if lists.Load() != 2 || ones.Load() != 2 {
		t.Errorf("the lists were read %d times, and the task %d times", lists.Load(), ones.Load())
	}
}
