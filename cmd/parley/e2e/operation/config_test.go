package operation

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// parley config check fails for a configuration with which serve would not start, even if other commands can use it. In
// a fleet, the result depends on the role.
func TestConfigCheckFailsWhereServeWould(t *testing.T) {
	t.Parallel()
	const bot = "[channels.telegram]\nbot_token = \"1:x\"\n"
	const demo = "[model]\nname = \"demo\"\n"
	for _, c := range []struct {
		name, text string
		args       []string
		code       int
		errs       string
	}{
		{"nobody answers", bot, nil, parleytest.ExitConfig, "model"},
		{"nobody answers, as JSON", bot, []string{"--json"}, parleytest.ExitConfig, "model"},
		{"somebody answers", bot + demo, nil, parleytest.ExitDone, ""},
		{"a gateway beside workers", bot + "[bus]\nurl = \"redis://h\"\n[store]\nurl = \"postgres://h/d\"\n", []string{"--role", "gateway"}, parleytest.ExitDone, ""},
		{"a gateway alone", bot, []string{"--role", "gateway"}, parleytest.ExitConfig, "bus.url"},
		{"a skills folder that there is not", bot + demo + "[skills]\ndirs = [\"nowhere\"]\n", nil, parleytest.ExitConfig, "[skills] dirs"},
		{"a knowledge folder that there is not", bot + demo + "[knowledge]\ndir = \"nowhere\"\n", nil, parleytest.ExitConfig, "knowledge.dir"},
		{"a verdict", bot + demo + "[http]\nlisten = \"\"\n", nil, parleytest.ExitDone, "serve would start with it"},
		{"no such role", bot, []string{"--role", "boss"}, parleytest.ExitUsage, "boss"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "parley.toml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			path, err := parleytest.Binary()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), path, append([]string{"config", "check", "--config", file, "--home", dir}, c.args...)...)
			cmd.Env = []string{"HOME=" + dir}
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output() // the exit code is checked below
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("%d (%v) %q", code, err, errs.String())
			}
			if printed := strings.Contains(string(out), "channels"); printed != (c.code != parleytest.ExitUsage) {
				t.Errorf("it printed %q", out)
			}
		})
	}
}
