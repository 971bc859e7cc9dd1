//go:build linux

package git_test

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/git"
	"parley/tools/sandbox"
	"parley/tools/testrace"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write what models are shown")

func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	os.Exit(testrace.Run(m.Run))
}

func TestShown(t *testing.T) {
	toolstest.New(git.New(git.Config{})...).Golden(t, filepath.Join("testdata", "shown.json"))
}

type ran struct {
	ExitCode int `json:"exit_code"`
	Stdout   string
	Stderr   string
}

func TestARepository(t *testing.T) {
	box, err := sandbox.Open(t.Context(), sandbox.Config{Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have a sandbox: %v", err)
	}
	workspace := t.TempDir()
	inside := func(args ...string) {
		t.Helper()
		r, err := box.Run(t.Context(), sandbox.Command{Args: args, Workspace: workspace})
		if err != nil || r.ExitCode != 0 {
			t.Fatalf("%q: %+v, %v", args, r, err)
		}
	}
	if r, err := box.Run(t.Context(), sandbox.Command{Args: []string{"git", "--version"}, Workspace: workspace}); err != nil || r.ExitCode != 0 {
		t.Skipf("NOT TESTED: git cannot be run here: %+v, %v", r, err)
	}
	inside("git", "init", "-q", "-b", "main", "repo")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(workspace, "repo", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := toolstest.New(git.New(git.Config{
		Sandbox: box, Changed: func(tools.Call) {},
		Place: func(_ context.Context, _ tools.Call, path string) (sandbox.Place, error) {
			return sandbox.Place{Workspace: workspace, Dir: path}, nil
		},
	})...)
	call := func(name string, pairs ...any) ran {
		t.Helper()
		var r ran
		if err := json.Unmarshal([]byte(c.Want(t, name, toolstest.Args(append(pairs, "path", "repo")...), "")), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	write("a.txt", "one\n")
	write("b.txt", "one\n")
	if r := call("git_status"); r.ExitCode != 0 || !strings.Contains(r.Stdout, "?? a.txt") {
		t.Errorf("status gave %+v", r)
	}
	message := "add a\n\nwith \"quotes\", $HOME and `ticks`"
	if r := call("git_commit", "message", message, "paths", []string{"a.txt"}); r.ExitCode != 0 {
		t.Errorf("commit gave %+v", r)
	}
	if r := call("git_log"); r.ExitCode != 0 || !strings.Contains(r.Stdout, "with \"quotes\", $HOME and `ticks`") || !strings.Contains(r.Stdout, "Author: main <agent@parley.invalid>") {
		t.Errorf("log gave %+v", r)
	}
	write("a.txt", "two\n")
	if r := call("git_diff"); !strings.Contains(r.Stdout, "+two") {
		t.Errorf("diff gave %+v", r)
	}
	inside("git", "-C", "repo", "config", "user.name", "somebody")
	if r := call("git_commit", "message", "change a"); r.ExitCode != 0 {
		t.Errorf("commit gave %+v", r)
	}
	if r := call("git_status"); !strings.Contains(r.Stdout, "?? b.txt") || strings.Contains(r.Stdout, "a.txt") {
		t.Errorf("all tracked files were to be committed, and no others: %+v", r)
	}
	if r := call("git_log", "limit", 1); !strings.Contains(r.Stdout, "Author: somebody") || strings.Count(r.Stdout, "commit ") != 1 {
		t.Errorf("log gave %+v", r)
	}
	if r := call("git_branch", "name", "topic", "from", "HEAD~1"); r.ExitCode != 0 {
		t.Errorf("branch gave %+v", r)
	}
	if r := call("git_branch"); !strings.Contains(r.Stdout, "* topic") || !strings.Contains(r.Stdout, "main") {
		t.Errorf("branches are %+v", r)
	}
	if r := call("git_diff", "ref", "main"); !strings.Contains(r.Stdout, "-two") {
		t.Errorf("diff gave %+v", r)
	}
	for name, args := range map[string]string{
		"git_diff": `{"ref":"--output=x"}`, "git_branch": `{"name":"--force"}`, "git_commit": `{"message":" "}`,
	} {
		c.WantError(t, name, args, tools.InvalidArgs)
	}
	if r := call("git_commit", "message", "x", "paths", []string{"../../outside"}); r.ExitCode == 0 {
		t.Errorf("a path outside gave %+v", r)
	}
}
