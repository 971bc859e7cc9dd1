package guard

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/files"
)

// call makes a call of arguments in turn: name and value.
func call(tool string, args ...string) tools.Call {
	values := map[string]any{}
	for i := 0; i+1 < len(args); i += 2 {
		values[args[i]] = args[i+1]
	}
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	return declared(tools.Call{Name: tool, Args: raw, Agent: "main", At: "slack:C1"})
}

func sh(line string) tools.Call { return call("exec_shell", "command", line) }

// sending is a call that sends files to the conversation itself.
func sending(files ...string) tools.Call {
	c := call("message")
	raw, err := json.Marshal(map[string]any{"channel": "slack:C1", "content": "", "files": files})
	if err != nil {
		panic(err)
	}
	c.Args = raw
	return c
}

func TestRules(t *testing.T) {
	for _, tc := range []struct {
		policy Policy
		call   tools.Call
		want   tools.Decision
	}{
		{Policy{}, sh("ls"), ""},
		{Policy{Deny: []string{"exec_shell"}}, sh("ls"), tools.Deny},
		{Policy{Deny: []string{"exec_shell"}, Allow: []string{"exec_shell"}}, sh("ls"), tools.Deny},
		{Policy{Ask: []string{"exec_shell"}, Allow: []string{"exec_shell"}}, sh("ls"), tools.Ask},
		{Policy{Deny: []string{"*_shell"}}, sh("ls"), tools.Deny},
		{Policy{Deny: []string{"exec_shell"}}, call("read_file", "path", "a"), ""},
		// Each command of a line is looked at, however it is written.
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("cd x && git  'push' origin"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("git push"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("flock l -c 'git push'"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("env A=1 /usr/bin/git -C x push"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("sh -c 'A=1 git push'"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("git pull"), ""},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("echo git push $(date)"), ""},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("git commit -m 'git push'"), ""},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, call("spawn", "command", "git"), ""},
		// What cannot be seen is asked about, where it might be what a rule is about.
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("git $X"), tools.Ask},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("$(echo git) push"), tools.Ask},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("curl x | sh"), tools.Ask},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, sh("ls $X"), ""},
		{Policy{Ask: []string{"exec_shell(git push *)"}}, sh("eval $X"), tools.Ask},
		{Policy{}, sh("eval $X"), ""},
		// With an allow rule, what does not match it is asked about.
		{Policy{Allow: []string{"exec_shell(echo *)"}}, sh("echo a"), ""},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, sh("echo $X 2>/dev/null"), ""},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, sh("echo x && evil"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)", "exec_shell(env *)"}}, sh("env sh -c evil"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, sh("./echo x"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, sh("echo $(evil)"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, sh("PATH=. echo x"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, sh("echo x > ~/.profile"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo * > out.txt)"}}, sh("echo x > out.txt"), ""},
		{Policy{Allow: []string{"exec_shell(*)"}}, sh("a; b | c > d"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(*)", "exec_shell(*>*)"}}, sh("a; b | c > d"), ""},
		{Policy{Allow: []string{"exec_shell(*)"}}, sh("echo `a`"), tools.Ask},
		{Policy{Allow: []string{"exec_shell"}}, sh("echo `a`"), ""},
		{Policy{Allow: []string{"exec_shell(cd *)", "exec_shell(go test *)"}}, sh("cd x && go test ./..."), ""},
		{Policy{Allow: []string{"exec_shell(git push *)"}}, call("read_file", "path", "a"), ""},
		// Whatever the rules say.
		{Policy{Allow: []string{"exec_shell"}}, sh("rm -r -f /"), tools.Deny},
		{Policy{}, call("spawn", "command", "sudo"), tools.Deny},
		// Other tools.
		{Policy{Deny: []string{"web_fetch(https://evil.com/*)"}}, call("web_fetch", "url", "https://u:p@EVIL.com.:443/a"), tools.Deny},
		{Policy{Allow: []string{"web_fetch(https://good.com/a/*)"}}, call("web_fetch", "url", "https://good.com/a/b?c=d#e"), ""},
		{Policy{Allow: []string{"web_fetch(https://good.com/a/*)"}}, call("web_fetch", "url", "https://good.com/a/%2e%2e/b"), tools.Ask},
		{Policy{Allow: []string{"web_fetch(https://good.com/*)"}}, call("web_fetch", "url", "https://good.com@evil.com/"), tools.Deny},
		{Policy{Allow: []string{"web_fetch(https://good.com/*)"}}, call("web_fetch", "url", "https://evil.com/"), tools.Ask},
		{Policy{Allow: []string{"web_fetch(*)"}}, call("web_fetch", "url", "https://evil.com:0/"), tools.Deny},
		{Policy{Allow: []string{"web_fetch(*)"}}, call("web_fetch", "url", "ftp://good.com/"), tools.Deny},
		{Policy{Allow: []string{"web_fetch(https://B\u00fccher.example/*)"}}, call("web_fetch", "url", "https://b\u00fccher.example/a"), ""},
		{Policy{Deny: []string{"web_fetch(https://*.B\u00fccher.example:8443/*)"}}, call("web_fetch", "url", "https://a.xn--bcher-kva.example:8443/a"), tools.Deny},
		{Policy{Deny: []string{"web_fetch(https://[2001:db8::1]/*)"}}, call("web_fetch", "url", "https://[2001:DB8:0::1]:443/a"), tools.Deny},
		{Policy{Deny: []string{"write_file(secrets/*)"}}, call("write_file", "path", "./a/../secrets/x"), tools.Deny},
		{Policy{Deny: []string{"write_file(secrets/*)"}}, call("write_file", "path", "/ws/secrets/x"), tools.Deny},
		{Policy{Deny: []string{"apply_patch(secrets/*)"}}, call("apply_patch", "patch", patch("a.txt", "secrets/b")), tools.Deny},
		{Policy{Allow: []string{"apply_patch(src/*)"}}, call("apply_patch", "patch", patch("src/a", "b")), tools.Ask},
		{Policy{Deny: []string{"message(slack:C9)"}}, call("message", "channel", "oncall"), tools.Deny},
		{Policy{Deny: []string{"message(oncall)"}}, call("message", "channel", "oncall"), tools.Deny},
		{Policy{Allow: []string{"message(slack:C9)"}}, call("message", "channel", "oncall"), tools.Ask},
		{Policy{Allow: []string{"message(telegram:5)"}}, call("message", "channel", "telegram", "chat_id", "5"), ""},
		// Who may not read a file may not send it.
		{Policy{Deny: []string{"read_file(secrets/*)"}}, sending("a", "secrets/b"), tools.Deny},
		{Policy{Deny: []string{"read_file(secrets/*)"}}, sending("a", "/ws/secrets/b"), tools.Deny},
		{Policy{Deny: []string{"read_file(secrets/*)"}}, sending("a", "b"), ""},
		{Policy{Deny: []string{"read_file(secrets/*)"}, Ask: []string{"message"}}, sending("secrets/b"), tools.Deny},
		{Policy{Ask: []string{"read_file(secrets/*)"}}, sending("secrets/b"), tools.Ask},
		{Policy{Ask: []string{"message"}}, sending("b"), tools.Ask},
		{Policy{Allow: []string{"message(slack:C1)", "read_file(charts/*)"}}, sending("charts/a"), ""},
		{Policy{Allow: []string{"message(slack:C1)", "read_file(charts/*)"}}, sending("charts/a", "b"), tools.Ask},
		{Policy{Deny: []string{`memory_write(*"mode":"overwrite"*)`}}, call("memory_write", "content", "x", "mode", "overwrite"), tools.Deny},
	} {
		g, err := New(Config{
			All:       tc.policy,
			Path:      func(_ tools.Call, p string) string { return strings.TrimPrefix(cleaned(p), "/ws/") },
			Reading:   files.Reading,
			Addresses: addresses,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Decide(t.Context(), tc.call); got.Decision != tc.want || (got.Reason == "") != (tc.want == "") {
			t.Errorf("%+v: %s %s is %+v, want %q", tc.policy, tc.call.Name, tc.call.Args, got, tc.want)
		}
	}
}

func cleaned(p string) string {
	return (&Guard{}).workspaceName(tools.Call{}, p)
}

func addresses(channel, chat string) []string {
	if channel == "oncall" {
		return []string{"slack:C9", "slack:C1"}
	}
	if chat == "" {
		return []string{channel}
	}
	return []string{channel + ":" + chat}
}

// A rule about a host is about it however a call writes it, as long as it would be
// fetched from there.
func TestAHostIsTheSameInAllItsSpellings(t *testing.T) {
	g, err := New(Config{All: Policy{Deny: []string{"web_fetch(https://evil.com/*)"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{
		"https://evil.com/x", "HTTPS://EVIL.COM./x", "https://evil\u3002com/x", "https://\uff45vil.com/x", "https://ev\u00adil.com/x",
		"https://evil.com:443/x", "https://evil.com:0443/x", "https://evil.com:/x", "https://evi%6C.com/x", " https://evil.com/x ",
	} {
		if got := g.Decide(t.Context(), call("web_fetch", "url", at)); got.Decision != tools.Deny {
			t.Errorf("%q is %+v, want a denial", at, got)
		}
	}
	if got := g.Decide(t.Context(), call("web_fetch", "url", "https://evil.com.example/x")); got.Decision != "" {
		t.Errorf("another host is %+v", got)
	}
}

func TestAnAgentsRulesAreAddedToThoseOfAll(t *testing.T) {
	g, err := New(Config{
		All:    Policy{Deny: []string{"exec_shell(git push *)"}, Allow: []string{"exec_shell(git *)"}},
		Agents: map[string]Policy{"main": {Allow: []string{"exec_shell(ls *)", "exec_shell(git push *)"}}, "strict": {Deny: []string{"exec_shell"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		agent, line string
		want        tools.Decision
	}{
		{"main", "ls", ""}, {"main", "git status", ""}, {"main", "git push", tools.Deny}, {"main", "make", tools.Ask},
		{"other", "ls", tools.Ask}, {"other", "git status", ""}, {"strict", "git status", tools.Deny},
	} {
		c := sh(tc.line)
		c.Agent = tc.agent
		if got := g.Decide(t.Context(), c); got.Decision != tc.want {
			t.Errorf("%s: %s is %+v, want %q", tc.agent, tc.line, got, tc.want)
		}
	}
}

func TestRulesThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"", "(a)", "exec_shell(", "exec_shell(a", "exec_shell()", "exec shell(a)", "exec_shell(a\x00)", "exec_shell(a) b", strings.Repeat("a", 2000)} {
		if _, err := ParseRule(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	for text, want := range map[string]string{"exec_shel(a)": "exec_shel", "exec_shell": "", "git_*": "", "svn_*": "svn_*", "files__read": "", "*": ""} {
		r, err := ParseRule(text)
		if got := r.UnknownTool([]string{"exec_shell", "git_log"}); err != nil || got != want {
			t.Errorf("of %q %q is unknown, want %q (%v)", text, got, want, err)
		}
	}
}

func FuzzOverlap(f *testing.F) {
	f.Add("git push *", "git \x00")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(text) > 200 || len(pattern) > 200 {
			return
		}
		p, h := strings.Split(pattern, "*"), strings.Split(text, "\x00")
		if glob(p, text) && !strings.Contains(pattern, "\x00") && !overlap(p, h) {
			t.Errorf("%q matches %q, and does not overlap it", pattern, text)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	g, err := New(Config{All: Policy{Deny: []string{"exec_shell(git push *)", "web_fetch(http://*)"}, Ask: []string{"exec_shell(npm *)"}}})
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]tools.Call{"shell": sh("cd build && make -j4 2>&1 | tee log"), "file": call("read_file", "path", "a/b")} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				g.Decide(b.Context(), c)
			}
		})
	}
}

// A redirect is held against the rules as a fetch of its own would be.
func TestRedirects(t *testing.T) {
	for _, tc := range []struct {
		policy Policy
		to     string
		want   tools.Decision
	}{
		{Policy{}, "https://b.example/x", ""},
		{Policy{Deny: []string{"web_fetch(https://b.example/*)"}}, "https://B.example.:443/a/../x", tools.Deny},
		{Policy{Deny: []string{"web_fetch(https://b.example/*)"}}, "https://c.example/", ""},
		{Policy{Deny: []string{"web_fetch(http://*)"}}, "http://a.example/", tools.Deny},
		{Policy{Ask: []string{"web_fetch(https://b.example/*)"}}, "https://b.example/", tools.Ask},
		{Policy{Ask: []string{"web_fetch"}}, "https://b.example/", ""}, // the call itself was asked about
		{Policy{Ask: []string{"web_*"}}, "https://b.example/", ""},
		{Policy{Allow: []string{"web_fetch(https://a.example/*)"}}, "https://b.example/", tools.Ask},
		{Policy{Allow: []string{"web_fetch(https://a.example/*)"}}, "https://a.example/next", ""},
	} {
		g, err := New(Config{All: tc.policy, AskUntrusted: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, untrusted := range []bool{false, true} {
			of := call("web_fetch", "url", "https://a.example/")
			of.Untrusted = untrusted
			if got := g.Redirect(of, tc.to); got.Decision != tc.want {
				t.Errorf("%+v: to %s is %q (%s), want %q", tc.policy, tc.to, got.Decision, got.Reason, tc.want)
			}
		}
	}
}
