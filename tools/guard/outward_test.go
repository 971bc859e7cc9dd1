package guard

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"parley/tools"
)

func TestRuleOfTwo(t *testing.T) {
	seen := func(address string) tools.Sighting { return tools.Sighting{Found: address == "https://known.org/a"} }
	for _, tc := range []struct {
		call tools.Call
		want tools.Decision
	}{
		{newCall("message", "channel", "slack", "chat_id", "C1"), ""},
		{newCall("message", "channel", "slack:C1"), ""},
		{newCall("message", "channel", "slack", "chat_id", "C2"), tools.Ask},
		{newCall("message", "channel", "oncall"), tools.Ask}, // several channels, among them C1
		{newCall("web_fetch", "url", "https://known.org/a"), ""},
		{newCall("web_fetch", "url", "https://known.org/a", "method", "head"), ""},
		{newCall("web_fetch", "url", "https://known.org/a?secret"), tools.Ask},
		{newCall("web_fetch", "url", "https://known.org/a", "method", "POST"), tools.Ask},
		{newCall("web_search", "query", "q"), ""},
		{shellCall("ls"), tools.Ask},
		{newCall("git_status"), tools.Ask}, // a repository's configuration can make git run programs
		{newCall("git_commit", "message", "x"), tools.Ask},
		{newCall("memory_write", "content", "x"), ""},
		{newCall("memory_write", "content", "x", "scope", "person"), tools.Ask},
		{newCall("files__read", "path", "x"), tools.Ask},
		{newCall("schedule", "action", "add"), tools.Ask},
		{newCall("write_file", "path", "x"), ""},
	} {
		g, err := New(Config{AskUntrusted: true, Addresses: addresses})
		if err != nil {
			t.Fatal(err)
		}
		tc.call.Seen = seen
		if got := g.Decide(t.Context(), tc.call); got.Decision != "" {
			t.Errorf("with nothing untrusted %s %s is %+v", tc.call.Name, tc.call.Args, got)
		}
		tc.call.Untrusted = true
		if got := g.Decide(t.Context(), tc.call); got.Decision != tc.want || (got.Reason == "") != (tc.want == "") {
			t.Errorf("%s %s is %+v, want %q", tc.call.Name, tc.call.Args, got, tc.want)
		}
		g.cfg.AskUntrusted = false
		if got := g.Decide(t.Context(), tc.call); got.Decision != "" {
			t.Errorf("where all is allowed %s %s is %+v", tc.call.Name, tc.call.Args, got)
		}
	}
}

func TestRuleOfTwoAndRules(t *testing.T) {
	g, err := New(Config{AskUntrusted: true, AllAgents: Policy{Deny: []string{"message(slack:C2)"}, Allow: []string{"message(slack:C3)"}}, ReachesNetwork: func(c tools.Call) bool { return c.Agent == "main" }})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]tools.Decision{"slack:C2": tools.Deny, "slack:C3": tools.Ask, "slack:C1": tools.Ask} {
		c := newCall("message", "channel", address)
		c.Untrusted = true
		if got := g.Decide(t.Context(), c); got.Decision != want {
			t.Errorf("%s is %+v, want %q", address, got, want)
		}
	}
	offline := shellCall("ls")
	offline.Agent, offline.Untrusted = "other", true
	if got := g.Decide(t.Context(), offline); got.Decision != "" {
		t.Errorf("a command without network is %+v", got)
	}
}

