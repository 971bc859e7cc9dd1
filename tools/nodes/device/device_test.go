//go:build linux

package device_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/device"
	"parley/tools/nodes/wire"
	"parley/tools/sandbox"
	"parley/tools/shell"
	"parley/tools/testrace"
)

// The test binary is three programs: the tests, the program that the sandbox starts, and a node that a test kills.
func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "node" {
		runChild()
		return
	}
	os.Exit(testrace.Run(m.Run))
}

// shortTiming returns the timing of tests. Only their duration depends on it.
func shortTiming() device.Timing {
	return device.Timing{MinDelay: time.Millisecond, MaxDelay: 20 * time.Millisecond, AfterRefusal: 20 * time.Millisecond, StopGrace: 10 * time.Second, Progress: time.Millisecond}
}

// A fakeServer is the server's end: links receives each link that a node opens.
type fakeServer struct {
	t       *testing.T
	node    ed25519.PrivateKey
	server  ed25519.PrivateKey
	address string
	links   chan *wire.Conn
	offers  chan nodes.Offer
	refuse  atomic.Pointer[wire.Refusal]
}

func keyFromSeed(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(b), ed25519.SeedSize)))
}

func publicKey(k ed25519.PrivateKey) []byte { return k.Public().(ed25519.PublicKey) }

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t, node: keyFromSeed('n'), server: keyFromSeed('s'), links: make(chan *wire.Conn, 100), offers: make(chan nodes.Offer, 100)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, err := wire.Server{Key: f.server, Lookup: func(context.Context, string) ([]byte, error) {
			if refusal := f.refuse.Load(); refusal != nil {
				return nil, refusal
			}
			return publicKey(f.node), nil
		}}.Accept(w, r)
		if err != nil {
			return
		}
		f.offers <- g.Offer
		if c, err := g.Welcome(); err == nil {
			f.links <- c
		}
	}))
	t.Cleanup(s.Close)
	f.address = s.URL
	return f
}

func (f *fakeServer) link() *wire.Conn {
	f.t.Helper()
	select {
	case c := <-f.links:
		f.t.Cleanup(c.Close)
		return c
	case <-time.After(20 * time.Second):
		f.t.Fatal("the node opens no link")
		return nil
	}
}

// run runs a node until stop is called, which returns how Run has ended.
func (f *fakeServer) run(dir string, change func(*device.Node), all ...tools.Tool) (stop func() error) {
	f.t.Helper()
	n := newNode(f.address, dir, all...)
	if change != nil {
		change(&n)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	f.t.Cleanup(func() { _ = stop() })
	return stop
}

func newNode(address, dir string, all ...tools.Tool) device.Node {
	set := tools.NewSet(all...)
	return device.Node{
		Link: wire.Node{
			Server: address, ServerKey: publicKey(keyFromSeed('s')), Name: "pi", Key: keyFromSeed('n'),
			Offer: device.OfferOf(set, []string{"files"}, "1.0", "linux/test"),
		},
		Tools: set, Journal: filepath.Join(dir, "journal"), Log: slog.New(slog.DiscardHandler), Timing: shortTiming(),
	}
}

func sendFrame(t *testing.T, c *wire.Conn, f wire.Frame) {
	t.Helper()
	if err := c.Write(f); err != nil {
		t.Fatal(err)
	}
}

func callFrame(id, tool, args string) wire.Frame {
	return wire.Frame{Type: wire.Call, ID: id, Tool: tool, Args: json.RawMessage(args)}
}

// nextFrame returns the next frame of that type; it skips reports.
func nextFrame(t *testing.T, c *wire.Conn, kind string) wire.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		f, err := c.Read(ctx)
		if err != nil {
			t.Fatalf("wait for %s: %v", kind, err)
		}
		if f.Type == kind {
			return f
		}
		if f.Type != wire.Progress {
			t.Fatalf("got %+v, want %s", f, kind)
		}
	}
}

