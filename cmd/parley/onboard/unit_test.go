package onboard_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/onboard"
)

// verified checks a unit with systemd-analyze, if it is installed.
func verified(t *testing.T, text string, more ...string) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not here: the unit is looked at without it")
		return
	}
	file := filepath.Join(t.TempDir(), onboard.Name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, append(append([]string{"verify", "--man=no"}, more...), file)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// A user's unit serves that user's home, and replaces another unit only if the caller wants that.
func TestOnesOwnUnit(t *testing.T) {
	t.Parallel()
	s := onboard.Service{Program: "/bin/sh", Config: "/a place/parley.toml", Home: "/a place/home"}
	folder := t.TempDir()
	path, err := s.Path(func(name string) string { return map[string]string{"HOME": folder}[name] })
	if err != nil || path != filepath.Join(folder, ".config", "systemd", "user", "parley.service") {
		t.Fatalf("it belongs at %s (%v)", path, err)
	}
	if err := s.Write(path, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `ExecStart="/bin/sh" --home "/a place/home" --config "/a place/parley.toml" serve`) {
		t.Errorf("the unit (%v):\n%s", err, text)
	}
	verified(t, string(text))
	if err := s.Write(path, false); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	s.Config = ""
	if err := s.Write(path, false); !errors.Is(err, os.ErrExist) {
		t.Errorf("another one: %v, want that there is one", err)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(text) {
		t.Errorf("it was replaced (%v):\n%s", err, again)
	}
	if err := s.Write(path, true); err != nil {
		t.Error(err)
	}
	s.Home = "/a $HOME"
	if _, err := s.Text(); err == nil {
		t.Error("a path was taken that systemd reads in another way")
	}
}

// The system's unit reads files that its user may read, and an error names those that its user may not.
func TestTheMachinesUnit(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "parley-unit-") // unlike t.TempDir, a place that every user may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	config := filepath.Join(folder, "parley.toml")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for path, mode := range map[string]os.FileMode{config: mode, folder: 0o755} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := onboard.Service{Program: "/bin/sh", Config: config, Home: "/nowhere", Root: true}
	write("[model]\nname = \"demo\"\n# ${file:secrets/not}\n", 0o644)
	text, err := s.Text()
	if err != nil || !strings.Contains(text, `ExecStart="/bin/sh" serve --config "`+config+`"`) || strings.Contains(text, "\nLoadCredential=") || !strings.Contains(text, "DynamicUser=yes") {
		t.Errorf("the unit (%v):\n%s", err, text)
	}
	verified(t, text)
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		says       string
	}{
		{"a configuration that only root reads", "", 0o600, "can't read " + config},
		{"a secret that only root reads", `api_key = "${file:secrets/model}"`, 0o644, "/etc/parley/credentials/NAME"},
		{"a credential that there is not", `api_key = "${file:/run/credentials/parley.service/there-is-none}"`, 0o644, "/etc/parley/credentials/there-is-none"},
	} {
		write(c.text, c.mode)
		_, err := s.Text()
		if problem, ok := errors.AsType[*onboard.Problem](err); !ok || !strings.Contains(problem.Error(), c.says) {
			t.Errorf("%s: %v, want a problem with %q", c.name, err, c.says)
		}
	}
	s.Config = ""
	if _, err := s.Text(); err == nil {
		t.Error("a unit without a configuration")
	}
}

// A node's unit has its own name, home and command, so it can exist beside the server's.
func TestNodeUnits(t *testing.T) {
	t.Parallel()
	s := onboard.Service{Program: "/bin/sh", Home: "/a place/home", Node: true}
	path, err := s.Path(func(string) string { return "/x" })
	if err != nil || filepath.Base(path) != "parley-node.service" {
		t.Errorf("it belongs at %s (%v)", path, err)
	}
	text, err := s.Text()
	if err != nil || !strings.Contains(text, `ExecStart="/bin/sh" --home "/a place/home" node`) || strings.Contains(text, "ExecReload") {
		t.Errorf("the unit (%v):\n%s", err, text)
	}
	verified(t, text)
	if !strings.Contains(strings.Join(s.StartCommands(), "\n")+s.StopCommand()+s.LogCommand(), "enable --now parley-node") {
		t.Errorf("it is started with %q", s.StartCommands())
	}
	s.Root, s.Camera = true, true
	text, err = s.Text()
	for _, line := range []string{`ExecStart="/bin/sh" node`, "Environment=PARLEY_HOME=/var/lib/parley-node", "StateDirectory=parley-node", "PrivateDevices=no", "DynamicUser=yes"} {
		if err != nil || !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the unit has no line %s (%v):\n%s", line, err, text)
		}
	}
	if strings.Contains(text, "LoadCredential") || strings.Contains(text, "ExecReload") || strings.Contains(text, "install -m") {
		t.Errorf("the unit has what is the server's:\n%s", text)
	}
	verified(t, text)
}