// After the model has read strangers' text, writing a file counts as acting on the outside if a job with network access
// can read it, even one that was started before.
func TestFilesThatANetworkedJobReads(t *testing.T) {
	carrier, failed := "", error(nil)
	g, err := New(Config{
		AskUntrusted: true, ReachesNetwork: func(tools.Call) bool { return false },
		NetworkedReader: func(context.Context, tools.Call) (string, error) { return carrier, failed },
	})
	if err != nil {
		t.Fatal(err)
	}
	writes := []tools.Call{
		newCall("write_file", "path", "x"), newCall("edit_file", "path", "x"), newCall("apply_patch", "patch", "x"), newCall("memory_write", "content", "x"),
		newCall("todo_write"), shellCall("ls"), newCall("git_commit", "message", "x"), newCall("files__write", "path", "x"),
	}
	reads := []tools.Call{newCall("read_file", "path", "x"), newCall("grep", "pattern", "x"), newCall("job_stop", "job_id", "x"), newCall("web_search", "query", "q")}
	check := func(what string, all []tools.Call, untrusted bool, want tools.Decision) {
		t.Helper()
		for _, c := range all {
			c.Untrusted = untrusted
			if got := g.Decide(t.Context(), c); got.Decision != want {
				t.Errorf("%s: %s is %+v, want %q", what, c.Name, got, want)
			}
		}
	}
	check("without a job", writes, true, "")
	carrier = "the job j1"
	check("with nothing untrusted", writes, false, "")
	check("what writes", writes, true, tools.Ask)
	check("what reads", reads, true, "")
	if got := g.Decide(t.Context(), untrustedCall(writes[0])); !strings.Contains(got.Reason, "the job j1") {
		t.Errorf("the reason is %q", got.Reason)
	}
	carrier, failed = "", errors.New("the store is away")
	check("while nobody knows", writes, true, tools.Ask)
	g.cfg.AskUntrusted = false
	check("where all is allowed", writes, true, "")
}

// untrustedCall returns a call of a model that has read text from strangers.
func untrustedCall(c tools.Call) tools.Call {
	c.Untrusted = true
	return c
}

// Headers are the model's own words: an address from a page would carry them anywhere.
func TestHeadersAfterSomethingUntrusted(t *testing.T) {
	g, err := New(Config{AskUntrusted: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, value string
		want        tools.Decision
	}{
		{"accept", "application/json", ""},
		{"Accept", "text/html", ""},
		{"Accept", "*/*", ""},
		{"Accept", "text/html, application/xml;q=0.9,*/*;q=0.8", tools.Ask},
		{"Accept", "text/html,text/html,text/plain", tools.Ask}, // the order and the number can carry information
		{"Accept", "text/html ", tools.Ask},
		{"Accept", "TEXT/html", tools.Ask},
		{"Accept", "", tools.Ask},
		{"Accept-Language", "de", tools.Ask},
		{"Accept-Language", "sw-OR,df-IS;q=0.5", tools.Ask},
		{"Range", "bytes=0-1023", tools.Ask},
		{"Range", "bytes=1937208676-1719236968", tools.Ask},
		{"Accept", "application/the-secret-is-swordfish", tools.Ask},
		{"Accept", "text/html\nsecret", tools.Ask},
		{"X-Leak", "the whole memory", tools.Ask},
		{"Cookie", "", tools.Ask},
		{"User-Agent", "x", tools.Ask},
		{"If-None-Match", `"swordfish"`, tools.Ask},
		{"If-Modified-Since", "Tue, 24 Nov 2026 08:49:37 GMT", tools.Ask},
	} {
		raw, err := json.Marshal(map[string]any{"url": "https://known.org/a", "headers": map[string]string{tc.name: tc.value}})
		if err != nil {
			t.Fatal(err)
		}
		c := withDeclaration(tools.Call{Name: "web_fetch", Args: raw, Seen: func(string) tools.Sighting { return tools.Sighting{Found: true} }})
		if got := g.Decide(t.Context(), c); got.Decision != "" {
			t.Errorf("with nothing untrusted %s: %s is %+v", tc.name, tc.value, got)
		}
		c.Untrusted = true
		if got := g.Decide(t.Context(), c); got.Decision != tc.want {
			t.Errorf("%s: %s is %+v, want %q", tc.name, tc.value, got, tc.want)
		}
	}
}
