//go:build linux

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/pins"
	"parley/tools/mcp/signin"
)

// fromNPM returns the program of an npm package, and the folder of all packages.
func fromNPM(t *testing.T, name string) (program, dir string) {
	t.Helper()
	dir = os.Getenv("PARLEY_TEST_MCP")
	if dir == "" {
		t.Skip("NOT TESTED: make mcp runs this beside what npm has")
	}
	program, err := filepath.EvalSymlinks(filepath.Join(dir, "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	return program, dir
}

// npmServer returns the configuration of a server from npm.
func npmServer(t *testing.T, name, program string, args ...string) mcp.Server {
	t.Helper()
	runtime, _ := fromNPM(t, "node")
	script, _ := fromNPM(t, program)
	return mcp.Server{Name: name, Command: append([]string{runtime, script}, args...)}
}

func readNPM(c *mcp.Config) { c.Limits.Connect = time.Minute }

// The most widely used file server, in the sandbox: it reads and writes in its conversation's folder, and nowhere else.
func TestTheFilesystemServer(t *testing.T) {
	s := newFixture(t, readNPM, npmServer(t, "files", "mcp-server-filesystem", "."))
	s.call("one", "files__write_file", `{"path":"note.txt","content":"the treasure"}`)
	if raw, err := os.ReadFile(filepath.Join(s.workspace("one"), "note.txt")); err != nil || string(raw) != "the treasure" {
		t.Errorf("it wrote %q, %v", raw, err)
	}
	if got := s.call("one", "files__read_text_file", `{"path":"note.txt"}`); !strings.Contains(got, "the treasure") {
		t.Errorf("it reads %s", got)
	}
	s.call("one", "files__edit_file", `{"path":"note.txt","edits":[{"oldText":"treasure","newText":"map"}]}`)
	if got := s.call("one", "files__read_text_file", `{"path":"note.txt"}`); !strings.Contains(got, "the map") {
		t.Errorf("afterwards it reads %s", got)
	}
	if got := s.call("one", "files__list_directory", `{"path":"."}`); !strings.Contains(got, "note.txt") {
		t.Errorf("it lists %s", got)
	}
	s.wantFailure("one", "files__read_text_file", `{"path":"/etc/passwd"}`, tools.ExecutionFailed, "denied")
	s.wantFailure("two", "files__read_text_file", `{"path":"note.txt"}`, tools.ExecutionFailed, "ENOENT")
}

// The server that uses all features of the protocol, as a program and as a service.
func TestTheEverythingServer(t *testing.T) {
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) {
			one := npmServer(t, "all", "mcp-server-everything")
			if over == "http" {
				one = mcp.Server{Name: "all", URL: everythingOverHTTP(t)}
			}
			testEverything(t, newFixture(t, readNPM, one), over)
		})
	}
}

func testEverything(t *testing.T, s *fixture, over string) {
	t.Helper()
	if got := s.call("a", "all__echo", `{"message":"hello"}`); !strings.Contains(got, "hello") {
		t.Errorf("it echoes %s", got)
	}
	if got := s.call("a", "all__get-sum", `{"a":2,"b":40}`); !strings.Contains(got, "42") {
		t.Errorf("the sum is %s", got)
	}
	if got := s.call("a", "all__get-structured-content", `{"location":"New York"}`); !strings.Contains(got, `"temperature"`) {
		t.Errorf("structured content is %s", got)
	}
	r, err := s.tryCall(t.Context(), "a", "all__get-tiny-image", `{}`)
	if err != nil || len(r.Pictures) != 1 {
		t.Errorf("a picture is %s with %d pictures, %v", r.Content, len(r.Pictures), err)
	}
	if got := s.call("a", "all__get-resource-reference", `{"resourceType":"Text","resourceId":1}`); !strings.Contains(got, "demo://") {
		t.Errorf("a resource is %s", got)
	}
	if got := s.call("a", "all__get-env", `{}`); over == "stdio" && strings.Contains(got, "PARLEY_TEST_MCP") {
		t.Errorf("it sees what this process has: %s", got)
	}
	// Features that would ask a person or a model are not offered to the server.
	for _, name := range s.names("all") {
		if strings.Contains(name, "sampling") || strings.Contains(name, "elicitation") || strings.Contains(name, "roots") {
			t.Errorf("%s is offered to models", name)
		}
	}
	s.wantFailure("a", "all__get-sum", `{"a":"two","b":1}`, tools.ExecutionFailed, "expected number")
	testSlowCalls(t, s)
}

// testSlowCalls calls a tool that takes long: it reports progress, and can be canceled.
func testSlowCalls(t *testing.T, s *fixture) {
	t.Helper()
	const name = "all__trigger-long-running-operation"
	tool := s.tool(name)
	told := make(chan string, 100)
	call := tools.Call{ID: "slow", Name: name, Session: "a", Args: json.RawMessage(`{"duration":1,"steps":2}`), Progress: func(text string) { told <- text }}
	if r, err := tool.Run(t.Context(), call); err != nil || !strings.Contains(string(r.Content), "completed") {
		t.Errorf("what takes long gave %s, %v", r.Content, err)
	}
	select {
	case <-told:
	default:
		t.Error("nobody is told how far it is")
	}
	ctx, cancel := context.WithCancel(t.Context())
	call = tools.Call{ID: "cancelled", Name: name, Session: "a", Args: json.RawMessage(`{"duration":600,"steps":1200}`), Progress: func(string) { cancel() }}
	if _, err := tool.Run(ctx, call); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call ended with %v", err)
	}
	if got := s.call("a", "all__echo", `{"message":"still here"}`); !strings.Contains(got, "still here") {
		t.Errorf("afterwards it echoes %s", got)
	}
}

