//go:build linux

package node_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/node"
	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/placed"
	"parley/tools/nodes/wire"
	"parley/tools/sandbox"
	"parley/tools/testrace"
)

func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	if len(os.Args) > 3 && os.Args[1] == "stdio" {
		if err := runStdio(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testrace.Run(m.Run))
}

func seed(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) []byte { return k.Public().(ed25519.PublicKey) }

// A fakeServer lets devices join with the code "good", and accepts their links.
type fakeServer struct {
	*httptest.Server
	key    []byte // the key of the last device that joined
	links  chan *wire.Conn
	offers chan nodes.Offer
}

func newServer(t *testing.T) *fakeServer {
	t.Helper()
	s := &fakeServer{links: make(chan *wire.Conn, 10), offers: make(chan nodes.Offer, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /at/"+wire.JoinPath, func(w http.ResponseWriter, r *http.Request) {
		var asked wire.JoinRequest
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		refuse := func(status int, code string) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"code":%q,"message":"the server's words"}}`, code)
		}
		switch {
		case asked.Code == "busy":
			refuse(http.StatusTooManyRequests, "too_many")
		case asked.Code != "good":
			refuse(http.StatusForbidden, wire.RefusedCode)
		case asked.Name == "taken":
			refuse(http.StatusConflict, wire.RefusedName)
		case asked.Name == "Odd":
			refuse(http.StatusUnprocessableEntity, wire.RefusedForm)
		default:
			s.key = asked.Key
			_ = json.NewEncoder(w).Encode(wire.JoinAnswer{Name: asked.Name, Key: public(seed('s'))})
		}
	})
	mux.HandleFunc("/at/v1/nodes/link", func(w http.ResponseWriter, r *http.Request) {
		g, err := wire.Server{Key: seed('s'), Lookup: func(context.Context, string) ([]byte, error) { return s.key, nil }}.Accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		s.offers <- g.Offer
		if c, err := g.Welcome(); err == nil {
			s.links <- c
		}
	})
	mux.Handle("/moved/", http.RedirectHandler("https://elsewhere.example.org/", http.StatusFound))
	mux.HandleFunc("/other/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func load(t *testing.T, home, text string) *config.Config {
	t.Helper()
	if err := os.WriteFile(filepath.Join(home, "parley.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Home: home, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestJoinKeepsWhatTheNodeNeeds(t *testing.T) {
	t.Parallel()
	s, home := newServer(t), filepath.Join(t.TempDir(), "new")
	key, m, err := node.Join(t.Context(), home, s.URL+"/at/", "good", "pi")
	if err != nil {
		t.Fatal(err)
	}
	if m.Server != s.URL+"/at" || m.Name != "pi" || !bytes.Equal(m.ServerKey, public(seed('s'))) || !bytes.Equal(key, s.key) || !node.Joined(home) {
		t.Errorf("the node knows %+v", m)
	}
	for _, name := range []string{"node.key", "node.json"} {
		if info, err := os.Stat(filepath.Join(home, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	// A second join with the same code, as after a crash, gets the same device.
	if again, _, err := node.Join(t.Context(), home, s.URL+"/at", "good", "pi"); err != nil || !bytes.Equal(again, key) {
		t.Errorf("the device has another key, %v", err)
	}
}

func TestJoinSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, c := range []struct{ url, code, name, says string }{
		{s.URL + "/at", "bad", "pi", "parley nodes invite"},
		{s.URL + "/at", "good", "taken", "--name"},
		{s.URL + "/at", "good", "Odd", "can't be the name"},
		{s.URL + "/at", "busy", "pi", "the server's words"},
		{s.URL + "/nowhere", "good", "pi", "404"},
		{s.URL + "/moved", "good", "pi", "https://elsewhere.example.org/"},
		{s.URL + "/other", "good", "pi", "not like a Parley server"},
		{"http://192.0.2.1", "good", "pi", "isn't https"},
		{"parley.example.org", "good", "pi", "https://parley.example.org"},
		{"http://127.0.0.1:1", "good", "pi", "can't reach 127.0.0.1:1"},
	} {
		home := t.TempDir()
		_, _, err := node.Join(t.Context(), home, c.url, c.code, c.name)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("join %s as %s: %v, want an error with %q", c.url, c.name, err, c.says)
		}
		if node.Joined(home) {
			t.Errorf("join %s as %s: it counts as joined", c.url, c.name)
		}
	}
}

func TestJoinThroughSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	long := "aaaaa-aaaaa-" + strings.Repeat("a", 26)
	for _, c := range []struct{ url, code, name, says string }{
		{"mqtt://127.0.0.1:1", "aaaaa-aaaaa", "pi", "the longer code"},
		{"mqtt://127.0.0.1:1", long, "+", "can't be the name"},
		{"mqtt://127.0.0.1:1", long, "pi", "can't reach 127.0.0.1:1"},
		{"mqtt://pi:secret@127.0.0.1", long, "pi", "isn't the address of a broker"},
		{"mqtts:", long, "pi", "isn't the address of a broker"},
	} {
		home := t.TempDir()
		_, _, err := node.JoinThrough(t.Context(), load(t, home, ""), c.url, c.code, c.name)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("join %s as %s: %v, want an error with %q", c.url, c.name, err, c.says)
		}
		if !node.IsBroker(c.url) || node.Joined(home) {
			t.Errorf("join %s as %s: it counts as joined, or as a server's address", c.url, c.name)
		}
	}
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	run := func(c *config.Config) error { return node.Run(t.Context(), c, "1.0", quiet()) }
	home := t.TempDir()
	if err := run(load(t, home, "")); !isSetup(err, "node join") {
		t.Errorf("without having joined: %v", err)
	}
	s := newServer(t)
	if _, _, err := node.Join(t.Context(), home, s.URL+"/at", "good", "pi"); err != nil {
		t.Fatal(err)
	}
	if err := run(load(t, home, "[node]\nname = \"other\"\n")); !isSetup(err, `"pi"`) {
		t.Errorf("with another name: %v", err)
	}
	if err := run(load(t, home, "[node]\nserver = \"http://192.0.2.1\"\n")); !isSetup(err, "isn't https") {
		t.Errorf("with a plain address: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(home, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "journal", "calls.jsonl"), []byte("what\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(load(t, home, "")); !isSetup(err, "calls.jsonl") {
		t.Errorf("with a damaged journal: %v", err)
	}
	if err := os.WriteFile(filepath.Join(home, "node.key"), []byte("what"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(load(t, home, "")); !isSetup(err, "node.key") {
		t.Errorf("with a damaged key: %v", err)
	}
}

func isSetup(err error, says string) bool {
	wrong, ok := errors.AsType[*node.SetupError](err)
	return ok && strings.Contains(wrong.Error(), says)
}

// call sends the node a call and returns its outcome.
func call(t *testing.T, c *wire.Conn, tool, args string) nodes.Outcome {
	t.Helper()
	id := tool + args
	if err := c.Write(wire.Frame{Type: wire.Call, ID: id, Tool: tool, Args: json.RawMessage(args)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		f, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.Result && f.ID == id {
			return *f.Outcome
		}
	}
}

const skillManifest = `[[tools]]
name = "bash"
binary = "bin/dt-bash"
description = "Execute shell commands"
sandboxing = "firejail"
[tools.parameters.properties.command]
type = "string"
`

func TestNodeRunsCallsInItsWorkspace(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("", "parley-node-") // run by root, commands run as another user, who must be able to enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"SKILL.md": "---\nname: gpio\ndescription: pins\n---\nPins.\n", "skill.toml": skillManifest, "bin/dt-bash": "#!/bin/sh\necho \"flags $*\"\n"} {
		path := filepath.Join(home, "skills", "gpio", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(t)
	if _, _, err := node.Join(t.Context(), home, s.URL+"/at", "good", "pi"); err != nil {
		t.Fatal(err)
	}
	c := load(t, home, "[node]\nskills = \"skills\"\ncamera = [\"printf\", '\\211PNG\\r\\n\\032\\n']\ndeny = [\"exec_shell(shutdown *)\", \"read_file(secret*)\"]\n")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx, c, "1.0", quiet()) }()
	offer, link := <-s.offers, <-s.links
	defer link.Close()
	if err := node.Run(t.Context(), c, "1.0", quiet()); err == nil || !strings.Contains(err.Error(), "is already running here") {
		t.Errorf("a second node on the same home: %v", err)
	}

	if out := call(t, link, "write_file", `{"path":"a/b.txt","content":"hello"}`); out.Status != nodes.Done {
		t.Errorf("write_file: %+v", out)
	}
	if raw, err := os.ReadFile(filepath.Join(home, "workspace", "a", "b.txt")); err != nil || string(raw) != "hello" {
		t.Errorf("the file has %q, %v", raw, err)
	}
	if out := call(t, link, "read_file", `{"path":"../node.key"}`); out.Status != nodes.Failed || out.Error.Code != tools.InvalidPath {
		t.Errorf("a file outside: %+v", out)
	}
	if out := call(t, link, "read_file", `{"path":"./secret.txt"}`); out.Status != nodes.NotRun || out.Error.Code != tools.PermissionDenied {
		t.Errorf("a file that a rule denies: %+v", out)
	}
	if out := call(t, link, "camera_picture", `{}`); out.Status != nodes.Done || !strings.Contains(string(out.Content), `"picture_base64":"iVBORw0KGgo="`) {
		t.Errorf("camera_picture: %+v %s", out, out.Content)
	}
	if !slices.Contains(offer.Capabilities, "files") || !slices.Contains(offer.Capabilities, "camera") || offer.Release != "1.0" {
		t.Errorf("the offer is %+v", offer)
	}
	for _, s := range placed.Offered(slices.Contains(offer.Capabilities, "exec")) { // as servers do for ssh:// targets
		i := slices.IndexFunc(offer.Tools, func(o nodes.Tool) bool { return o.Name == s.Name })
		if i < 0 || offer.Tools[i].Description != s.Description || string(offer.Tools[i].Schema) != string(s.Schema) || offer.Tools[i].Pure != (s.Effect == tools.Pure) {
			t.Errorf("servers know another %s than the node offers", s.Name)
		}
	}
	if slices.Contains(offer.Capabilities, "exec") {
		checkCommands(t, link)
	} else {
		t.Log("NOT TESTED: no sandbox works on this machine")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// checkCommands tries the tools that need a sandbox.
func checkCommands(t *testing.T, link *wire.Conn) {
	t.Helper()
	if out := call(t, link, "exec_shell", `{"command":"echo more >> a/b.txt; cat a/b.txt; ls .."}`); out.Status != nodes.Done || !strings.Contains(string(out.Content), "hellomore") || strings.Contains(string(out.Content), "node.key") {
		t.Errorf("exec_shell: %+v %s", out, out.Content)
	}
	for _, denied := range []string{`{"command":"true && shutdown now"}`, `{"command":"$X now"}`} {
		if out := call(t, link, "exec_shell", denied); out.Status != nodes.NotRun || out.Error.Code != tools.PermissionDenied {
			t.Errorf("%s: %+v", denied, out)
		}
	}
	if out := call(t, link, "exec_shell", `{"command":"true","background":true}`); out.Status != nodes.NotRun || out.Error.Code != tools.InvalidArgs {
		t.Errorf("a command in the background: %+v", out)
	}
	if out := call(t, link, "gpio__bash", `{"command":"vcgencmd measure_temp"}`); out.Status != nodes.Done || !strings.Contains(string(out.Content), "flags --command=vcgencmd measure_temp") {
		t.Errorf("the tool of a skill: %+v %s", out, out.Content)
	}
}
