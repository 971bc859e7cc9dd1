package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/platforms"
)

func TestWhatEachRoleNeeds(t *testing.T) {
	const (
		fleet   = "[bus]\nurl = \"redis://r\"\n[store]\nurl = \"postgres://p/d\"\n"
		channel = "[channels.telegram]\nbot_token = \"4242:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n"
		model   = "[model]\nname = \"demo\"\n"
	)
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_MODEL", "")
	for _, c := range []struct{ role, text, want string }{
		{"gateway,worker", channel + model, ""},
		{"gateway,worker", channel, "no model answers"},
		{"worker,gateway", fleet + channel, "no model answers"},
		{"gateway", fleet + channel, ""},
		{"worker", fleet + channel, "no model answers"},
		{"worker", fleet + model, ""},
		{"gateway", channel + model, "bus.url"},
		{"worker", channel + model, "bus.url"},
	} {
		file := filepath.Join(t.TempDir(), "parley.toml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{Platforms: platforms.Settings(), File: file, Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		role, err := ParseRole(c.role)
		if err != nil {
			t.Fatal(err)
		}
		switch err := role.Check(cfg); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s with\n%s: it says %v, want %q", c.role, c.text, err, c.want)
		}
	}
}

func TestRolesThatThereAreNot(t *testing.T) {
	for _, list := range []string{"", "nonsense", "gateway,", "gateway;worker", "Worker"} {
		if role, err := ParseRole(list); err == nil {
			t.Errorf("%q is taken as %v", list, role)
		}
	}
}