// everythingOverHTTP runs the server on a free port, and returns its URL.
func everythingOverHTTP(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	runtime, _ := fromNPM(t, "node")
	script, _ := fromNPM(t, "mcp-server-everything")
	cmd := exec.Command(runtime, script, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitFor(t, "the server to listen", func() bool {
		c, err := net.DialTimeout("tcp", at, time.Second)
		if err == nil {
			err = c.Close()
		}
		return err == nil
	})
	return "http://" + at + "/mcp"
}

// The official conformance suite. A scenario that fails is tried again alone, because some measure time.
func TestConformance(t *testing.T) {
	runtime, dir := fromNPM(t, "node")
	suite, _ := fromNPM(t, "conformance")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) map[string][]string {
		out := t.TempDir()
		cmd := exec.CommandContext(t.Context(), runtime, append([]string{suite, "client", "--command", self + " conformance", "-o", out}, args...)...)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatalf("the suite cannot be run: %v\n%s", err, said)
		}
		return failures(t, out, string(said))
	}
	first := run("--suite", "core")
	maps.Copy(first, run("--suite", "draft"))
	if len(first) < 21 {
		t.Fatalf("the suite ran %d scenarios", len(first))
	}
	for scenario, failed := range first {
		for range 2 {
			if len(failed) > 0 {
				failed = run("--scenario", scenario)[scenario]
			}
		}
		if len(failed) > 0 {
			t.Errorf("%s:\n%s", scenario, strings.Join(failed, "\n"))
			continue
		}
		t.Logf("%s passes", scenario)
	}
}

// failures returns the failed checks of each scenario.
func failures(t *testing.T, dir, said string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []struct{ ID, Description, Status, ErrorMessage string }
		if err := json.Unmarshal(raw, &checks); err != nil {
			return err
		}
		scenario, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		scenario = scenario[:strings.LastIndex(scenario, "-20")] // the time follows
		found[scenario] = nil
		passed := 0
		for _, c := range checks {
			switch c.Status {
			case "FAILURE":
				stderr, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stderr.txt"))
				found[scenario] = append(found[scenario], fmt.Sprintf("%s: %s: %s\n%s", c.ID, c.Description, c.ErrorMessage, stderr))
			case "SUCCESS":
				passed++
			}
		}
		if passed == 0 && found[scenario] == nil {
			found[scenario] = []string{"nothing was checked"}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read what came of it: %v\n%s", err, said)
	}
	return found
}

// conform is the client that the suite runs: Servers with one service, whose tools are listed and called. If the
// service requires it, an owner signs in with a browser that asks nothing.
func conform(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &given); err != nil {
			return err
		}
	}
	kept := &memory{notes: map[[2]string]string{}}
	signIn := signin.New(signin.Config{
		Store: kept, RunAlone: func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) },
		Redirect: func(string) string { return "http://localhost:3000/callback" }, ClientIDURL: "https://conformance-test.local/client-metadata.json",
	})
	s := mcp.New(mcp.Config{
		Servers: []mcp.Server{{Name: "it", URL: url, Defaults: true, ClientID: given.ClientID, ClientSecret: given.ClientSecret}},
		Pins:    pins.New(kept), SignIn: signIn, Version: "test", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	_, err := s.Check(ctx, "it")
	if wantsSignIn(err) {
		if err = browse(ctx, s, signIn); err == nil {
			_, err = s.Check(ctx, "it")
		}
	}
	for _, tool := range s.Tools("it") {
		err = errors.Join(err, conformCall(ctx, s, signIn, tool))
	}
	ended, stop := context.WithCancel(ctx)
	stop()
	return errors.Join(err, s.Run(ended))
}

func wantsSignIn(err error) bool {
	_, ok := errors.AsType[*mcp.SignInNeededError](err)
	return ok
}

// conformCall calls a tool. If the service requires more permissions for that, an owner grants them, twice at most.
func conformCall(ctx context.Context, s *mcp.Servers, signIn *signin.Client, tool tools.Tool) error {
	for try := 0; ; try++ {
		result, err := tool.Run(ctx, tools.Call{ID: "c", Session: "s", Name: tool.Spec().Name, Args: conformArgs(tool.Spec())})
		fmt.Printf("%s gave %s, %v\n", tool.Spec().Name, result.Content, err)
		if err == nil || try == 2 || !wantsSignIn(s.States()[0].Err) {
			return err
		}
		if err := browse(ctx, s, signIn); err != nil {
			return err
		}
	}
}

// browse acts as an owner with a browser.
func browse(ctx context.Context, s *mcp.Servers, signIn *signin.Client) error {
	server, err := s.SignInServer("it")
	if err != nil {
		return err
	}
	begun, err := signIn.Begin(ctx, server, "")
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, begun.URL, nil)
	if err != nil {
		return err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	at, err := answer.Location()
	if err != nil {
		return err
	}
	if err := signIn.Finish(ctx, "it", at.Query()); err != nil {
		return err
	}
	s.SignedIn("it")
	return nil
}

// conformArgs returns arguments that match a schema: numbers.
func conformArgs(spec tools.Spec) json.RawMessage {
	var schema struct{ Required []string }
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		panic(err)
	}
	args := map[string]any{}
	for i, name := range slices.Sorted(slices.Values(schema.Required)) {
		args[name] = 5 - 2*i
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return raw
}