// waitResult waits for the result of a call, and returns its outcome.
func waitResult(t *testing.T, c *wire.Conn, id string) nodes.Outcome {
	t.Helper()
	f := nextFrame(t, c, wire.Result)
	if f.ID != id || f.Outcome == nil {
		t.Fatalf("got %+v, want the result of %s", f, id)
	}
	return *f.Outcome
}

func wantError(t *testing.T, out nodes.Outcome, status nodes.Status, code tools.Code) {
	t.Helper()
	if out.Status != status || out.Error == nil || out.Error.Code != code {
		t.Errorf("the outcome is %s, %v; want %s, %s", out.Status, out.Error, status, code)
	}
}

type noArgs struct{}

// tool makes a tool from a function.
func tool(name string, effect tools.Effect, run func(ctx context.Context, call tools.Call) (any, error)) tools.Tool {
	return tools.New(tools.Spec{Name: name, Effect: effect, Description: "for tests", Timeout: 20 * time.Second, MaxTimeout: -1, Touches: tools.TouchesNothing()},
		func(ctx context.Context, call tools.Call, _ noArgs) (any, error) { return run(ctx, call) })
}

// A gate is a tool that counts its runs and returns when it is opened, or told to end.
type gate struct {
	runs    atomic.Int32
	entered chan struct{}
	open    chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 1000), open: make(chan struct{})} }

func (g *gate) run(ctx context.Context, call tools.Call) (any, error) {
	g.runs.Add(1)
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return call.ID, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestOfferDescribesTools(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t)
	f.run(t.TempDir(), nil, tool("look", tools.Pure, newGate().run), tools.New(tools.Spec{Name: "work", Effect: tools.Once, Timeout: time.Second, MaxTimeout: 5 * time.Minute},
		func(context.Context, tools.Call, noArgs) (any, error) { return nil, nil }))
	f.link()
	o := <-f.offers
	if len(o.Tools) != 2 || !o.Tools[0].Pure || o.Tools[1].Pure || o.Tools[0].Limit() != 20*time.Second || o.Tools[1].Limit() != 5*time.Minute {
		t.Errorf("the offer is %+v", o)
	}
	if len(o.Capabilities) != 1 || o.Release != "1.0" || o.Platform != "linux/test" {
		t.Errorf("the offer is %+v", o)
	}
}

func TestDuplicatesRunOnce(t *testing.T) {
	t.Parallel()
	f, g := newFakeServer(t), newGate()
	f.run(t.TempDir(), nil, tool("work", tools.Once, g.run), tool("other", tools.Once, func(context.Context, tools.Call) (any, error) { return nil, nil }))
	c := f.link()
	for range 3 {
		sendFrame(t, c, callFrame("1", "work", `{}`))
	}
	<-g.entered
	sendFrame(t, c, callFrame("2", "other", `{}`))
	waitResult(t, c, "2") // so the node has read the duplicates
	close(g.open)
	out := waitResult(t, c, "1")
	if out.Status != nodes.Done || string(out.Content) != `"1"` {
		t.Fatalf("the outcome is %+v", out)
	}
	sendFrame(t, c, callFrame("1", "work", `{}`)) // before it is acknowledged
	if again := waitResult(t, c, "1"); string(again.Content) != `"1"` || again.Milliseconds != out.Milliseconds {
		t.Errorf("the second outcome is %+v, the first was %+v", again, out)
	}
	sendFrame(t, c, wire.Frame{Type: wire.Ack, ID: "1"})
	sendFrame(t, c, callFrame("1", "work", `{}`)) // after that
	wantError(t, waitResult(t, c, "1"), nodes.Unknown, tools.OutcomeUnknown)
	if n := g.runs.Load(); n != 1 {
		t.Errorf("the call ran %d times", n)
	}
}

