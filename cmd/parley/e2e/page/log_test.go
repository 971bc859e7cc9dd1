package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"parley/channels/web/page"
	"parley/cmd/parley/parleytest"
)

// A stage serves the page and an API with one session. The test chooses when each event is sent, so it can play events
// that a real server sends only around a crash or a lost connection.
type stage struct {
	t      testing.TB
	url    string
	mux    *http.ServeMux
	frames chan string
	news   chan string // frames of the stream of the server's events
	lastID chan string // the Last-Event-ID of each new stream

	sessions, tasks, jobs http.HandlerFunc // handlers of the lists, which are empty by default
}

func newStage(t testing.TB) *stage {
	s := &stage{t: t, frames: make(chan string), news: make(chan string), lastID: make(chan string, 10), mux: http.NewServeMux()}
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		}
	}
	s.sessions = answer(`{"sessions":[]}`)
	mux := s.mux
	mux.Handle("/", page.New())
	mux.HandleFunc("GET /v1/me", answer(`{"name":"owner","owner":true,"scopes":[],"may":{"read":true,"agent":true,"approve":true,"admin":true}}`))
	mux.HandleFunc("GET /v1/sessions", func(w http.ResponseWriter, r *http.Request) { s.sessions(w, r) })
	mux.HandleFunc("GET /v1/asks", answer(`{"asks":[]}`))
	mux.HandleFunc("GET /v1/status", answer(`{}`))
	s.tasks, s.jobs = answer(`{"tasks":[],"more":false}`), answer(`{"jobs":[],"more":false}`)
	mux.HandleFunc("GET /v1/tasks", func(w http.ResponseWriter, r *http.Request) { s.tasks(w, r) })
	mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) { s.jobs(w, r) })
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) { serveFrames(w, r, s.news) })
	mux.HandleFunc("GET /v1/sessions/{key}/events", s.stream)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.CloseClientConnections)
	s.url = srv.URL
	return s
}

// stream sends frames until one of them is "cut".
func (s *stage) stream(w http.ResponseWriter, r *http.Request) {
	s.lastID <- r.Header.Get("Last-Event-ID")
	serveFrames(w, r, s.frames)
}

// serveFrames sends frames until one of them is "cut".
func serveFrames(w http.ResponseWriter, r *http.Request, frames <-chan string) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.Flush()
	for {
		select {
		case frame := <-frames:
			if frame == "cut" {
				return
			}
			_, _ = w.Write([]byte(frame))
			_ = control.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// tell sends an event of the session's stream; an id of 0 means none.
func (s *stage) tell(id int, kind, data string) {
	s.t.Helper()
	frame := fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data)
	if id > 0 {
		frame = fmt.Sprintf("id: %d\n", id) + frame
	}
	s.send(frame)
}

func (s *stage) send(frame string) {
	s.t.Helper()
	select {
	case s.frames <- frame:
	case <-s.t.Context().Done():
	}
}

// happens sends an event of the server's stream.
func (s *stage) happens(kind, data string) {
	s.t.Helper()
	select {
	case s.news <- fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data):
	case <-s.t.Context().Done():
	}
}

func (s *stage) open(b *browser) *tab {
	s.t.Helper()
	return b.open(s.url+"/#/chat/main%3Aweb%3Aowner%3Ax", 1280, 800)
}

// block returns the data of an event about a block of the turn t1.
func block(number int, kind string, more ...string) string {
	all := map[string]any{"turn": "t1", "block": number, "kind": kind}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = json.RawMessage(more[i+1])
	}
	raw, _ := json.Marshal(all) // it is made of texts
	return string(raw)
}

