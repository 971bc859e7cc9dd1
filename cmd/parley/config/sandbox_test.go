package config_test

import (
	"strings"
	"testing"

	"parley/cmd/parley/config"
)

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
		`network = "https://example.com"`: "is no host",
		`network = ["full", "a.example"]`: `"full" stands beside hosts`,
		`network = ["a.example", "a b"]`:  `"a b" is no host`,
		`memory_mb = 1`:                   "the smallest is 16",
		`processes = 0`:                   "nothing means unlimited",
		`read = ["sdk"]`:                  "does not begin with /",
		`read = ["/"]`:                    "could read the home",
		`env = ["A=b"]`:                   "is not the name of a variable",
	} {
		if _, err := try(t, "[sandbox]\n"+text+"\n", nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "parley.toml:2") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