func TestCallGoesOnWithoutTheLink(t *testing.T) {
	t.Parallel()
	f, g, dir := newFakeServer(t), newGate(), t.TempDir()
	stop := f.run(dir, nil, tool("work", tools.Once, g.run))
	c := f.link()
	sendFrame(t, c, callFrame("1", "work", `{}`))
	<-g.entered
	c.Close()
	c = f.link()
	sendFrame(t, c, callFrame("1", "work", `{}`)) // the server sends all open calls again
	close(g.open)
	waitResult(t, c, "1")
	c.Close() // the outcome was not acknowledged
	c = f.link()
	waitResult(t, c, "1")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	f.run(dir, nil, tool("work", tools.Once, g.run))
	c = f.link()
	waitResult(t, c, "1") // not even by a node that has restarted
	sendFrame(t, c, wire.Frame{Type: wire.Ack, ID: "1"})
	sendFrame(t, c, callFrame("2", "work", `{}`))
	waitResult(t, c, "2") // the acknowledgement was sent before it, so it is in the journal
	c.Close()
	if got := nextFrame(t, f.link(), wire.Result); got.ID != "2" {
		t.Errorf("the node sent %+v again", got)
	}
	if n := g.runs.Load(); n != 2 {
		t.Errorf("the calls ran %d times", n)
	}
}

func TestAtMostEightRunAtOnce(t *testing.T) {
	t.Parallel()
	f, g := newFakeServer(t), newGate()
	var mu sync.Mutex
	var order []string
	f.run(t.TempDir(), nil, tool("work", tools.Once, func(ctx context.Context, call tools.Call) (any, error) {
		mu.Lock()
		order = append(order, call.ID)
		mu.Unlock()
		return g.run(ctx, call)
	}))
	c := f.link()
	for i := range 12 {
		sendFrame(t, c, callFrame(fmt.Sprint(i), "work", `{}`))
	}
	for range 8 {
		<-g.entered
	}
	sendFrame(t, c, wire.Frame{Type: wire.Cancel, ID: "9"}) // the call waits
	wantError(t, waitResult(t, c, "9"), nodes.NotRun, tools.Cancelled)
	if n := g.runs.Load(); n != 8 {
		t.Errorf("%d calls run at once", n)
	}
	close(g.open)
	for range 11 {
		nextFrame(t, c, wire.Result)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(order) != 11 || order[8] == "9" {
		t.Errorf("the calls began in the order %q", order)
	}
}

func TestCallsThatAreNotRun(t *testing.T) {
	t.Parallel()
	f, g := newFakeServer(t), newGate()
	close(g.open)
	f.run(t.TempDir(), func(n *device.Node) {
		n.Decide = func(_ context.Context, call tools.Call) tools.Verdict {
			switch call.Name {
			case "denied":
				return tools.Verdict{Decision: tools.Deny, Reason: "no"}
			case "asked":
				return tools.Verdict{Decision: tools.Ask, Reason: "perhaps"}
			}
			return tools.Verdict{}
		}
	}, tool("denied", tools.Once, g.run), tool("asked", tools.Once, g.run), tool("work", tools.Once, g.run))
	c := f.link()
	for _, one := range []struct {
		tool, args string
		code       tools.Code
	}{{"denied", `{}`, tools.PermissionDenied}, {"asked", `{}`, tools.PermissionDenied}, {"nothing", `{}`, tools.NotFound}, {"work", `{"what":1}`, tools.InvalidArgs}} {
		id := one.tool + one.args
		sendFrame(t, c, callFrame(id, one.tool, one.args))
		wantError(t, waitResult(t, c, id), nodes.NotRun, one.code)
	}
	sendFrame(t, c, wire.Frame{Type: wire.Call, Tool: "work", Args: json.RawMessage(`{}`)}) // a frame without an id is ignored
	sendFrame(t, c, wire.Frame{Type: wire.Cancel, ID: "late"})
	wantError(t, waitResult(t, c, "late"), nodes.NotRun, tools.Cancelled)
	sendFrame(t, c, callFrame("late", "work", `{}`)) // the call arrives after it was canceled
	wantError(t, waitResult(t, c, "late"), nodes.NotRun, tools.Cancelled)
	if n := g.runs.Load(); n != 0 {
		t.Errorf("%d calls were run", n)
	}
}

// A call that the device's rules ask about runs only if the server says that a person has approved it, which older
// servers never do. A call that other rules forbid doesn't run, whatever the server says.
func TestCallsThatAPersonHasToApprove(t *testing.T) {
	t.Parallel()
	f, g := newFakeServer(t), newGate()
	close(g.open)
	f.run(t.TempDir(), func(n *device.Node) {
		n.Decide = func(_ context.Context, call tools.Call) tools.Verdict {
			if call.Name == "unsure" {
				return tools.Verdict{Decision: tools.Ask, Reason: "perhaps"}
			}
			return tools.Verdict{}
		}
		n.NeedsApproval = func(_ context.Context, call tools.Call) tools.Verdict {
			return map[string]tools.Verdict{"asked": {Decision: tools.Ask, Reason: "a rule"}, "never": {Decision: tools.Deny, Reason: "always"}}[call.Name]
		}
	}, tool("unsure", tools.Once, g.run), tool("asked", tools.Once, g.run), tool("never", tools.Once, g.run), tool("work", tools.Once, g.run))
	c := f.link()
	for _, one := range []struct {
		tool     string
		approved bool
		runs     bool
	}{{"asked", false, false}, {"asked", true, true}, {"never", false, false}, {"unsure", true, false}, {"work", false, true}, {"work", true, true}} {
		id := fmt.Sprint(one.tool, one.approved)
		frame := callFrame(id, one.tool, `{}`)
		frame.Approved = one.approved
		before := g.runs.Load()
		sendFrame(t, c, frame)
		out := waitResult(t, c, id)
		if !one.runs {
			wantError(t, out, nodes.NotRun, tools.PermissionDenied)
		}
		if ran := g.runs.Load() > before; ran != one.runs || one.runs && out.Status != nodes.Done {
			t.Errorf("%s ran: %v, and it ended with %+v", id, ran, out)
		}
	}
}

func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	f, g := newFakeServer(t), newGate()
	f.run(t.TempDir(), nil, tool("work", tools.Once, g.run))
	c := f.link()
	const most = 8 + 256
	for i := range most + 1 {
		sendFrame(t, c, callFrame(fmt.Sprint(i), "work", `{}`))
		if i < 8 {
			<-g.entered
		}
	}
	wantError(t, waitResult(t, c, fmt.Sprint(most)), nodes.NotRun, tools.ExecutionFailed)
	close(g.open)
	for range most {
		if out := nextFrame(t, c, wire.Result).Outcome; out.Status != nodes.Done {
			t.Errorf("a call ended as %+v", out)
		}
	}
}