// A block that is void, that restarts, or that is sent again after a lost connection is shown once. An answer that
// comes both as a block and as a message is shown once, too, and the reply to a command is below the turn.
func TestNothingStandsTwice(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := s.open(newBrowser(t))
	if id := <-s.lastID; id != "" {
		t.Errorf("the first stream begins after %q", id)
	}
	const snapshot = `{"turns":[{"turn":"t1","causes":["m1"],"state":"running"}],"blocks":[
		{"turn":"t1","block":0,"kind":"user","text":"the question","cause":"m1","name":"Ann","done":true}]}`
	s.tell(0, "snapshot", strings.ReplaceAll(snapshot, "\n", ""))
	s.tell(1, "block_start", block(1, "text"))
	s.tell(2, "block_delta", block(1, "text", "delta", `"A wrong "`))
	s.tell(3, "block_reset", `{"turn":"t1","block":1}`)
	s.tell(4, "block_start", block(1, "thinking"))
	s.tell(5, "block_delta", block(1, "thinking", "delta", `"Hmm."`))
	s.tell(6, "block_stop", block(1, "thinking"))
	s.tell(7, "block_start", block(2, "text"))
	s.tell(8, "block_delta", block(2, "text", "delta", `"The ans"`))
	s.tell(9, "block_start", block(2, "text"))
	s.tell(10, "block_delta", block(2, "text", "delta", `"The answer."`))
	x.waitText(".answer", "The answer.")
	s.send("cut")
	if id := <-s.lastID; id != "10" {
		t.Errorf("the stream goes on after %q, want 10", id)
	}
	// The server no longer has the events since then. It sends a snapshot in their place, and the rest of the answer
	// without its beginning.
	s.tell(0, "snapshot", strings.ReplaceAll(snapshot, "\n", ""))
	s.tell(0, "block_delta", block(2, "text", "delta", `" And more."`))
	x.waitText(".answer", "… And more.")
	s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":["m1"],"state":"done"}],"blocks":[`+
		`{"turn":"t1","block":0,"kind":"user","text":"the question","cause":"m1","done":true},{"turn":"t1","block":1,"kind":"thinking","text":"Hmm.","done":true},`+
		`{"turn":"t1","block":2,"kind":"text","text":"The answer. And more.","done":true}]}`)
	s.tell(12, "turn_complete", `{"turn":"t1","causes":["m1"]}`)
	for range 2 {
		s.tell(13, "message", `{"turn":"t1","call":"t1#reply/0","delta":"The answer.\n\nAnd more."}`)
		s.tell(14, "message", `{"turn":"c1","call":"c1#reply/0","delta":"What a command says."}`)
	}
	x.waitText(".spoken", "What a command says.")
	x.wait("the end", "!document.querySelector('.standing .pulse')")
	for _, text := range []string{"the question", "The answer.", "And more.", "Hmm.", "What a command says."} {
		if n := strings.Count(eval[string](x, "document.querySelector('.scroll').textContent"), text); n != 1 {
			t.Errorf("%q stands %d times in %q", text, n, x.text(".scroll"))
		}
	}
	if all := x.text(".scroll"); strings.Contains(all, "wrong") {
		t.Errorf("what was void stands there: %q", all)
	}
}

// A hidden tab closes its stream, because a browser has few connections. When it is visible again, it continues where
// it was.
func TestAHiddenTabGivesItsStreamUp(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	s.tell(0, "snapshot", `{"turns":[],"blocks":[]}`)
	s.tell(7, "turn_start", `{"turn":"t1","causes":["m1"]}`)
	x.waitText(".standing", "Working")
	look := func(hidden string) {
		eval[bool](x, "(Object.defineProperty(document, 'hidden', {value: "+hidden+", configurable: true}), "+
			"Object.defineProperty(document, 'visibilityState', {value: "+hidden+" ? 'hidden' : 'visible', configurable: true}), "+
			"document.dispatchEvent(new Event('visibilitychange')), true)")
	}
	look("true")
	x.waitText(".head", "reconnecting")
	select {
	case <-s.lastID:
		t.Error("it comes again while nobody looks")
	default:
	}
	look("false")
	if id := <-s.lastID; id != "7" {
		t.Errorf("it goes on after %q", id)
	}
	s.tell(8, "message", `{"turn":"c1","call":"c1#reply/0","delta":"here again"}`)
	x.waitText(".spoken", "here again")
	if all := x.text(".head"); strings.Contains(all, "reconnecting") {
		t.Errorf("the head says %q", all)
	}
}

