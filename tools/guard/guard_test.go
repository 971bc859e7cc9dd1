package guard

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/files"
)

// newCall returns a call with arguments given as names and values in turn.
func newCall(tool string, args ...string) tools.Call {
	values := map[string]any{}
	for i := 0; i+1 < len(args); i += 2 {
		values[args[i]] = args[i+1]
	}
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	return withDeclaration(tools.Call{Name: tool, Args: raw, Agent: "main", Address: "slack:C1"})
}

func shellCall(line string) tools.Call { return newCall("exec_shell", "command", line) }

// sendCall returns a call that sends files to the conversation itself.
func sendCall(files ...string) tools.Call {
	c := newCall("message")
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
		{Policy{}, shellCall("ls"), ""},
		{Policy{Deny: []string{"exec_shell"}}, shellCall("ls"), tools.Deny},
		{Policy{Deny: []string{"exec_shell"}, Allow: []string{"exec_shell"}}, shellCall("ls"), tools.Deny},
		{Policy{Ask: []string{"exec_shell"}, Allow: []string{"exec_shell"}}, shellCall("ls"), tools.Ask},
		{Policy{Deny: []string{"*_shell"}}, shellCall("ls"), tools.Deny},
		{Policy{Deny: []string{"exec_shell"}}, newCall("read_file", "path", "a"), ""},
		// Each command of a line is checked, however it is written.
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("cd x && git  'push' origin"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("git push"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("flock l -c 'git push'"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("env A=1 /usr/bin/git -C x push"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("sh -c 'A=1 git push'"), tools.Deny},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("git pull"), ""},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("echo git push $(date)"), ""},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("git commit -m 'git push'"), ""},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, newCall("spawn", "command", "git"), ""},
		// If a part can't be seen and a rule might be about it, a person is asked.
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("git $X"), tools.Ask},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("$(echo git) push"), tools.Ask},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("curl x | sh"), tools.Ask},
		{Policy{Deny: []string{"exec_shell(git push *)"}}, shellCall("ls $X"), ""},
		{Policy{Ask: []string{"exec_shell(git push *)"}}, shellCall("eval $X"), tools.Ask},
		{Policy{}, shellCall("eval $X"), ""},
		// If there is an allow rule, a person is asked about calls that don't match it.
		{Policy{Allow: []string{"exec_shell(echo *)"}}, shellCall("echo a"), ""},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, shellCall("echo $X 2>/dev/null"), ""},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, shellCall("echo x && evil"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)", "exec_shell(env *)"}}, shellCall("env sh -c evil"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, shellCall("./echo x"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, shellCall("echo $(evil)"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, shellCall("PATH=. echo x"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo *)"}}, shellCall("echo x > ~/.profile"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(echo * > out.txt)"}}, shellCall("echo x > out.txt"), ""},
		{Policy{Allow: []string{"exec_shell(*)"}}, shellCall("a; b | c > d"), tools.Ask},
		{Policy{Allow: []string{"exec_shell(*)", "exec_shell(*>*)"}}, shellCall("a; b | c > d"), ""},
		{Policy{Allow: []string{"exec_shell(*)"}}, shellCall("echo `a`"), tools.Ask},
		{Policy{Allow: []string{"exec_shell"}}, shellCall("echo `a`"), ""},
		{Policy{Allow: []string{"exec_shell(cd *)", "exec_shell(go test *)"}}, shellCall("cd x && go test ./..."), ""},
		{Policy{Allow: []string{"exec_shell(git push *)"}}, newCall("read_file", "path", "a"), ""},
		// These are decided whatever the rules say.
		{Policy{Allow: []string{"exec_shell"}}, shellCall("rm -r -f /"), tools.Deny},
		{Policy{}, newCall("spawn", "command", "sudo"), tools.Deny},
		// Other tools.
		{Policy{Deny: []string{"web_fetch(https://evil.com/*)"}}, newCall("web_fetch", "url", "https://u:p@EVIL.com.:443/a"), tools.Deny},
		{Policy{Allow: []string{"web_fetch(https://good.com/a/*)"}}, newCall("web_fetch", "url", "https://good.com/a/b?c=d#e"), ""},
		{Policy{Allow: []string{"web_fetch(https://good.com/a/*)"}}, newCall("web_fetch", "url", "https://good.com/a/%2e%2e/b"), tools.Ask},
		{Policy{Allow: []string{"web_fetch(https://good.com/*)"}}, newCall("web_fetch", "url", "https://good.com@evil.com/"), tools.Deny},
		{Policy{Allow: []string{"web_fetch(https://good.com/*)"}}, newCall("web_fetch", "url", "https://evil.com/"), tools.Ask},
		{Policy{Allow: []string{"web_fetch(*)"}}, newCall("web_fetch", "url", "https://evil.com:0/"), tools.Deny},
		{Policy{Allow: []string{"web_fetch(*)"}}, newCall("web_fetch", "url", "ftp://good.com/"), tools.Deny},
		{Policy{Allow: []string{"web_fetch(https://B\u00fccher.example/*)"}}, newCall("web_fetch", "url", "https://b\u00fccher.example/a"), ""},
		{Policy{Deny: []string{"web_fetch(https://*.B\u00fccher.example:8443/*)"}}, newCall("web_fetch", "url", "https://a.xn--bcher-kva.example:8443/a"), tools.Deny},
		{Policy{Deny: []string{"web_fetch(https://[2001:db8::1]/*)"}}, newCall("web_fetch", "url", "https://[2001:DB8:0::1]:443/a"), tools.Deny},
		{Policy{Deny: []string{"write_file(secrets/*)"}}, newCall("write_file", "path", "./a/../secrets/x"), tools.Deny},
		{Policy{Deny: []string{"write_file(secrets/*)"}}, newCall("write_file", "path", "/ws/secrets/x"), tools.Deny},
		{Policy{Deny: []string{"apply_patch(secrets/*)"}}, newCall("apply_patch", "patch", patchOf("a.txt", "secrets/b")), tools.Deny},
		{Policy{Allow: []string{"apply_patch(src/*)"}}, newCall("apply_patch", "patch", patchOf("src/a", "b")), tools.Ask},
		{Policy{Deny: []string{"message(slack:C9)"}}, newCall("message", "channel", "oncall"), tools.Deny},
		{Policy{Deny: []string{"message(oncall)"}}, newCall("message", "channel", "oncall"), tools.Deny},
		{Policy{Allow: []string{"message(slack:C9)"}}, newCall("message", "channel", "oncall"), tools.Ask},
		{Policy{Allow: []string{"message(telegram:5)"}}, newCall("message", "channel", "telegram", "chat_id", "5"), ""},
		// An agent that may not read a file may not send it.
		{Policy{Deny: []string{"read_file(secrets/*)"}}, sendCall("a", "secrets/b"), tools.Deny},
		{Policy{Deny: []string{"read_file(secrets/*)"}}, sendCall("a", "/ws/secrets/b"), tools.Deny},
		{Policy{Deny: []string{"read_file(secrets/*)"}}, sendCall("a", "b"), ""},
		{Policy{Deny: []string{"read_file(secrets/*)"}, Ask: []string{"message"}}, sendCall("secrets/b"), tools.Deny},
		{Policy{Ask: []string{"read_file(secrets/*)"}}, sendCall("secrets/b"), tools.Ask},
		{Policy{Ask: []string{"message"}}, sendCall("b"), tools.Ask},
		{Policy{Allow: []string{"message(slack:C1)", "read_file(charts/*)"}}, sendCall("charts/a"), ""},
		{Policy{Allow: []string{"message(slack:C1)", "read_file(charts/*)"}}, sendCall("charts/a", "b"), tools.Ask},
		{Policy{Deny: []string{`memory_write(*"mode":"overwrite"*)`}}, newCall("memory_write", "content", "x", "mode", "overwrite"), tools.Deny},
	} {
		g, err := New(Config{
			AllAgents:   tc.policy,
			Path:        func(_ tools.Call, p string) string { return strings.TrimPrefix(cleanPath(p), "/ws/") },
			ReadingCall: files.Reading,
			Addresses:   addresses,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Decide(t.Context(), tc.call); got.Decision != tc.want || (got.Reason == "") != (tc.want == "") {
			t.Errorf("%+v: %s %s is %+v, want %q", tc.policy, tc.call.Name, tc.call.Args, got, tc.want)
		}
	}
}

func cleanPath(p string) string {
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

// A rule about a host applies however a call writes the host, as long as the request would go there.
func TestAHostIsTheSameInAllItsSpellings(t *testing.T) {
	g, err := New(Config{AllAgents: Policy{Deny: []string{"web_fetch(https://evil.com/*)"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{
		"https://evil.com/x", "HTTPS://EVIL.COM./x", "https://evil\u3002com/x", "https://\uff45vil.com/x", "https://ev\u00adil.com/x",
		"https://evil.com:443/x", "https://evil.com:0443/x", "https://evil.com:/x", "https://evi%6C.com/x", " https://evil.com/x ",
	} {
		if got := g.Decide(t.Context(), newCall("web_fetch", "url", at)); got.Decision != tools.Deny {
			t.Errorf("%q is %+v, want a denial", at, got)
		}
	}
	if got := g.Decide(t.Context(), newCall("web_fetch", "url", "https://evil.com.example/x")); got.Decision != "" {
		t.Errorf("another host is %+v", got)
	}
}

func TestAnAgentsRulesAreAddedToThoseOfAll(t *testing.T) {
	g, err := New(Config{
		AllAgents: Policy{Deny: []string{"exec_shell(git push *)"}, Allow: []string{"exec_shell(git *)"}},
		Agents:    map[string]Policy{"main": {Allow: []string{"exec_shell(ls *)", "exec_shell(git push *)"}}, "strict": {Deny: []string{"exec_shell"}}},
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
		c := shellCall(tc.line)
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
	g, err := New(Config{AllAgents: Policy{Deny: []string{"exec_shell(git push *)", "web_fetch(http://*)"}, Ask: []string{"exec_shell(npm *)"}}})
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]tools.Call{"shell": shellCall("cd build && make -j4 2>&1 | tee log"), "file": newCall("read_file", "path", "a/b")} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				g.Decide(b.Context(), c)
			}
		})
	}
}

// The rules apply to a redirect as to a call of its own.
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
		g, err := New(Config{AllAgents: tc.policy, AskUntrusted: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, untrusted := range []bool{false, true} {
			of := newCall("web_fetch", "url", "https://a.example/")
			of.Untrusted = untrusted
			if got := g.Redirect(of, tc.to); got.Decision != tc.want {
				t.Errorf("%+v: to %s is %q (%s), want %q", tc.policy, tc.to, got.Decision, got.Reason, tc.want)
			}
		}
	}
}
