package nodelinks_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
	"parley/cmd/parley/hometest"
	"parley/cmd/parley/server/nodelinks"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/placed"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A stage is the part of nodes over a home, with the notices that it has sent the owners.
type stage struct {
	*nodelinks.Nodes
	t       *testing.T
	current atomic.Pointer[config.Config]
	mu      sync.Mutex
	told    []string
	broken  bool // whether notices to the owners fail
}

// newStage returns a stage with these settings and an agent's own tools.
func newStage(t *testing.T, settings *config.Config, own ...tools.Spec) *stage {
	t.Helper()
	if own == nil {
		own = []tools.Spec{ownTool("read_file", tools.FileRead).Spec(), ownTool("exec_shell", tools.Shell).Spec(), ownTool("spawn", tools.Shell).Spec()}
	}
	h := hometest.Open(t, t.TempDir())
	s := &stage{t: t}
	s.current.Store(settings)
	s.Nodes = nodelinks.New(nodelinks.Config{
		Settings: s.current.Load, Table: h.Store.Nodes(), Notes: h.Book, Events: h.Bus, Holds: h.Bus, Ready: func(context.Context) (string, error) { return "", nil },
		Terminal: func(session string) bool { return strings.Contains(session, "console") }, Count: func(string, string, time.Duration) {}, Links: true,
		Placed: own, Left: []string{"git_status"},
		Tell: func(_ context.Context, _, text string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.broken {
				return errors.New("nobody is there")
			}
			s.told = append(s.told, text)
			return nil
		},
		Log: slog.New(slog.DiscardHandler),
	})
	return s
}

// ask sends a request to the part's routes.
func (s *stage) ask(method, path, body string) (status int, answer string) {
	s.t.Helper()
	mux := http.NewServeMux()
	bodies := exchange.NewBodyReader(time.Minute, time.Minute)
	for _, route := range s.Routes() {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			a := exchange.New(w, r, bodies, time.Minute)
			if err := route.Serve(a, r); err != nil {
				refused, ok := errors.AsType[*exchange.Refusal](err)
				if !ok {
					s.t.Error(err)
				}
				a.Refuse(refused)
			}
		})
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A device is a device that has joined.
type device struct {
	s      *stage
	name   string
	key    ed25519.PrivateKey
	server []byte
	ask    []string // its rules about which calls need an approval
}

// joinBody returns the body of a request to join.
func joinBody(t *testing.T, code, name string, key []byte) string {
	t.Helper()
	raw, err := plainjson.Marshal(wire.JoinRequest{Code: code, Name: name, Key: key})
	must(t, err)
	return string(raw)
}

// join makes a device join.
func (s *stage) join(name string) *device {
	s.t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	must(s.t, err)
	var invited nodelinks.Invitation
	status, answer := s.ask("POST", "/v1/nodes/invite", "")
	if status != http.StatusOK {
		s.t.Fatal(answer)
	}
	must(s.t, json.Unmarshal([]byte(answer), &invited))
	var joined wire.JoinAnswer
	for range 2 { // the second time as if the first answer was lost
		if status, answer = s.ask("POST", "/v1/nodes/join", joinBody(s.t, invited.Code, name, public)); status != http.StatusOK {
			s.t.Fatal(answer)
		}
	}
	must(s.t, json.Unmarshal([]byte(answer), &joined))
	return &device{s: s, name: name, key: key, server: joined.Key}
}

