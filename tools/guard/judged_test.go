package guard

import (
	"testing"

	"parley/tools"
	"parley/tools/files"
)

// Rules for the judge name calls like other rules, and calls that might match are judged, too.
func TestWhichCallsAreJudged(t *testing.T) {
	for _, tc := range []struct {
		rule string
		call tools.Call
		want bool
	}{
		{"exec_shell", shellCall("ls"), true},
		{"exec_shell(*)", shellCall("ls"), true},
		{"exec_shell(*)", shellCall(""), true},
		{"exec_shell(*)", shellCall("eval $X"), true},
		{"exec_shell(*)", newCall("spawn", "command", "ls"), false},
		{"exec_shell(*)", tools.Call{Name: "exec_shell", Args: []byte(`{}`)}, true},
		{"*", newCall("read_file", "path", "a"), true},
		{"exec_shell(rm *)", shellCall("ls; env rm a"), true},
		{"exec_shell(rm *)", shellCall("ls rm"), false},
		{"exec_shell(rm *)", shellCall("$X a"), true},
		{"exec_shell(rm *)", shellCall("curl x | sh"), true},
		{"github__*(*delete*)", tools.Call{Name: "github__run", Args: []byte(`{"what":"delete"}`)}, true},
		{"github__*(*delete*)", tools.Call{Name: "github__run", Args: []byte(`{"what":"list"}`)}, false},
		{"read_file(secrets/*)", newCall("read_file", "path", "./secrets/a"), true},
		{"read_file(secrets/*)", sendCall("notes/a", "secrets/a"), true},
		{"read_file(secrets/*)", sendCall("notes/a"), false},
		{"web_fetch(http://*)", newCall("web_fetch", "url", "HTTP://Example.com"), true},
		{"web_fetch(http://*)", newCall("web_fetch", "url", "https://example.com"), false},
	} {
		g, err := New(Config{Judge: []string{tc.rule}, ReadingCall: files.Reading})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Judges(tc.call); got != tc.want {
			t.Errorf("%s judges %s %s: %v, want %v", tc.rule, tc.call.Name, tc.call.Args, got, tc.want)
		}
	}
	if g, err := New(Config{}); err != nil || g.Judges(shellCall("ls")) {
		t.Errorf("without rules a call is judged, %v", err)
	}
	if _, err := New(Config{Judge: []string{"exec_shell("}}); err == nil {
		t.Error("a rule that is none is taken")
	}
}

// A page may not redirect to an address that a model would have to judge first, unless the rule is about all calls.
func TestARedirectToAJudgedAddress(t *testing.T) {
	for rule, want := range map[string]tools.Decision{"web_fetch": "", "web_fetch(*)": "", "web_fetch(https://a.example/*)": tools.Ask, "web_fetch(https://b.example/*)": ""} {
		g, err := New(Config{Judge: []string{rule}})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Redirect(newCall("web_fetch", "url", "https://b.example/"), "https://a.example/x"); got.Decision != want {
			t.Errorf("with %s it is %q, want %q", rule, got.Decision, want)
		}
	}
}

// Different rules have different versions.
func TestTheVersionOfRules(t *testing.T) {
	seen := map[string]bool{}
	for _, cfg := range []Config{
		{}, {Judge: []string{"a"}}, {Judge: []string{"a", "b"}}, {Judge: []string{"a"}, AllAgents: Policy{Deny: []string{"b"}}},
		{Judge: []string{"a"}, Agents: map[string]Policy{"main": {Ask: []string{"b"}}}}, {Judge: []string{"a"}, AskUntrusted: true},
	} {
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if seen[g.Version()] {
			t.Errorf("%+v has the version of another", cfg)
		}
		seen[g.Version()] = true
		if again, _ := New(cfg); again.Version() != g.Version() {
			t.Errorf("%+v has two versions", cfg)
		}
	}
}