func TestCallWithoutArguments(t *testing.T) {
	t.Parallel()
	f, g := newFakeServer(t), newGate()
	close(g.open)
	f.run(t.TempDir(), nil, tool("work", tools.Once, g.run))
	c := f.link()
	sendFrame(t, c, wire.Frame{Type: wire.Call, ID: "1", Tool: "work"})
	if out := waitResult(t, c, "1"); out.Status != nodes.Done {
		t.Errorf("the call ended as %+v, %v", out, out.Error)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t)
	g := newGate()
	f.run(t.TempDir(), nil, tool("fails", tools.Once, func(context.Context, tools.Call) (any, error) {
		return nil, tools.Errorf(tools.FileNotFound, "no such file %s", strings.Repeat("x", 100_000))
	}), tool("odd", tools.Once, func(context.Context, tools.Call) (any, error) { return nil, errors.New("odd") }),
		tool("panics", tools.Once, func(context.Context, tools.Call) (any, error) { panic("oh") }),
		tool("slow", tools.Once, g.run),
		tool("large", tools.Once, func(context.Context, tools.Call) (any, error) {
			return map[string]string{"text": strings.Repeat("<", 2<<20)}, nil
		}))
	c := f.link()
	for id, code := range map[string]tools.Code{"fails": tools.FileNotFound, "odd": tools.ExecutionFailed, "panics": tools.ExecutionFailed, "slow": tools.Timeout} {
		frame := callFrame(id, id, `{}`)
		if id == "slow" {
			frame.Timeout = 1
		}
		sendFrame(t, c, frame)
		wantError(t, waitResult(t, c, id), nodes.Failed, code)
	}
	sendFrame(t, c, callFrame("large", "large", `{}`))
	out := waitResult(t, c, "large")
	if out.Status != nodes.Done || len(out.Content) > nodes.MaxResult || !strings.Contains(string(out.Content), "[cut: ") {
		t.Errorf("the outcome is %s with %d bytes", out.Status, len(out.Content))
	}
}