// offer opens a link, announces these tools and capabilities, and closes the link.
func (d *device) offer(capabilities []string, names ...string) {
	t := d.s.t
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(d.s.ServeLink))
	defer server.Close()
	o := toolnodes.Offer{Capabilities: capabilities, Ask: d.ask}
	for _, name := range names {
		o.Tools = append(o.Tools, toolnodes.Tool{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object"}`)})
	}
	conn, err := wire.Node{Server: server.URL, ServerKey: d.server, Name: d.name, Key: d.key, Offer: o}.Dial(t.Context())
	must(t, err)
	conn.Close()
	for found, err := d.s.Find(t.Context(), d.name); found.Process != ""; found, err = d.s.Find(t.Context(), d.name) {
		must(t, err)
	}
	must(t, d.s.Load(t.Context()))
}

// accept accepts a node as an owner.
func (s *stage) accept(name string) {
	s.t.Helper()
	if status, answer := s.ask("POST", "/v1/nodes/"+name+"/accept", "{}"); status != http.StatusOK {
		s.t.Fatal(answer)
	}
	must(s.t, s.Load(s.t.Context()))
}

// settings returns a configuration with an MCP server, in which the agent main may use two nodes.
func settings() *config.Config {
	return &config.Config{
		MCP:    map[string]config.MCPServer{"github": {}},
		Nodes:  map[string]config.Node{"pi": {Agents: []string{"main"}, Trusted: true}, "cam": {Agents: []string{"main"}}},
		Agents: map[string]config.Agent{"main": {}, "other": {Nodes: []string{}}},
	}
}

func names(set *tools.Set) (all []string) {
	for _, spec := range set.Specs() {
		all = append(all, spec.Name)
	}
	return all
}

// Agents have the accepted tools of the nodes that they may use, whether or not the nodes are connected. Each set of
// tools is built once.
func TestToolsOfNodes(t *testing.T) {
	s := newStage(t, settings())
	base := tools.NewSet(tools.New(tools.Spec{Name: "pi__taken"}, func(context.Context, tools.Call, struct{}) (any, error) { return nil, nil }))
	if got := s.With(base, "main", false); got != base {
		t.Errorf("without nodes there are %v", names(got))
	}
	s.join("pi").offer(nil, "exec_shell", "taken")
	if got := s.With(base, "main", false); got != base {
		t.Errorf("before it is accepted there are %v", names(got))
	}
	s.accept("pi")
	s.join("lab").offer(nil, "exec_shell")
	s.accept("lab")
	got := s.With(base, "main", false)
	if want := []string{"nodes", "pi__exec_shell", "pi__taken"}; !slices.Equal(names(got), want) {
		t.Errorf("there are %v, want %v", names(got), want)
	}
	if one, _ := got.Lookup("pi__taken"); one != first(base.Lookup("pi__taken")) {
		t.Error("a node has replaced another tool")
	}
	if s.With(base, "main", false) != got {
		t.Error("the set is made twice")
	}
	if got := s.With(base, "other", false); got != base {
		t.Errorf("another agent has %v", names(got))
	}
	if want := []string{"lab__exec_shell", "nodes", "pi__exec_shell", "pi__taken"}; !slices.Equal(names(s.With(base, "other", true)), want) {
		t.Errorf("in the owner's terminal there are %v", names(s.With(base, "other", true)))
	}
	if status, answer := s.ask("POST", "/v1/nodes/pi/revoke", ""); status != http.StatusOK || !strings.Contains(answer, `"revoked"`) {
		t.Error(answer)
	}
	must(t, s.Load(t.Context()))
	if got := s.With(base, "main", false); got != base {
		t.Errorf("after it is removed there are %v", names(got))
	}
}

func first[A any](a A, _ bool) A { return a }

// A call through the tool nodes gets the same decision as a call of the tool itself.
func TestRulesHoldForTheToolNodes(t *testing.T) {
	s := newStage(t, settings())
	s.join("cam").offer([]string{"camera"}, "snap")
	s.accept("cam")
	deny := func(of string) func(tools.Call) tools.Verdict {
		return func(call tools.Call) tools.Verdict {
			if call.Name == of && strings.Contains(string(call.Args), `"loud"`) {
				return tools.Verdict{Decision: tools.Deny, Reason: "no"}
			}
			return tools.Verdict{}
		}
	}
	never := func(tools.Call) bool { return false }
	for i, c := range []struct {
		node   string
		decide func(tools.Call) tools.Verdict
		judges func(tools.Call) bool
		want   tools.Decision
	}{
		{"cam", deny("cam__snap"), never, tools.Deny},
		{"any:camera", deny("cam__snap"), never, tools.Deny},
		{"any:printer", deny("cam__snap"), never, ""},
		{"unheard-of", deny("unheard-of__snap"), never, tools.Deny},
		{"cam", deny("pi__snap"), never, ""},
		{"cam", deny("nodes"), never, tools.Deny},
		{"cam", deny("x"), func(call tools.Call) bool { return call.Name == "cam__snap" }, tools.Ask},
	} {
		call := tools.Call{Name: "nodes", Args: json.RawMessage(fmt.Sprintf(`{"action":"invoke","node":%q,"tool":"snap","args":{"how":"loud"}}`, c.node))}
		if got := s.Decide(call, c.judges, c.decide); got.Decision != c.want {
			t.Errorf("%d: %+v, want %q", i, got, c.want)
		}
	}
	call := tools.Call{Name: "nodes", Args: json.RawMessage(`{"action":"invoke","node":"any:camera","tool":"snap"}`)}
	if got := s.ToolNames(call); !slices.Contains(got, "cam__snap") || !slices.Contains(got, "nodes") {
		t.Errorf("it counts for %v", got)
	}
	if got := s.ToolNames(tools.Call{Name: "nodes", Args: json.RawMessage(`{"action":"list"}`)}); !slices.Equal(got, []string{"nodes"}) {
		t.Errorf("a list counts for %v", got)
	}
}

// A node's rules make its calls wait for an approval, whether they come directly or through the tool nodes. The
// operator's own rules come first.
func TestANodeWantsItsCallsApproved(t *testing.T) {
	c := settings()
	c.Agents["ops"] = config.Agent{RunsOn: "node:pi"}
	s := newStage(t, c, placed.Tools()...)
	d := s.join("pi")
	d.ask = []string{"exec_shell(rm *)", "snap", "look(*door*)", "read_file(secrets/*)"}
	d.offer([]string{"camera"}, "exec_shell", "snap", "look", "read_file")
	s.accept("pi")
	s.join("cam").offer(nil, "snap")
	s.accept("cam")
	for _, one := range []struct {
		session, tool, args string
		given, want         tools.Decision
	}{
		{"main:telegram:1", "pi__snap", `{}`, "", tools.Ask},
		{"main:telegram:1", "pi__snap", `{}`, tools.Allow, tools.Ask},
		{"main:telegram:1", "pi__snap", `{}`, tools.Deny, tools.Deny},
		{"main:telegram:1", "cam__snap", `{}`, "", ""},
		{"main:telegram:1", "pi__exec_shell", `{"command":"rm -rf x"}`, "", tools.Ask},
		{"main:telegram:1", "pi__exec_shell", `{"command":"ls"}`, "", ""},
		{"main:telegram:1", "pi__look", `{"at":"the door"}`, "", tools.Ask},
		{"main:telegram:1", "pi__look", `{"at":"the window"}`, "", ""},
		{"main:telegram:1", "pi__read_file", `{"path":"/workspace/x/../secrets/key"}`, "", tools.Ask},
		{"main:telegram:1", "pi__read_file", `{"path":"x"}`, "", ""},
		{"main:telegram:1", "exec_shell", `{"command":"rm -rf x"}`, "", ""},
		{"ops:telegram:1", "exec_shell", `{"command":"rm -rf x"}`, "", tools.Ask},
		{"main:telegram:1", "nodes", `{"action":"invoke","node":"pi","tool":"exec_shell","args":{"command":"rm x"}}`, "", tools.Ask},
		{"main:telegram:1", "nodes", `{"action":"invoke","node":"any:camera","tool":"snap"}`, "", tools.Ask},
		{"main:telegram:1", "nodes", `{"action":"invoke","node":"cam","tool":"snap"}`, "", ""},
	} {
		call := tools.Call{Session: one.session, Name: one.tool, Args: json.RawMessage(one.args)}
		got := s.Decide(call, func(tools.Call) bool { return false }, func(tools.Call) tools.Verdict { return tools.Verdict{Decision: one.given} })
		if got.Decision != one.want {
			t.Errorf("%s %s in %s: %+v, want %q", one.tool, one.args, one.session, got, one.want)
		}
	}
	d.ask = []string{"snap(((", "\x00"}
	d.offer(nil, "exec_shell", "snap", "look", "read_file")
	got := s.Decide(tools.Call{Session: "main:telegram:1", Name: "pi__read_file", Args: json.RawMessage(`{"path":"x"}`)}, func(tools.Call) bool { return false }, func(tools.Call) tools.Verdict { return tools.Verdict{} })
	if got.Decision != tools.Ask || len(s.told) != 2 {
		t.Errorf("with rules that can't be read: %+v; the owners were told %q", got, s.told)
	}
}

// The settings of a node name the approvers of its calls, whether they come directly or through the tool nodes.
func TestApproversOfANode(t *testing.T) {
	c := settings()
	c.Nodes = map[string]config.Node{"pi": {Approvers: []string{"telegram:1", "slack:U2"}}, "cam": {Approvers: []string{"slack:U2"}}, "shut": {Approvers: []string{}}, "lab": {}}
	c.Agents["ops"] = config.Agent{RunsOn: "node:pi"}
	s := newStage(t, c)
	for _, name := range []string{"pi", "cam"} {
		s.join(name).offer([]string{"camera"}, "snap")
		s.accept(name)
	}
	for _, one := range []struct {
		session, tool, args string
		want                []string
	}{
		{"main:telegram:1", "pi__snap", `{}`, []string{"telegram:1", "slack:U2"}},
		{"main:telegram:1", "shut__snap", `{}`, []string{}},
		{"main:telegram:1", "lab__snap", `{}`, nil},
		{"main:telegram:1", "pip__snap", `{}`, nil},
		{"main:telegram:1", "exec_shell", `{}`, nil},
		{"ops:telegram:1", "exec_shell", `{}`, []string{"telegram:1", "slack:U2"}},
		{"ops:telegram:1", "web_fetch", `{}`, nil},
		{"main:telegram:1", "nodes", `{"action":"invoke","node":"pi","tool":"snap"}`, []string{"telegram:1", "slack:U2"}},
		{"main:telegram:1", "nodes", `{"action":"invoke","node":"any:camera","tool":"snap"}`, []string{"slack:U2"}},
		{"main:telegram:1", "nodes", `{"action":"list"}`, nil},
	} {
		got := s.Approvers(tools.Call{Session: one.session, Name: one.tool, Args: json.RawMessage(one.args)})
		if !slices.Equal(got, one.want) || (got == nil) != (one.want == nil) {
			t.Errorf("%s %s in %s: %q, want %q", one.tool, one.args, one.session, got, one.want)
		}
	}
}

// A device that joins under a taken name, with a wrong code, or too often is refused with the reason.
func TestJoiningIsRefused(t *testing.T) {
	s := newStage(t, settings())
	s.join("pi")
	_, answer := s.ask("POST", "/v1/nodes/invite", "")
	var invited nodelinks.Invitation
	must(t, json.Unmarshal([]byte(answer), &invited))
	key := make([]byte, ed25519.PublicKeySize)
	for _, c := range []struct{ body, code string }{
		{joinBody(t, invited.Code, "pi", key), wire.RefusedName},
		{joinBody(t, invited.Code, "github", key), wire.RefusedName},
		{joinBody(t, invited.Code, "GITHUB", key), wire.RefusedForm},
		{joinBody(t, invited.Code, "x", key[1:]), wire.RefusedForm},
		{joinBody(t, "aaaaa-bbbbb", "x", key), wire.RefusedCode},
		{`[]`, "bad_request"},
	} {
		if status, answer := s.ask("POST", "/v1/nodes/join", c.body); status < 400 || !strings.Contains(answer, `"`+c.code+`"`) {
			t.Errorf("%s: %d %s, want %s", c.body, status, answer, c.code)
		}
	}
	if status, answer := s.ask("POST", "/v1/nodes/join", joinBody(t, invited.Code, "x", key)); status != http.StatusOK {
		t.Errorf("the code is lost: %s", answer)
	}
	for range 100 {
		if status, _ := s.ask("POST", "/v1/nodes/join", joinBody(t, "aaaaa-bbbbb", "x", key)); status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("somebody may try a hundred codes")
}

// An owner can accept only the set of tools that was shown.
func TestAcceptingIsRefused(t *testing.T) {
	s := newStage(t, settings())
	d := s.join("pi")
	for path, want := range map[string]int{"/v1/nodes/pi/accept": http.StatusConflict, "/v1/nodes/x/accept": http.StatusNotFound, "/v1/nodes/x/revoke": http.StatusNotFound} {
		if status, answer := s.ask("POST", path, ""); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, answer, want)
		}
	}
	d.offer(nil, "one")
	var shown nodelinks.Node
	_, answer := s.ask("GET", "/v1/nodes/pi", "")
	must(t, json.Unmarshal([]byte(answer), &shown))
	if shown.State != "waiting" || len(shown.Aside) != 1 || len(shown.Tools) != 0 || !slices.Equal(shown.Agents, []string{"main"}) || !shown.Trusted {
		t.Errorf("it is shown as %+v", shown)
	}
	d.offer(nil, "one", "two")
	if status, answer := s.ask("POST", "/v1/nodes/pi/accept", `{"digest":"`+shown.Digest+`"}`); status != http.StatusConflict {
		t.Errorf("what has changed: %d %s", status, answer)
	}
	s.accept("pi")
	if _, answer = s.ask("GET", "/v1/nodes", ""); !strings.Contains(answer, `"accepted"`) {
		t.Errorf("it is listed as %s", answer)
	}
}

// Owners get one notice about a set of tools, and get it at the next link if it can't be sent now.
func TestOwnersAreToldOnce(t *testing.T) {
	s := newStage(t, settings())
	d := s.join("pi")
	s.broken = true
	d.offer(nil, "one")
	s.broken = false
	for range 3 {
		d.offer(nil, "one")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.told) != 1 || !strings.Contains(s.told[0], "parley nodes accept pi") {
		t.Errorf("they were told %q", s.told)
	}
}
