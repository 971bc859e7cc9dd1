//go:build linux

package mcp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/pins"
	"parley/tools/sandbox"
	"parley/tools/testrace"
)

// The test binary runs the tests, the parts of this program that the sandbox needs, and test servers.
func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "serve":
			exitWith(serveExample(os.Args[2]))
		case "hostile":
			exitWith(serveHostile(os.Args[2]))
		case "conformance":
			exitWith(conform(os.Args[2]))
		}
	}
	os.Exit(testrace.Run(m.Run))
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A fixture has the servers of a test, and the folders of its sessions.
type fixture struct {
	*mcp.Servers
	t       *testing.T
	dir     string // workspaces, by session
	changed atomic.Int32
	aside   atomic.Pointer[[]string]
	program string
}

// programFolders returns the folders with the programs of servers.
func programFolders(program string) []string {
	dirs := []string{filepath.Dir(program)}
	if dir := os.Getenv("PARLEY_TEST_MCP"); dir != "" {
		dirs = append(dirs, dir)
	}
	return dirs
}

// newFixture makes servers over a real sandbox, and runs them.
func newFixture(t *testing.T, change func(*mcp.Config), servers ...mcp.Server) *fixture {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{t: t, dir: t.TempDir(), program: cmp.Or(testrace.Program(), self)}
	box, err := sandbox.Open(t.Context(), sandbox.Config{
		Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Read: programFolders(s.program),
		Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have a sandbox: %v", err)
	}
	for i := range servers {
		if len(servers[i].Command) > 0 && servers[i].Command[0] == "self" {
			servers[i].Command[0] = s.program
		}
	}
	cfg := mcp.Config{
		Servers: servers, Sandbox: box, Pins: pins.New(&memory{notes: map[[2]string]string{}}), Version: "test", Log: slog.New(slog.DiscardHandler),
		Place: func(_ context.Context, call tools.Call) (sandbox.Place, error) {
			return sandbox.Place{Workspace: s.workspace(call.Session)}, nil
		},
		FilesChanged: func(tools.Call) { s.changed.Add(1) },
		SaveFile: func(_ context.Context, call tools.Call, name string, content []byte) (string, error) {
			return name, os.WriteFile(filepath.Join(s.workspace(call.Session), name), content, 0o600)
		},
		PreparePicture: func(_ context.Context, _ tools.Call, path string) (tools.Picture, error) {
			return tools.Picture{Path: path}, nil
		},
		ToolsSetAside: func(_ context.Context, _ string, names []string) { s.aside.Store(&names) },
	}
	if change != nil {
		change(&cfg)
	}
	s.Servers = mcp.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *fixture) workspace(session string) string {
	dir := filepath.Join(s.dir, session)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		panic(err)
	}
	return dir
}

// tool waits until a tool exists.
func (s *fixture) tool(name string) tools.Tool {
	s.t.Helper()
	var found tools.Tool
	server, _, _ := strings.Cut(name, "__")
	waitFor(s.t, "the tool "+name, func() bool {
		for _, t := range s.Tools(server) {
			if t.Spec().Name == name {
				found = t
			}
		}
		return found != nil
	})
	return found
}

func (s *fixture) names(server string) (names []string) {
	for _, t := range s.Tools(server) {
		names = append(names, t.Spec().Name)
	}
	return names
}

var callCount atomic.Int64

// tryCall calls a tool in a session.
func (s *fixture) tryCall(ctx context.Context, session, name, args string) (tools.Result, error) {
	s.t.Helper()
	return s.tool(name).Run(ctx, tools.Call{ID: fmt.Sprint("c", callCount.Add(1)), Name: name, Session: session, Args: json.RawMessage(args)})
}

// call calls a tool, which must succeed, and returns the text of its result.
func (s *fixture) call(session, name, args string) string {
	s.t.Helper()
	r, err := s.tryCall(s.t.Context(), session, name, args)
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	if !r.Untrusted {
		s.t.Errorf("%s: what a server says is trusted", name)
	}
	var got struct{ Text string }
	if err := json.Unmarshal(r.Content, &got); err != nil {
		s.t.Fatal(err)
	}
	return cmp.Or(got.Text, string(r.Content))
}