func TestProgressIsSent(t *testing.T) {
	t.Parallel()
	f, g := newFakeServer(t), newGate()
	f.run(t.TempDir(), nil, tool("work", tools.Once, func(ctx context.Context, call tools.Call) (any, error) {
		call.Progress("half way")
		return g.run(ctx, call)
	}))
	c := f.link()
	sendFrame(t, c, callFrame("1", "work", `{}`))
	if got := nextFrame(t, c, wire.Progress); got.ID != "1" || got.Text != "half way" {
		t.Errorf("got %+v", got)
	}
	close(g.open)
	waitResult(t, c, "1")
}

func TestStopEndsCalls(t *testing.T) {
	t.Parallel()
	f, g, dir := newFakeServer(t), newGate(), t.TempDir()
	all := []tools.Tool{tool("work", tools.Once, g.run), tool("look", tools.Pure, g.run)}
	stop := f.run(dir, nil, all...)
	c := f.link()
	sendFrame(t, c, callFrame("work", "work", `{}`))
	sendFrame(t, c, callFrame("look", "look", `{}`))
	<-g.entered
	<-g.entered
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	f.run(dir, nil, all...)
	c = f.link()
	wantError(t, waitResult(t, c, "work"), nodes.Failed, tools.Cancelled)
	sendFrame(t, c, callFrame("look", "look", `{}`))
	if out := waitResult(t, c, "look"); out.Status != nodes.Done {
		t.Errorf("the call that changes nothing ended as %+v", out)
	}
}

func TestCallThatDoesNotEndInTime(t *testing.T) {
	t.Parallel()
	f, hold := newFakeServer(t), make(chan struct{})
	defer close(hold)
	began := make(chan struct{})
	stop := f.run(t.TempDir(), func(n *device.Node) { n.Timing.StopGrace = time.Millisecond }, tool("stuck", tools.Once, func(context.Context, tools.Call) (any, error) {
		close(began)
		<-hold
		return nil, nil
	}))
	sendFrame(t, f.link(), callFrame("1", "stuck", `{}`))
	<-began
	if err := stop(); !errors.Is(err, device.ErrStuck) {
		t.Errorf("err = %v, want ErrStuck", err)
	}
}

func TestRefusedNodeComesAgain(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t)
	f.refuse.Store(&wire.Refusal{Reason: wire.ReasonRevoked, Text: "an owner has revoked it"})
	said := make(chan string, 100)
	f.run(t.TempDir(), func(n *device.Node) { n.Log = slog.New(logChannel{said}) })
	for text := range said {
		if text == "the server does not accept this node" {
			break
		}
	}
	f.refuse.Store(nil)
	f.link()
}

// logChannel is a log handler that sends messages to a channel.
type logChannel struct{ said chan string }

func (h logChannel) Enabled(context.Context, slog.Level) bool { return true }
func (h logChannel) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h logChannel) WithGroup(string) slog.Handler            { return h }
func (h logChannel) Handle(_ context.Context, r slog.Record) error {
	select {
	case h.said <- r.Message:
	default:
	}
	return nil
}