// The page shows a call while its input is written, while it runs and reports progress, and with its result. It says if
// a call has failed or if the outcome is unknown. Each call is shown once, whichever events arrive.
func TestCallsAreShownThroughTheirLives(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	s.tell(0, "snapshot", `{"turns":[],"blocks":[]}`)
	s.tell(1, "turn_start", `{"turn":"t1","causes":["m1"]}`)
	s.tell(2, "block_start", block(0, "tool_use", "tool", `"exec_shell"`))
	s.tell(3, "block_delta", block(0, "tool_use", "delta", `"{\"command\": \"make"`))
	x.wait("the call being written", "document.querySelector('.call.writing')")
	eval[bool](x, "(document.querySelector('.call').open = true)")
	x.waitText(".call-body", `{"command": "make`)
	s.tell(4, "block_stop", block(0, "tool_use", "tool", `"exec_shell"`, "call", `"k1"`, "input", `{"command":"make test"}`))
	x.waitText(".call-body", `"command": "make test"`)
	s.tell(5, "tool_start", `{"turn":"t1","tool":"exec_shell","call":"k1","delta":"make test"}`)
	s.tell(6, "tool_progress", `{"turn":"t1","tool":"exec_shell","call":"k1","delta":"ok  a"}`)
	s.tell(7, "tool_progress", `{"turn":"t1","tool":"exec_shell","call":"k1","delta":"ok  b"}`)
	x.waitText(".call.running .call-body", "ok  b")
	s.tell(8, "tool_end", `{"turn":"t1","tool":"exec_shell","call":"k1"}`)
	s.tell(9, "block_start", block(1, "tool_result", "tool", `"exec_shell"`, "call", `"k1"`))
	s.tell(10, "block_delta", block(1, "tool_result", "delta", `"{\"output\": \"all is well\"}"`))
	s.tell(11, "block_stop", block(1, "tool_result", "tool", `"exec_shell"`, "call", `"k1"`))
	x.waitText(".call.ok .call-body", "all is well")
	s.tell(12, "block_start", block(2, "tool_use", "tool", `"message"`))
	s.tell(0, "block_stop", block(2, "tool_use", "tool", `"message"`, "call", `"k2"`, "input", `{"chat":"C1"}`))
	s.tell(13, "tool_start", `{"turn":"t1","tool":"message","call":"k2","delta":"slack:C1"}`)
	s.tell(14, "tool_end", `{"turn":"t1","tool":"message","call":"k2","error":{"code":"outcome_unknown","message":"it was cut off"}}`)
	x.waitText(".call.unknown .call-state", "outcome unknown")
	s.tell(0, "block_start", block(4, "text"))
	s.tell(0, "block_delta", block(4, "text", "delta", `"This is never logged."`))
	x.waitText(".answer", "never logged")
	s.tell(15, "retry", `{"turn":"t1","attempt":2,"after_ms":3000,"from":"gpt-a","to":"gpt-b"}`)
	x.waitText(".standing", "gpt-a didn't answer. Trying gpt-b in 3 s")
	s.tell(16, "turn_error", `{"turn":"t1","causes":["m1"],"error":{"code":"model_failed","message":"No model answers."}}`)
	x.waitText(".standing.failed", "No model answers.")
	if x.count(".scroll", "never logged") != 0 {
		t.Error("what the log does not have stands there after the end of the turn")
	}
	x.picture("calls")
	s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":["m1"],"state":"failed"}],"blocks":[`+
		`{"turn":"t1","block":0,"kind":"tool_use","tool":"exec_shell","call":"k1","input":{"command":"make test"},"text":"","done":true},`+
		`{"turn":"t1","block":1,"kind":"tool_result","tool":"exec_shell","call":"k1","text":"{\"output\":\"all is well\"}","done":true},`+
		`{"turn":"t1","block":2,"kind":"tool_use","tool":"message","call":"k2","text":"","input":{},"done":true},`+
		`{"turn":"t1","block":3,"kind":"tool_result","tool":"message","call":"k2","text":"{\"error\":{\"code\":\"outcome_unknown\"}}","is_error":true,"done":true}]}`)
	x.waitText(".call.unknown .call-state", "outcome unknown")
	if n := eval[int](x, "document.querySelectorAll('.call').length"); n != 2 {
		t.Errorf("there are %d calls: %q", n, x.text(".scroll"))
	}
	parleytest.WaitFor(t, "both to be shown", func() bool { return x.count(".call-name", "exec_shell") == 1 })
}

