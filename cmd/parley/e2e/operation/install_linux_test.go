package operation

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/parleytest"
)

// parley install writes a service with the secrets that the configuration reads from variables, starts it if asked to,
// and says where its log is. Uninstalling removes it again. The programs of systemd are stand-ins that record how they
// were called.
func TestInstallAndUninstall(t *testing.T) {
	t.Parallel()
	b := newBeginner(t)
	const user = 4242 // root would install the machine's unit
	programs, called := t.TempDir(), filepath.Join(b.home, "called")
	for _, name := range []string{"systemctl", "loginctl"} {
		parleytest.Must(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho "+name+" \"$@\" >> '"+called+"'\n"), 0o700))
	}
	parleytest.Must(t, os.Mkdir(filepath.Join(b.home, ".parley"), 0o700))
	parleytest.Must(t, os.WriteFile(filepath.Join(b.home, ".parley", "parley.toml"), []byte("[model]\nbase_url = \""+b.url+"\"\napi_key = \"${A_KEY}\"\n# ${NOT_READ}\n"), 0o600))
	if os.Geteuid() == 0 {
		for _, file := range []string{b.home, filepath.Join(b.home, ".parley"), filepath.Join(b.home, ".parley", "parley.toml")} {
			parleytest.Must(t, os.Chown(file, user, user))
		}
		parleytest.Must(t, os.Chmod(filepath.Dir(programs), 0o755)) //nolint:gosec // the other user goes through it
		for _, name := range []string{"systemctl", "loginctl"} {
			parleytest.Must(t, os.Chmod(filepath.Join(programs, name), 0o755)) //nolint:gosec // the other user runs them
		}
	}
	program := filepath.Join(programs, "parley") // a place that the other user can read
	parleytest.Must(t, os.Link(b.command().Path, program))
	run := func(key string, args ...string) (string, error) {
		cmd := b.command(append([]string{"serve"}, args...)...)
		cmd.Path = program
		cmd.Env = append(cmd.Env, "PATH="+programs+":"+os.Getenv("PATH"), "A_KEY="+key)
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("", "--install"); err == nil || !strings.Contains(out, "${A_KEY}") {
		t.Errorf("a variable that is not set: %v\n%s", err, out)
	}
	out, err := run("sk-1", "--install", "--start")
	if err != nil || !strings.Contains(out, "journalctl --user -u parley") || strings.Contains(out, "sk-1") {
		t.Fatalf("install: %v\n%s", err, out)
	}
	unit := filepath.Join(b.home, ".config", "systemd", "user", "parley.service")
	environment := filepath.Join(b.home, ".parley", "service.env")
	if text, err := os.ReadFile(unit); err != nil || !strings.Contains(string(text), "EnvironmentFile="+environment+"\n") || strings.Contains(string(text), "sk-1") {
		t.Errorf("the unit (%v):\n%s", err, text)
	}
	if text := b.written("service.env"); text != "A_KEY='sk-1'\n" {
		t.Errorf("the environment is %q", text)
	}
	configuration := filepath.Join(b.home, ".parley", "parley.toml")
	parleytest.Must(t, os.WriteFile(configuration, []byte("[model]\nbase_url = \""+b.url+"\"\n"), 0o600))
	if out, err := run("sk-1", "--install"); err == nil || !strings.Contains(out, "already exists") {
		t.Errorf("it is replaced without a question: %v\n%s", err, out)
	}
	if text := b.written("service.env"); text != "A_KEY='sk-1'\n" {
		t.Errorf("without an answer to the question the environment is %q", text)
	}
	if out, err := run("sk-1", "--install", "--yes"); err != nil {
		t.Fatalf("install without variables: %v\n%s", err, out)
	}
	if _, err := os.Stat(environment); err == nil {
		t.Error("the variables of the earlier configuration are still there")
	}
	parleytest.Must(t, os.WriteFile(configuration, []byte("[model"), 0o600))
	if out, err := run("sk-1", "--uninstall"); err != nil {
		t.Fatalf("uninstall: %v\n%s", err, out)
	}
	for _, file := range []string{unit, environment} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is still there", file)
		}
	}
	calls, err := os.ReadFile(called)
	if want := "systemctl --user daemon-reload\nsystemctl --user enable --now parley\nloginctl enable-linger\nsystemctl --user disable --now parley\n"; err != nil || string(calls) != want {
		t.Errorf("called was (%v)\n%s", err, calls)
	}
}
