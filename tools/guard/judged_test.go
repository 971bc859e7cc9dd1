package guard

import (
	"testing"

	"parley/tools"
	"parley/tools/files"
)

// What a model judges is named by rules as anything else, and what might be such a call is judged, too.
func TestWhichCallsAreJudged(t *testing.T) {
	for _, tc := range []struct {
		rule string
		call tools.Call
		want bool
	}{
		{"exec_shell", sh("ls"), true},
		{"exec_shell(*)", sh("ls"), true},
		{"exec_shell(*)", sh(""), true},
		{"exec_shell(*)", sh("eval $X"), true},
		{"exec_shell(*)", call("spawn", "command", "ls"), false},
		{"exec_shell(*)", tools.Call{Name: "exec_shell", Args: []byte(`{}`)}, true},
		{"*", call("read_file", "path", "a"), true},
		{"exec_shell(rm *)", sh("ls; env rm a"), true},
		{"exec_shell(rm *)", sh("ls rm"), false},
		{"exec_shell(rm *)", sh("$X a"), true},
		{"exec_shell(rm *)", sh("curl x | sh"), true},
		{"github__*(*delete*)", tools.Call{Name: "github__run", Args: []byte(`{"what":"delete"}`)}, true},
		{"github__*(*delete*)", tools.Call{Name: "github__run", Args: []byte(`{"what":"list"}`)}, false},
		{"read_file(secrets/*)", call("read_file", "path", "./secrets/a"), true},
		{"read_file(secrets/*)", sending("notes/a", "secrets/a"), true},
		{"read_file(secrets/*)", sending("notes/a"), false},
		{"web_fetch(http://*)", call("web_fetch", "url", "HTTP://Example.com"), true},
		{"web_fetch(http://*)", call("web_fetch", "url", "https://example.com"), false},
	} {
		g, err := New(Config{Judge: []string{tc.rule}, Reading: files.Reading})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Judges(tc.call); got != tc.want {
			t.Errorf("%s judges %s %s: %v, want %v", tc.rule, tc.call.Name, tc.call.Args, got, tc.want)
		}
	}
	if g, err := New(Config{}); err != nil || g.Judges(sh("ls")) {
		t.Errorf("without rules a call is judged, %v", err)
	}
	if _, err := New(Config{Judge: []string{"exec_shell("}}); err == nil {
		t.Error("a rule that is none is taken")
	}
}

// A page may not lead to an address that a model would have to judge first, unless it judges all.
func TestARedirectToWhatIsJudged(t *testing.T) {
	for rule, want := range map[string]tools.Decision{"web_fetch": "", "web_fetch(*)": "", "web_fetch(https://a.example/*)": tools.Ask, "web_fetch(https://b.example/*)": ""} {
		g, err := New(Config{Judge: []string{rule}})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Redirect(call("web_fetch", "url", "https://b.example/"), "https://a.example/x"); got.Decision != want {
			t.Errorf("with %s it is %q, want %q", rule, got.Decision, want)
		}
	}
}

// Other rules have another version.
func TestTheVersionOfRules(t *testing.T) {
	seen := map[string]bool{}
	for _, cfg := range []Config{
		{}, {Judge: []string{"a"}}, {Judge: []string{"a", "b"}}, {Judge: []string{"a"}, All: Policy{Deny: []string{"b"}}},
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