// The page reads the tasks and jobs of a conversation when the server says that they changed, and only those of this
// conversation. A late, older response does not show something as running that has ended. What was erased disappears.
func TestWhatGoesOnBesideATurnIsRead(t *testing.T) {
	t.Parallel()
	const (
		session  = "main:web:owner:x"
		about    = `"parent":"main:web:owner:x","session":"helper:agent:p:a","turn":"t1","call":"k1","agent":"helper","title":"Look.","awaited":true,"stopping":false,"started":"2026-01-02T03:04:05Z"`
		running  = `{"id":"a",` + about + `,"state":"running","tools":["grep","glob"],"usage":{"calls":2,"input":1000,"output":20}}`
		waiting  = `{"id":"a",` + about + `,"state":"waiting","usage":{"calls":2,"input":1000,"output":20}}`
		done     = `{"id":"a",` + about + `,"state":"done","ended":"2026-01-02T03:05:05Z","report":"All is well.","usage":{"calls":3,"input":1500,"output":34}}`
		job      = `"id":"j","session":"main:web:owner:x","person":"web:owner","agent":"main","turn":"t1","call":"k2","tool":"exec_shell","command":"make","stopping":false,"started":"2026-01-02T03:04:05Z","deadline":"2026-01-02T04:04:05Z"`
		snapshot = `{"turns":[{"turn":"t1","causes":["m1"],"state":"running"}],"blocks":[` +
			`{"turn":"t1","block":0,"kind":"tool_use","tool":"task","call":"k1","text":"","input":{},"done":true},{"turn":"t1","block":1,"kind":"tool_use","tool":"exec_shell","call":"k2","text":"","input":{},"done":true}]}`
	)
	s := newStage(t)
	var list, one, jobs, output atomic.Value
	list.Store(running)
	one.Store(running)
	jobs.Store(`{` + job + `,"state":"running","printed":4}`)
	output.Store(`{` + job + `,"state":"running","printed":4,"output":"one\n"}`)
	var read atomic.Int64
	answer := func(text func() string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			read.Add(1)
			if key := r.FormValue("session"); key != "" && key != session {
				t.Errorf("read is %s", r.URL)
			}
			if text() == "" {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = w.Write([]byte(text()))
		}
	}
	s.tasks = answer(func() string { return `{"tasks":[` + list.Load().(string) + `],"more":false}` })
	s.jobs = answer(func() string { return `{"jobs":[` + jobs.Load().(string) + `],"more":false}` })
	s.mux.HandleFunc("GET /v1/tasks/a", answer(func() string { return one.Load().(string) }))
	s.mux.HandleFunc("GET /v1/jobs/j", answer(func() string { return output.Load().(string) }))
	x := s.open(newBrowser(t))
	<-s.lastID
	s.tell(0, "snapshot", snapshot)
	x.waitText(".beside.task.running", "running grep, glob")
	x.waitText(".beside.task.running", "1,020 tokens")
	x.waitText(".beside.job.running .beside-output", "one")
	follows := func(css, call string) {
		t.Helper()
		if at := eval[string](x, fmt.Sprintf("document.querySelector(%q).previousElementSibling.querySelector('.call-name')?.textContent ?? ''", css)); at != call {
			t.Errorf("%s stands after %q, want %q", css, at, call)
		}
	}
	follows(".beside.task", "task")
	follows(".beside.job", "exec_shell")

	before := read.Load()
	s.happens("task", `{"session":"main:web:owner:other","id":"a","state":"running"}`)
	s.happens("job_output", `{"session":"main:web:owner:other","id":"j"}`)
	one.Store(waiting)
	s.happens("task", `{"session":"main:web:owner:x","id":"a","state":"waiting"}`)
	x.waitText(".beside.task.waiting", "waiting for an answer")
	if n := read.Load() - before; n != 1 {
		t.Errorf("%d things were read for one that changed here", n)
	}
	output.Store(`{` + job + `,"state":"running","printed":8,"output":"one\ntwo\n"}`)
	s.happens("job_output", `{"session":"main:web:owner:x","id":"j"}`)
	x.waitText(".beside.job.running .beside-output", "two")

	one.Store(done)
	s.happens("task", `{"session":"main:web:owner:x","id":"a","state":"done"}`)
	x.waitText(".beside.task.ok", "1,534 tokens")
	output.Store(`{` + job + `,"state":"exited","exit_code":2,"ended":"2026-01-02T03:05:05Z","printed":8,"output":"one\ntwo\n"}`)
	s.happens("job", `{"session":"main:web:owner:x","id":"j","state":"exited"}`)
	x.waitText(".beside.job.failed", "exit code 2")
	output.Store(`{` + job + `,"state":"exited","exit_code":2,"ended":"2026-01-02T03:05:05Z","printed":14,"output":"one\ntwo\nthree\n"}`)
	s.tell(0, "snapshot", snapshot) // the lists have not changed, and the page reads the job after the lists
	x.waitText(".beside.job.failed .beside-output", "three")
	x.waitText(".beside.task .markdown", "All is well.")
	if x.count(".beside.task.ok", "1,534 tokens") != 1 {
		t.Errorf("what has ended goes on: %q", x.text(".beside"))
	}

	one.Store("")
	list.Store("")
	s.happens("task", `{"session":"main:web:owner:x","state":"erased"}`)
	x.wait("the task to leave", "!document.querySelector('.beside.task') && document.querySelector('.beside.job')")
}