// wantFailure calls a tool, which must fail.
func (s *fixture) wantFailure(session, name, args string, code tools.Code, words ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	_, err := s.tryCall(ctx, session, name, args)
	s.checkFailure(err, name, code, words...)
}

func (s *fixture) checkFailure(err error, name string, code tools.Code, words ...string) {
	s.t.Helper()
	failed, ok := errors.AsType[*tools.Error](err)
	if !ok || failed.Code != code {
		s.t.Errorf("%s: it failed with %v, want %s", name, err, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(failed.Message, word) {
			s.t.Errorf("%s: it says %q, and not %q", name, failed.Message, word)
		}
	}
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(60 * time.Second); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// processesWith lists the processes whose arguments contain a text.
func processesWith(text string) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		raw, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && pid != os.Getpid() && strings.Contains(string(raw), text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func exampleServer(more ...string) mcp.Server {
	return mcp.Server{Name: "example", Command: append([]string{"self", "serve", "first"}, more...), Env: []string{"GIVEN=token"}}
}

func TestAProgramsTools(t *testing.T) {
	t.Setenv("HOST_SECRET", "hunter2")
	s := newFixture(t, nil, exampleServer())
	if got := s.call("s1", "example__echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("echo gave %q", got)
	}
	if got := s.call("s1", "example__look_around", `{}`); !strings.HasSuffix(got, "|token||true|true") {
		t.Errorf("inside it is %q", got)
	}
	if _, err := os.Stat(filepath.Join(s.workspace("s1"), "written")); err != nil {
		t.Errorf("it does not work in the session's workspace: %v", err)
	}
	// Each session has one program, which keeps running.
	first, second := s.call("s1", "example__pid", `{}`), s.call("s2", "example__pid", `{}`)
	if again := s.call("s1", "example__pid", `{}`); again != first {
		t.Errorf("the session's program is %s, and was %s", again, first)
	}
	if _, err := os.Stat(filepath.Join(s.workspace("s2"), "written")); err == nil || second == "" {
		t.Error("a session sees another's workspace")
	}
	if got := s.call("s1", "example__sum", `{}`); got != `{"structured":{"sum":42}}` {
		t.Errorf("structured content is %s", got)
	}
	s.wantFailure("s1", "example__fail", `{}`, tools.ExecutionFailed, "on fire")
	if s.changed.Load() == 0 {
		t.Error("nobody was told that files may have changed")
	}
	spec := s.tool("example__echo").Spec()
	if spec.Effect != tools.Once || !strings.Contains(spec.Description, "first") {
		t.Errorf("an annotation grants something: %+v", spec)
	}
}

// A server's question during a call is answered with its defaults if the operator allows that, and declined if a
// required default is missing. Otherwise the server is told that it cannot ask.
func TestQuestionsOfAServer(t *testing.T) {
	bold, shy := exampleServer(), exampleServer()
	bold.Defaults, shy.Name = true, "shy"
	s := newFixture(t, nil, bold, shy)
	for form, want := range map[string]string{
		`{"type":"object","required":["size"],"properties":{"size":{"type":"integer","default":3},"name":{"type":"string"}}}`:          `accept {"size":3}`,
		`{"type":"object","required":["name"],"properties":{"size":{"type":"integer","default":3},"name":{"type":"string"}}}`:          `decline null`,
		`{"type":"object","properties":{"sure":{"type":"boolean"}}}`:                                                                   `decline null`,
		`{"type":"object","$ref":"#","properties":{"size":{"type":"integer","default":3}}}`:                                            `decline null`,
		`{"type":"object","properties":{"size":{"type":"integer","default":3}},"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`: `decline null`,
	} {
		if got := s.call("s", "example__ask", form); got != want {
			t.Errorf("%s: it was answered with %s, want %s", form, got, want)
		}
	}
	s.wantFailure("s", "shy__ask", `{"type":"object","properties":{"size":{"type":"integer","default":3}}}`, tools.InvalidArgs, "elicitation")
	if got := s.call("s", "example__echo", `{"text":"alive"}`); got != "alive" {
		t.Errorf("afterwards it says %s", got)
	}
}

func TestPiecesOfAResult(t *testing.T) {
	s := newFixture(t, nil, exampleServer())
	r, err := s.tryCall(t.Context(), "s", "example__pieces", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Content []struct{ Type, Text, Path, MIME, URI, Name string }
	}
	if err := json.Unmarshal(r.Content, &got); err != nil || len(got.Content) != 5 || len(r.Pictures) != 1 {
		t.Fatalf("it gave %s with %d pictures, %v", r.Content, len(r.Pictures), err)
	}
	for i, want := range []struct{ kind, text, file string }{
		{"text", "see", ""}, {"image", "", "a picture"}, {"resource", "words", ""}, {"resource", "", "%PDF"}, {"resource_link", "", ""},
	} {
		b := got.Content[i]
		content, _ := os.ReadFile(filepath.Join(s.workspace("s"), b.Path))
		if b.Type != want.kind || b.Text != want.text || want.file != "" && string(content) != want.file {
			t.Errorf("piece %d is %+v with the file %q", i, b, content)
		}
	}
}

func TestProgressAndCancelling(t *testing.T) {
	s := newFixture(t, nil, exampleServer())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan string, 10)
	done := make(chan error, 1)
	tool := s.tool("example__wait")
	go func() {
		_, err := tool.Run(ctx, tools.Call{ID: "w", Session: "s", Args: json.RawMessage(`{}`), Progress: func(text string) { told <- text }})
		done <- err
	}()
	if got := <-told; got != "one of three" {
		t.Errorf("watchers are told %q", got)
	}
	if !waited(filepath.Join(s.workspace("s"), "waiting")) {
		t.Fatal("it does not begin")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call ended with %v", err)
	}
	if !waited(filepath.Join(s.workspace("s"), "cancelled")) {
		t.Error("the server was not told that its call was cancelled")
	}
	if got := s.call("s", "example__echo", `{"text":"still here"}`); got != "still here" {
		t.Errorf("afterwards it says %q", got)
	}
}

// If a server is killed during a call, that call fails and no other.
func TestAKilledServer(t *testing.T) {
	mark := "mark-" + strconv.Itoa(os.Getpid()) + "-killed"
	s := newFixture(t, func(c *mcp.Config) { c.Limits.Backoff = time.Millisecond }, exampleServer(mark))
	s.call("other", "example__echo", `{"text":"x"}`)
	other := s.call("other", "example__pid", `{}`)
	s.wantFailure("s", "example__die", `{}`, tools.OutcomeUnknown, "example", "killed on purpose", "Inspect")
	waitFor(t, "the next program", func() bool {
		r, err := s.tryCall(t.Context(), "s", "example__echo", `{"text":"back"}`)
		return err == nil && strings.Contains(string(r.Content), "back")
	})
	if now := s.call("other", "example__pid", `{}`); now != other {
		t.Errorf("another session's program is %s, and was %s", now, other)
	}

	// From outside, without warning.
	tool := s.tool("example__wait")
	done := make(chan error, 1)
	go func() {
		_, err := tool.Run(t.Context(), tools.Call{ID: "k", Session: "kill", Args: json.RawMessage(`{}`)})
		done <- err
	}()
	if !waited(filepath.Join(s.workspace("kill"), "waiting")) {
		t.Fatal("it does not begin")
	}
	for _, pid := range processesWith(mark) {
		if link, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && strings.Contains(workspaceOf(pid), filepath.Join(s.dir, "kill")) && link != "/" {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	s.checkFailure(<-done, "killed from outside", tools.OutcomeUnknown, "Inspect")
	waitFor(t, "the next program", func() bool {
		_, err := s.tryCall(t.Context(), "kill", "example__echo", `{"text":"back"}`)
		return err == nil
	})
}

// workspaceOf returns the folder of this machine that is a process's workspace.
func workspaceOf(pid int) string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if cwd != "/workspace" {
		return cwd // it shares this machine's folders
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "/workspace" {
			// The root of the mount is relative to the device: its end is enough.
			return f[3]
		}
	}
	return ""
}

// Case 36: a banner, a line that is too long, and content of an unknown kind make at most their call fail.
func TestNoiseCostsACallAtMost(t *testing.T) {
	s := newFixture(t, nil, mcp.Server{Name: "x", Command: []string{"self", "hostile", "rude"}})
	if got := s.call("s", "x__noise", `{}`); got != "fine" {
		t.Errorf("beside noise it says %q", got)
	}
	s.wantFailure("s", "x__long", `{}`, tools.ExecutionFailed, "longer than 8 MB")
	s.wantFailure("s", "x__strange", `{}`, tools.ExecutionFailed, "cannot be read")
	if _, err := s.tryCall(t.Context(), "s", "x__nothing", `{}`); err != nil {
		t.Errorf("a result of nothing: %v", err)
	}
	if got := s.call("s", "x__ask", `{}`); got != "fine" {
		t.Errorf("beside a question it says %q", got)
	}
	if got := s.call("s", "x__say", `{}`); got != "fine" {
		t.Errorf("afterwards it says %q", got)
	}
}

// A server that floods its connection makes at most a call fail, and takes neither memory nor, for long, processor
// time.
func TestFloodsCostACallAtMost(t *testing.T) {
	s := newFixture(t, func(c *mcp.Config) { c.Limits.Backoff = time.Millisecond }, mcp.Server{Name: "x", Command: []string{"self", "hostile", "flood"}})
	s.call("s", "x__say", `{}`)
	before := heapInUse()
	for _, flood := range []string{"logs", "twice", "requests", "endless", "answers"} {
		switch flood {
		case "endless", "answers":
			s.wantFailure("s", "x__"+flood, `{}`, tools.OutcomeUnknown, "message after message")
		case "requests": // the server may end first, because nobody reads its questions
			s.wantFailure("s", "x__"+flood, `{}`, tools.OutcomeUnknown)
		default:
			if got := s.call("s", "x__"+flood, `{}`); got != "fine" {
				t.Errorf("%s: it says %q", flood, got)
			}
		}
		if grown := int64(heapInUse()) - int64(before); grown > 50<<20 {
			t.Errorf("after %s %d MB more are in use", flood, grown>>20)
		}
		waitFor(t, "a server that answers", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			_, err := s.tryCall(ctx, "s", "x__say", `{}`)
			return err == nil
		})
	}
}

// heapInUse returns how many bytes are in use after a collection.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (s *fixture) programs() []int {
	var own []int
	for _, pid := range processesWith("hostile\x00rude") {
		if strings.Contains(workspaceOf(pid), filepath.Join(s.dir, "s")) {
			own = append(own, pid)
		}
	}
	return own
}

// Case 37: a silent server is given up in time and tried again later; the last output of one that ends is in the error;
// no process is left.
func TestSilentServers(t *testing.T) {
	mark := "mark-" + strconv.Itoa(os.Getpid()) + "-deaf"
	later := func(c *mcp.Config) { c.Limits.Backoff = time.Minute }
	silent := newFixture(t, func(c *mcp.Config) { later(c); c.Limits.Connect = 300 * time.Millisecond },
		mcp.Server{Name: "deaf", Command: []string{"self", "hostile", "deaf", mark}})
	s := newFixture(t, later,
		mcp.Server{Name: "dead", Command: []string{"sh", "-c", "echo cannot start >&2; exit 3"}},
		mcp.Server{Name: "absent", Command: []string{"no-such-program"}})
	errs := func(name string) string {
		for _, st := range append(s.States(), silent.States()...) {
			if st.Name == name && st.Err != nil {
				return st.Err.Error()
			}
		}
		return ""
	}
	waitFor(t, "all to fail", func() bool { return errs("deaf") != "" && errs("dead") != "" && errs("absent") != "" })
	for name, want := range map[string]string{"deaf": "did not answer", "dead": "exit code 3, and said last: cannot start", "absent": "exit code 127"} {
		if got := errs(name); !strings.Contains(got, want) {
			t.Errorf("of %s it is said %q", name, got)
		}
	}
	waitFor(t, "no survivors", func() bool { return len(processesWith(mark)) == 0 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	silent.Await(ctx) // nothing is left to wait for
	if ctx.Err() != nil {
		t.Error("what has failed is waited for")
	}
}

// A call without an answer ends at its deadline, and its silent program ends too.
func TestASilentCall(t *testing.T) {
	s := newFixture(t, func(c *mcp.Config) { c.Limits.Backoff = time.Millisecond }, mcp.Server{Name: "x", Command: []string{"self", "hostile", "rude"}})
	s.call("s", "x__say", `{}`)
	before := s.programs()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.tryCall(ctx, "s", "x__silence", `{}`); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
	waitFor(t, "the silent program to end", func() bool {
		for _, pid := range before {
			if syscall.Kill(pid, 0) == nil {
				return false
			}
		}
		return true
	})
	waitFor(t, "another program", func() bool {
		_, err := s.tryCall(t.Context(), "s", "x__say", `{}`)
		return err == nil
	})
}

// Case 38: endless pages, names of all kinds, and thousands of messages that the tools changed.
func TestEndlessLists(t *testing.T) {
	s := newFixture(t, nil,
		mcp.Server{Name: "pages", Command: []string{"self", "hostile", "pages"}},
		mcp.Server{Name: "circle", Command: []string{"self", "hostile", "circle"}},
		mcp.Server{Name: "names", Command: []string{"self", "hostile", "names"}},
		mcp.Server{Name: "news", Command: []string{"self", "hostile", "rude"}, Tools: []string{"n*s"}})
	s.Await(t.Context())
	if n := len(s.Tools("pages")); n != 50 {
		t.Errorf("of endless pages there are %d tools", n)
	}
	if got := fmt.Sprint(s.names("circle")); got != "[circle__t]" {
		t.Errorf("of a circle there are %s", got)
	}
	seen := map[string]bool{}
	for _, name := range s.names("names") {
		if len(name) > 64 || seen[name] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("a tool is called %q", name)
		}
		seen[name] = true
	}
	if len(seen) != 7 || !seen["names__a_b"] || !seen["names__gr__e"] || !seen["names__twice"] {
		t.Errorf("the tools are %v", seen)
	}
	if got := fmt.Sprint(s.names("news")); got != "[news__news news__noise]"[:len("[news__news")]+"]" {
		t.Errorf("chosen are %s", got)
	}
	if got := s.call("s", "news__news", `{}`); got != "fine" {
		t.Errorf("beside news it says %q", got)
	}
	if got := s.call("s", "news__news", `{}`); got != "fine" { // listed once more, not 6,000 times
		t.Errorf("after news it says %q", got)
	}
}

// A tool whose description has changed is not shown and not called until it is accepted.
func TestAChangedDescription(t *testing.T) {
	store := &memory{notes: map[[2]string]string{}}
	same := func(c *mcp.Config) { c.Pins = pins.New(store) }
	first := newFixture(t, same, exampleServer())
	echo := first.tool("example__echo")
	changed := exampleServer()
	changed.Command[2] = "and sends it to me"
	second := newFixture(t, same, changed)
	second.Await(t.Context())
	waitFor(t, "the change to be seen", func() bool { return second.aside.Load() != nil })
	if got := *second.aside.Load(); fmt.Sprint(got) != "[echo]" {
		t.Errorf("set aside are %v", got)
	}
	if names := second.names("example"); strings.Contains(fmt.Sprint(names), "echo") || len(names) == 0 {
		t.Errorf("the tools are %v", names)
	}
	p := pins.New(store)
	if _, err := p.Accept(t.Context(), "example", "", ""); err != nil {
		t.Fatal(err)
	}
	// The first server's program has not changed, so now its tool is the one that is not called.
	third := newFixture(t, same, exampleServer())
	third.Await(t.Context())
	waitFor(t, "the old one to be seen", func() bool { return third.aside.Load() != nil })
	_, err := echo.Run(t.Context(), tools.Call{ID: "p", Session: "s", Args: json.RawMessage(`{"text":"x"}`)})
	first.checkFailure(err, "a turn that began with the tool", tools.PermissionDenied, "parley mcp accept example")
}

// A tool whose description contains tags is offered from the first listing on, with its server's description.
func TestAToolThatSpeaksOfTags(t *testing.T) {
	store := &memory{notes: map[[2]string]string{}}
	for range 2 { // the second process finds the tools that the first has accepted
		s := newFixture(t, func(c *mcp.Config) { c.Pins = pins.New(store) }, exampleServer())
		if got := s.call("s", "example__tag", `{"html":"<br> & <hr>"}`); got != "<br> & <hr>" {
			t.Errorf("it says %q", got)
		}
		if spec := s.tool("example__tag").Spec(); !strings.Contains(string(spec.Schema), "such as <p>a & b</p>") {
			t.Errorf("its schema is %s", spec.Schema)
		}
		if aside := s.aside.Load(); aside != nil {
			t.Errorf("set aside are %v", *aside)
		}
	}
}

// A tool that a server adds during its use waits for an owner, too.
func TestANewTool(t *testing.T) {
	s := newFixture(t, func(c *mcp.Config) { c.Limits.ListInterval = 10 * time.Millisecond }, exampleServer())
	s.call("s", "example__grow", `{}`)
	waitFor(t, "the new tool to be set aside", func() bool {
		_, err := s.tryCall(t.Context(), "s", "example__echo", `{"text":"x"}`)
		return err == nil && s.aside.Load() != nil
	})
	if got := *s.aside.Load(); fmt.Sprint(got) != "[grown]" {
		t.Errorf("set aside are %v", got)
	}
}

// Case 39: schemas that refer to themselves, or are nested too deep, do no harm.
func TestHarmfulSchemas(t *testing.T) {
	s := newFixture(t, nil, mcp.Server{Name: "x", Command: []string{"self", "hostile", "schemas"}},
		mcp.Server{Name: "abyss", Command: []string{"self", "hostile", "deep"}})
	s.Await(t.Context())
	waitFor(t, "what is too deep to be refused", func() bool {
		err := s.States()[1].Err
		return err != nil && strings.Contains(err.Error(), "nested too deep")
	})
	s.tool("x__good")
	set := tools.NewSet(s.Tools("x")...)
	for _, spec := range set.Specs() {
		for _, args := range []string{`{}`, `{"child":{"child":{"child":{}}}}`} {
			if _, _, failed := set.Check(tools.Call{Name: spec.Name, Args: json.RawMessage(args)}); failed != nil && spec.Name == "x__good" {
				t.Errorf("%s: %v", spec.Name, failed)
			}
		}
	}
	got := fmt.Sprint(s.names("x"))
	for _, bad := range []string{"deep", "list", "elsewhere"} {
		if strings.Contains(got, "x__"+bad) {
			t.Errorf("the tool %s is offered", bad)
		}
	}
	listing, err := s.Check(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	for _, why := range listing.Unusable {
		for _, name := range why.Names {
			left[name] = why.Tools
		}
	}
	if left["deep"] != 2 || left["elsewhere"] != 2 || left["list"] != 1 || len(left) != 3 {
		t.Errorf("left out are %v", listing.Unusable)
	}
}

// Idle programs end. If there are too many, the one that has been idle the longest ends. A shared program runs once.
func TestHowManyProgramsRun(t *testing.T) {
	mark := "mark-" + strconv.Itoa(os.Getpid()) + "-many"
	shared := exampleServer(mark)
	shared.Name, shared.Shared = "shared", true
	s := newFixture(t, func(c *mcp.Config) { c.Limits.Programs, c.Limits.Idle = 2, time.Hour }, exampleServer(mark), shared)
	s.Await(t.Context())
	s.call("a", "example__pid", `{}`)
	s.call("b", "example__pid", `{}`)
	waitForCall := func(session, name string) string {
		got := ""
		waitFor(t, name, func() bool {
			r, err := s.tryCall(t.Context(), session, name, `{}`)
			got = string(r.Content)
			return err == nil
		})
		return got
	}
	waitForCall("c", "example__pid")
	waitForCall("a", "example__pid")
	if a, b := waitForCall("a", "shared__pid"), waitForCall("b", "shared__pid"); a != b {
		t.Errorf("a shared program is %s and %s", a, b)
	}
	waitFor(t, "two programs at most", func() bool {
		roots := map[string]bool{}
		for _, pid := range processesWith(mark) {
			roots[workspaceOf(pid)+namespaceOf(pid)] = true
		}
		return len(roots) <= 4 // with the processes around each of them
	})
}

func namespaceOf(pid int) string {
	ns, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return ns
}

func TestIdleProgramsEnd(t *testing.T) {
	mark := "mark-" + strconv.Itoa(os.Getpid()) + "-idle"
	s := newFixture(t, func(c *mcp.Config) { c.Limits.Idle = 50 * time.Millisecond }, exampleServer(mark))
	s.call("a", "example__echo", `{"text":"x"}`)
	waitFor(t, "the idle program to end", func() bool { return len(processesWith(mark)) == 0 })
	s.call("a", "example__echo", `{"text":"x"}`)
}

func TestAService(t *testing.T) {
	var handler atomic.Value
	handler.Store(serveHTTP("on the network"))
	web := httptest.NewServer(httpHandler(&handler))
	t.Cleanup(web.Close) // after the connections have ended
	key := map[string]string{"X-Key": "sesame"}
	s := newFixture(t, func(c *mcp.Config) { c.Limits.Backoff = time.Millisecond },
		mcp.Server{Name: "web", URL: web.URL + "/mcp", Headers: key}, mcp.Server{Name: "closed", URL: web.URL + "/mcp"})
	if got := s.call("s1", "web__echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("echo gave %q", got)
	}
	s.wantFailure("s1", "web__fail", `{}`, tools.ExecutionFailed, "on fire")
	if got := s.call("s1", "web__sum", `{}`); got != `{"structured":{"sum":42}}` {
		t.Errorf("structured content is %s", got)
	}
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			if r, err := s.tryCall(t.Context(), fmt.Sprint("many", i), "web__echo", `{"text":"x"}`); err != nil {
				t.Errorf("side by side it gave %s, %v", r.Content, err)
			}
		})
	}
	wg.Wait()
	waitFor(t, "the closed one to be told", func() bool {
		for _, st := range s.States() {
			if st.Name == "closed" && st.Err != nil {
				return strings.Contains(st.Err.Error(), "401")
			}
		}
		return false
	})
	// A service that was restarted no longer knows its connections: the call that finds this out is made over a new
	// one.
	for _, status := range []int32{http.StatusNotFound, http.StatusBadRequest} {
		handler.Store(answerUnknownSessions(serveHTTP("on the network"), int(status)))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if r, err := s.tryCall(t.Context(), "s1", "web__echo", `{"text":"again"}`); err != nil || !strings.Contains(string(r.Content), "again") {
					t.Errorf("after a restart, with status %d, it gave %s, %v", status, r.Content, err)
				}
			})
		}
		wg.Wait()
	}
}

// answerUnknownSessions answers requests of sessions that it does not know with the given status.
func answerUnknownSessions(inner http.Handler, status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept := httptest.NewRecorder()
		if r.Method != http.MethodPost {
			inner.ServeHTTP(w, r)
			return
		}
		if inner.ServeHTTP(kept, r); kept.Code == http.StatusNotFound {
			kept.Code = status
		}
		maps.Copy(w.Header(), kept.Header())
		w.WriteHeader(kept.Code)
		_, _ = w.Write(kept.Body.Bytes()) // the client may be gone
	})
}