func TestRunEndsIfRetryingIsUseless(t *testing.T) {
	t.Parallel()
	if err := newNode("http://192.0.2.1", t.TempDir()).Run(t.Context()); !errors.Is(err, wire.ErrNotHTTPS) {
		t.Errorf("err = %v, want ErrPlain", err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal", "calls.jsonl"), []byte("what\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*device.DamagedError](newNode("http://localhost:1", dir).Run(t.Context())); !ok {
		t.Error("it runs with a journal that cannot be read")
	}
}

// runChild runs a node in a process of its own. Its tools add a line to the file "runs", and end only when the file
// "open" exists.
func runChild() {
	address, dir := os.Args[2], os.Args[3]
	work := func(ctx context.Context, call tools.Call) (any, error) {
		f, err := os.OpenFile(filepath.Join(dir, "runs"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Fprintln(f, call.ID); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(dir, "open")); err != nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return "done", f.Close()
	}
	err := newNode(address, dir, tool("work", tools.Once, work), tool("look", tools.Pure, work)).Run(context.Background())
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (f *fakeServer) startChild(dir string) *exec.Cmd {
	f.t.Helper()
	cmd := exec.Command(os.Args[0], "node", f.address, dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// runsOf returns how often each call has begun.
func runsOf(t *testing.T, dir string) map[string]int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	runs := map[string]int{}
	for id := range strings.FieldsSeq(string(raw)) {
		runs[id]++
	}
	return runs
}

func TestKilledNodeRunsNothingTwice(t *testing.T) {
	t.Parallel()
	f, dir := newFakeServer(t), t.TempDir()
	first := f.startChild(dir)
	c := f.link()
	sendFrame(t, c, callFrame("work", "work", `{}`))
	sendFrame(t, c, callFrame("look", "look", `{}`))
	for deadline := time.After(30 * time.Second); len(runsOf(t, dir)) < 2; {
		select {
		case <-deadline:
			t.Fatal("the calls do not begin")
		case <-time.After(time.Millisecond):
		}
	}
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	if err := os.WriteFile(filepath.Join(dir, "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.startChild(dir)
	c = f.link()
	sendFrame(t, c, callFrame("work", "work", `{}`))
	wantError(t, waitResult(t, c, "work"), nodes.Unknown, tools.OutcomeUnknown)
	sendFrame(t, c, callFrame("look", "look", `{}`))
	if out := waitResult(t, c, "look"); out.Status != nodes.Done {
		t.Errorf("the call that changes nothing ended as %+v", out)
	}
	if runs := runsOf(t, dir); runs["work"] != 1 || runs["look"] != 2 {
		t.Errorf("the calls ran %v times", runs)
	}
}

func TestCancelEndsChildAndGrandchild(t *testing.T) {
	t.Parallel()
	box, err := sandbox.Open(t.Context(), sandbox.Config{Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have a sandbox: %v", err)
	}
	workspace := t.TempDir()
	f := newFakeServer(t)
	f.run(t.TempDir(), nil, shell.New(shell.Config{
		Sandbox: box, Changed: func(tools.Call) {},
		Place: func(context.Context, tools.Call) (sandbox.Place, error) {
			return sandbox.Place{Workspace: workspace, Quota: sandbox.Quota{Bytes: 10 << 20, Items: 1000}}, nil
		},
	})...)
	c := f.link()
	for _, one := range []struct {
		id      string
		timeout int64
		code    tools.Code
	}{{"cancelled", 0, tools.Cancelled}, {"late", 3000, tools.Timeout}} {
		frame := callFrame(one.id, "exec_shell", `{"command":"(exec 9>lock; flock 9; echo locked; sleep 1000) & wait"}`)
		frame.Timeout = one.timeout
		sendFrame(t, c, frame)
		if one.timeout == 0 {
			nextFrame(t, c, wire.Progress) // the grandchild has the lock
			sendFrame(t, c, wire.Frame{Type: wire.Cancel, ID: one.id})
		}
		wantError(t, waitResult(t, c, one.id), nodes.Failed, one.code)
		lock, err := os.Open(filepath.Join(workspace, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			t.Errorf("%s: what the command has started lives on: %v", one.id, err)
		}
		_ = lock.Close()
	}
}