// The reply to a command belongs to no turn. The page drops it together with the turn before it, with a snapshot that
// no longer contains that turn, and when there are too many replies. The same goes for requests.
func TestWhatBelongsToNoTurnLeaves(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	turns := func(ids ...string) string {
		var all []string
		for _, id := range ids {
			all = append(all, `{"turn":"`+id+`","causes":["m`+id+`"],"state":"done"}`)
		}
		return `{"turns":[` + strings.Join(all, ",") + `],"blocks":[]}`
	}
	s.tell(0, "snapshot", turns("t1"))
	s.tell(1, "message", `{"turn":"c1","call":"c1#reply/0","delta":"after the first"}`)
	s.tell(2, "turn_start", `{"turn":"t2","causes":["m2"]}`)
	s.tell(3, "turn_complete", `{"turn":"t2","causes":["m2"]}`)
	s.tell(4, "message", `{"turn":"c2","call":"c2#reply/0","delta":"after the second"}`)
	x.waitText(".spoken", "after the second")
	x.waitText(".spoken", "after the first")
	s.tell(0, "snapshot", turns("t2", "t3"))
	x.wait("what was said after a turn that is gone", "![...document.querySelectorAll('.spoken')].some(e => e.textContent.includes('after the first'))")
	if x.count(".scroll", "after the second") != 1 {
		t.Errorf("what was said after a turn that is there has left: %q", x.text(".scroll"))
	}
	for n := range 70 {
		s.tell(10+n, "message", fmt.Sprintf(`{"turn":"d%d","call":"d%[1]d#reply/0","delta":"command %[1]d."}`, n))
	}
	x.waitText(".spoken", "command 69.")
	if n := eval[int](x, "document.querySelectorAll('.spoken').length"); n != 64 {
		t.Errorf("%d things that commands said are there", n)
	}
}

// A snapshot contains the replies to commands, and how requests have ended. The page shows each once and in its place,
// even if it was sent live before. Whatever no snapshot contains keeps its place among them.
func TestRepliesAndDecisionsStandInTheirPlaces(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	const ask = `{"id":"aaaaaaaaaa","kind":"approval","session":"main:web:owner:x","turn":"t1","person":"web:ann","tool":"exec_shell","arguments":{"command":"make"},"at":"2026-01-02T03:04:05Z","expires":"2026-01-02T04:04:05Z","state":`
	snapshot := func(messages, asks string) {
		s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":["m1"],"state":"done"},{"turn":"t2","causes":["m2"],"state":"done"}],"blocks":[`+
			`{"turn":"t1","block":0,"kind":"tool_use","tool":"exec_shell","call":"k1","text":"","input":{"command":"make"},"done":true},`+
			`{"turn":"t2","block":0,"kind":"text","text":"the answer","done":true}],"messages":[`+messages+`],"asks":[`+asks+`]}`)
	}
	reply := func(id, name, text, after string) string {
		return fmt.Sprintf(`{"call":"%s#reply/0","kind":"command","turn":"%s","command":%q,"text":%q,"after":%q}`, id, id, name, text, after)
	}
	stands := func(when string, want ...string) {
		t.Helper()
		x.wait(when, fmt.Sprintf("%s === %q", standing, strings.Join(want, " | ")))
	}
	snapshot(reply("c1", "help", "all commands", "t1"), "")
	stands("a reply", "/help", "all commands", "the answer")
	s.tell(1, "message", `{"call":"m_9/0/0","delta":"news of others"}`)
	s.tell(2, "message", `{"turn":"c2","call":"c2#reply/0","delta":"nothing runs"}`)
	s.tell(3, "ask", ask+`"open"}`)
	x.wait("the request", "document.querySelector('.ask.open')")
	stands("what was told live", "/help", "all commands", "the answer", "news of others", "nothing runs")
	snapshot(reply("c1", "help", "all commands", "t1")+","+reply("c3", "usage", "no tokens", "t2")+","+reply("c2", "status", "nothing runs", "t2"), ask+`"answered","answer":"approve","by":"web:owner"}`)
	stands("a snapshot with all of it", "exec_shell Approved by you", "/help", "all commands", "the answer", "news of others", "/usage", "no tokens", "/status", "nothing runs")
	s.tell(4, "message", `{"turn":"c2","call":"c2#reply/0","delta":"nothing runs"}`)
	s.tell(5, "ask", ask+`"open"}`)
	s.tell(6, "message", `{"turn":"c4","call":"c4#reply/0","delta":"the end"}`)
	stands("the end", "exec_shell Approved by you", "/help", "all commands", "the answer", "news of others", "/usage", "no tokens", "/status", "nothing runs", "the end")
	x.picture("replies")
}

