package config_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/config"
	"parley/tools/guard"
)

func ruled(o *config.Options) {
	o.Tools = func() []string { return []string{"exec_shell", "read_file"} }
	o.CheckRule = func(text string) (string, error) {
		rule, err := guard.ParseRule(text)
		if err != nil {
			return "", err
		}
		return rule.UnknownTool(o.Tools()), nil
	}
	o.CheckRate = func(text string) (string, error) {
		rate, err := guard.ParseRate(text)
		if err != nil {
			return "", err
		}
		return rate.UnknownTool(o.Tools()), nil
	}
}

func TestRulesAreRead(t *testing.T) {
	c := good(t, "[tools]\ndeny = [\"exec_shell(git push *)\"]\n[agents.defaults]\nask = [\"read_file\"]\n[agents.ops]\nallow = [\"exec_*\"]\n", nil)
	same(t, "rules of all", c.Tools.Rules.Deny, []string{"exec_shell(git push *)"})
	same(t, "rules of one", c.Agents["ops"].Rules.Allow, []string{"exec_*"})
	same(t, "rates", good(t, "[tools]\nrate = [\"exec_* 30/h\"]\n", nil).Tools.Rate, []string{"exec_* 30/h"})
	same(t, "rules of the defaults", c.Agents["ops"].Rules.Ask, []string{"read_file"})
}

func TestBadRules(t *testing.T) {
	for _, c := range []badCase{
		{"unknown tool", "[tools]\ndeny = [\"read_file\",\n \"exec_shel(git push *)\"]",
			`3: tools.deny: no tool is called "exec_shel": write "exec_shell(git push *)"`},
		{"unknown tool like no other", "[agents.main]\nallow = [\"x\"]",
			`2: agents.main.allow: no tool is called "x": the tools are exec_shell, read_file`},
		{"unknown tool to judge", "[models.m]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1\"\n[guard]\nmodel = \"m\"\njudge = [\"exec_shel(*)\"]",
			`6: guard.judge: no tool is called "exec_shel": write "exec_shell(*)"`},
		{"unknown tool with a rate", "[tools]\nrate = [\"docs__* 1/s\",\n \"exec_shel 30/h\"]",
			`3: tools.rate: no tool is called "exec_shel": write "exec_shell 30/h"`},
		{"no rate", "[tools]\nrate = [\"exec_shell 30\"]",
			`2: tools.rate: "exec_shell 30" isn't a rate: write TOOL N/UNIT, with s, m, h or d as the unit: write something like "web_search 30/h"`},
		{"no rule", "[agents.defaults]\nask = [\"exec_shell(ls\"]",
			`2: agents.defaults.ask: "exec_shell(ls" isn't a rule: it doesn't end with a parenthesis: write TOOL(PATTERN): write something like "exec_shell(git push *)"`},
	} {
		c.run(t)
	}
}

func TestSandbox(t *testing.T) {
	c := good(t, "", nil)
	same(t, "by default", c.Sandbox, config.Sandbox{Mode: "auto", MemoryMB: 512, Processes: 64, TmpMB: 64, Read: []string{}, Env: []string{}})
	for text, want := range map[string][]string{
		`network = "none"`: {"none"}, `network = "full"`: {"full"},
		`network = ["api.github.com", "*.example.com", "10.0.0.1:8080"]`: {"api.github.com", "*.example.com", "10.0.0.1:8080"},
	} {
		same(t, text, good(t, "[sandbox]\n"+text+"\n", nil).Sandbox.Network, want)
	}
	for text, want := range map[string]string{
		`mode = "docker"`:                 `write one of "auto"`,
		`network = "https://example.com"`: "isn't a host",
		`network = ["full", "a.example"]`: `"full" can't be combined with hosts`,
		`network = ["a.example", "a b"]`:  `"a b" isn't a host`,
		`memory_mb = 1`:                   "the smallest is 16",
		`processes = 0`:                   "it can't be unlimited",
		`read = ["sdk"]`:                  "doesn't begin with /",
		`read = ["/"]`:                    "could read the home",
		`env = ["A=b"]`:                   "isn't the name of a variable",
	} {
		if _, err := try(t, "[sandbox]\n"+text+"\n", nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "parley.toml:2") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// A browser that isn't installed doesn't stop any command, because only pictures need it.
func TestCanvas(t *testing.T) {
	program := filepath.Join(t.TempDir(), "chromium")
	same(t, "a browser", good(t, fmt.Sprintf("[canvas]\nbrowser = %q\n", program), nil).Canvas.Browser, program)
	same(t, "by default", good(t, "", nil).Canvas.Browser, "")
	_, err := try(t, "[canvas]\nbrowser = \"chromium\"\n", nil)
	for _, want := range []string{"doesn't begin with /", "parley.toml:2", "/usr/bin/chromium"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestWeb(t *testing.T) {
	c := good(t, `[web]
search = "searxng"
base_url = "http://127.0.0.1:8888/"
allow = ["example.com", "*.Example.org", "1.1.1.1", "2606:4700::1111"]
deny = ["bücher.example"]
`, nil)
	same(t, "web", []any{c.Web.Search, c.Web.BaseURL, c.Web.Allow[1], c.Web.Deny}, []any{"searxng", "http://127.0.0.1:8888", "*.Example.org", []string{"bücher.example"}})
	for text, want := range map[string]string{
		`search = "bing"`:                 `write one of "brave"`,
		`search = "brave"`:                `write api_key = "${BRAVE_API_KEY}"`,
		`search = "tavily"`:               `write api_key = "${TAVILY_API_KEY}"`,
		`search = "searxng"`:              "write base_url",
		`api_key = "${K}"`:                "there's a key, but no search service",
		`base_url = "http://127.0.0.1"`:   "there's a URL, but no search service",
		`allow = ["https://example.com"]`: `"https://example.com" isn't a host`,
		`deny = ["a.example", "*"]`:       `"*" isn't a host`,
		`deny = ["a.*.example"]`:          "isn't a host",
		`allow = ["example.com:443"]`:     "without a scheme, port or path",
	} {
		if _, err := try(t, "[web]\n"+text+"\n", vars{"K": "secret"}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "parley.toml:2") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// Tools are only listed, which means making all of them, if the configuration has rules about tools.
func TestToolsAreNamedWhereThereAreRules(t *testing.T) {
	for text, want := range map[string]int{"[model]\nname = \"m\"\n": 0, "[tools]\ndeny = [\"exec_shell\"]\n": 1} {
		file := put(t, t.TempDir(), "parley.toml", text)
		o := config.Options{File: file, Home: t.TempDir(), Env: vars{}.look}
		ruled(&o)
		named, tools := 0, o.Tools
		o.Tools = func() []string { named++; return tools() }
		if _, err := config.Load(o); err != nil || named != want {
			t.Errorf("%q: the tools were named %d times, %v; want %d", text, named, err, want)
		}
	}
}