// The error message of a failed turn stays below the turn and is shown once, whether it comes live, in a snapshot, or
// from the log.
func TestWhatAFailedTurnSaidStays(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	entries := entriesOf(1)
	entries[5]["data"] = map[string]any{"state": "failed", "outbound": []map[string]any{{"id": "e0#reply", "text": "I **gave up** early."}}}
	s.keeps(entries)
	x := s.open(newBrowser(t))
	<-s.lastID
	var turns []string
	for n := range 8 {
		turns = append(turns, fmt.Sprintf(`{"turn":"t%d","causes":["m%[1]d"],"state":"failed"}`, n))
	}
	s.tell(0, "snapshot", `{"turns":[`+strings.Join(turns, ",")+`],"blocks":[],"messages":[{"call":"t3#reply/0","kind":"reply","turn":"t3","text":"No model **answers**.","after":"t3"}]}`)
	s.tell(1, "message", `{"turn":"t3","call":"t3#reply/0","delta":"No model **answers**."}`)
	s.tell(2, "message", `{"turn":"t7","call":"t7#reply/0","delta":"Too late."}`)
	x.waitText(".spoken", "Too late.")
	x.press("Show earlier messages")
	x.waitText(".answer", "File 0")
	said := "[...document.querySelectorAll('.turn')].map(t => [...t.querySelectorAll('.spoken')].map(e => e.textContent).join()).join('|')"
	if got, want := eval[string](x, said), "I gave up early.||||No model answers.||||Too late."; got != want {
		t.Errorf("the turns have said %q, want %q", got, want)
	}
	eval[bool](x, "(location.hash = '#/chat/main%3Aweb%3Aowner%3Ax/3', true)")
	x.waitText(".past .spoken", "I gave up early.")
}

// A call that edits a file shows the lines that it removes and adds, with invisible characters as escapes, and its
// other arguments.
func TestEditsAreShownAsChanges(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	use := func(turn, tool, input string) string {
		return fmt.Sprintf(`{"turn":%q,"block":0,"kind":"tool_use","tool":%q,"call":"k","text":"","input":%s,"done":true}`, turn, tool, input)
	}
	s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":[],"state":"done"},{"turn":"t2","causes":[],"state":"done"},{"turn":"t3","causes":[],"state":"done"}],"blocks":[`+
		use("t1", "edit_file", `{"path":"a.txt","old_text":"one\ntwo\n","new_text":"one\nhid\u202eden\nthree"}`)+","+
		use("t2", "apply_patch", `{"patch":"--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-four\n+five\n"}`)+","+
		use("t3", "edit_file", `{"path":"c.txt","old_text":7}`)+`]}`)
	x.wait("the calls", "document.querySelectorAll('.call').length === 3")
	eval[bool](x, "(document.querySelectorAll('.call').forEach(c => c.open = true), true)")
	for look, want := range map[string]string{"minus": "-one|-two|--- a/b.txt|-four", "plus": "+one|+hid\\u202eden|+three|+++ b/b.txt|+five", "head": "@@ -1 +1 @@"} {
		if got := eval[string](x, "[...document.querySelectorAll('.call .preview-line."+look+"')].map(e => e.textContent.trim()).join('|')"); got != want {
			t.Errorf("%s has %q, want %q", look, got, want)
		}
	}
	if got := eval[string](x, "[...document.querySelectorAll('.call .code code')].map(e => e.textContent.replace(/\\s/g, '')).join('|')"); got != `{"path":"a.txt"}|{"path":"c.txt","old_text":7}` {
		t.Errorf("the other arguments are %q", got)
	}
	x.picture("edits")
}
