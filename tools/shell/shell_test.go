//go:build linux

package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/shell"
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

// newShell makes the tools over a real sandbox.
func newShell(t *testing.T) (c *toolstest.Caller, workspace string) {
	t.Helper()
	box, err := sandbox.Open(t.Context(), sandbox.Config{Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have a sandbox: %v", err)
	}
	workspace = t.TempDir()
	return toolstest.New(shell.New(shell.Config{
		Sandbox: box, Changed: func(tools.Call) {},
		Place: func(context.Context, tools.Call) (sandbox.Place, error) {
			return sandbox.Place{Workspace: workspace, Quota: sandbox.Quota{Bytes: 10 << 20, Items: 1000}}, nil
		},
	})...), workspace
}

func TestShown(t *testing.T) {
	toolstest.New(shell.New(shell.Config{})...).Golden(t, filepath.Join("testdata", "shown.json"))
}

// runTool calls a tool and reads its result.
func runTool(t *testing.T, c *toolstest.Caller, name, args string) (r struct {
	ExitCode    int `json:"exit_code"`
	Stdout      string
	Stderr      string
	DurationMS  *int64 `json:"duration_ms"`
	Command     string
	Description string
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(c.Want(t, name, args, "")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExecShell(t *testing.T) {
	c, workspace := newShell(t)
	if r := runTool(t, c, "exec_shell", toolstest.Args("command", `echo out; echo err >&2; pwd >where; exit 7`)); r.ExitCode != 7 || r.Stdout != "out\n" || r.Stderr != "err\n" || r.DurationMS == nil {
		t.Errorf("it gave %+v", r)
	}
	if _, err := os.Stat(filepath.Join(workspace, "where")); err != nil {
		t.Errorf("it did not run in the workspace: %v", err)
	}
	// A command that no parser understands runs in the sandbox.
	marker := filepath.Join(t.TempDir(), "marker")
	line := `echo dG91Y2ggIiQxIiAyPi9kZXYvbnVsbDsgY2F0IC9ldGMvc2hhZG93IDI+L2Rldi9udWxsOyBlY2hvIGRvbmU= | base64 -d | sh -s "` + marker + `"`
	if r := runTool(t, c, "exec_shell", toolstest.Args("command", line)); r.Stdout != "done\n" {
		t.Errorf("a hidden command gave %+v", r)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a hidden command wrote outside")
	}
	c.WantError(t, "exec_shell", toolstest.Args("command", " "), tools.InvalidArgs, "empty")
	c.WantError(t, "exec_shell", toolstest.Args("command", "echo "+strings.Repeat("x", 130_000)), tools.InvalidArgs, "write_file")
	c.WantError(t, "exec_shell", toolstest.Args("command", "a\x00b"), tools.InvalidArgs, "NUL")
	if e := c.Effect(t, "exec_shell", toolstest.Args("command", "true")); e != tools.Once {
		t.Errorf("its effect is %s", e)
	}
}

func TestTimeout(t *testing.T) {
	c, workspace := newShell(t)
	ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond) // as the agent gives each call its deadline
	defer cancel()
	_, err := c.Try(ctx, "exec_shell", toolstest.Args("command", `echo begun; setsid sh -c 'trap "" TERM; while :; do date +%N >>late; sleep 0.02; done' & sleep 60`, "timeout", 0.6))
	failed, ok := errors.AsType[*tools.Error](err)
	if !ok || failed.Code != tools.Timeout || !strings.Contains(failed.Message, "longer timeout") || !strings.Contains(failed.Message, "begun") {
		t.Errorf("it failed with %v", err)
	}
	before, _ := os.ReadFile(filepath.Join(workspace, "late"))
	runTool(t, c, "exec_shell", toolstest.Args("command", "sleep 0.2"))
	if after, err := os.ReadFile(filepath.Join(workspace, "late")); err != nil || len(after) != len(before) || len(after) == 0 {
		t.Errorf("it wrote %d bytes more, %v", len(after)-len(before), err)
	}
	c.WantError(t, "exec_shell", toolstest.Args("command", `i=0; while :; do head -c 1000000 /dev/zero >f$i; i=$((i+1)); done`), tools.ExecutionFailed, "at most 10 are allowed", "inspect")
}

func TestSpawn(t *testing.T) {
	c, _ := newShell(t)
	if r := runTool(t, c, "spawn", `{"command":"printf","args":["%s|","a b","$HOME",";"],"description":"print"}`); r.Stdout != "a b|$HOME|;|" || r.Command != "printf" || r.Description != "print" {
		t.Errorf("it gave %+v", r)
	}
	if r := runTool(t, c, "spawn", `{"command":"no-such-program"}`); r.ExitCode != 127 || r.Description != "(no description)" {
		t.Errorf("a program that there is not gave %+v", r)
	}
	started := make(chan struct{}, 5)
	ctx, cancel := context.WithCancel(t.Context())
	var five sync.WaitGroup
	for range 5 {
		own := *c
		once := sync.OnceFunc(func() { started <- struct{}{} })
		own.Call.Progress = func(string) { once() }
		five.Go(func() {
			if _, err := own.Try(ctx, "spawn", `{"command":"sh","args":["-c","echo up; sleep 60"]}`); !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
	for range 5 {
		<-started
	}
	c.WantError(t, "spawn", `{"command":"true"}`, tools.ExecutionFailed, "at most 5")
	other := *c
	other.Call.Session = "main:telegram:43"
	if r := runTool(t, &other, "spawn", `{"command":"true"}`); r.ExitCode != 0 {
		t.Errorf("another session is bound by it: %+v", r)
	}
	cancel()
	five.Wait()
	if r := runTool(t, c, "spawn", `{"command":"true"}`); r.ExitCode != 0 {
		t.Errorf("the place was not given back: %+v", r)
	}
}

func TestProgress(t *testing.T) {
	c, _ := newShell(t)
	var told []string
	c.Call.Progress = func(text string) { told = append(told, text) }
	runTool(t, c, "exec_shell", toolstest.Args("command", "echo first; for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done; printf '\\033[31mpart'"))
	if len(told) != 1 || !slices.Contains([]string{"first", "line 9"}, told[0]) && !strings.HasPrefix(told[0], "line ") {
		t.Errorf("watchers were told %q", told)
	}
	told = nil
	runTool(t, c, "exec_shell", toolstest.Args("command", "printf 'a\\033[31m\\001b\\n'"))
	if !slices.Equal(told, []string{"a[31mb"}) {
		t.Errorf("watchers were told %q", told)
	}
}

// The tool for a place without background jobs doesn't offer them.
func TestForeground(t *testing.T) {
	tool := shell.NewForeground(shell.Config{})
	if spec := tool.Spec(); spec.Name != "exec_shell" || strings.Contains(string(spec.Schema)+spec.Description, "background") {
		t.Errorf("the tool is %+v", spec)
	}
	if tools.EffectOf(tool, tools.Call{Args: json.RawMessage(`{"command":"true"}`)}) != tools.Once {
		t.Error("a command may run twice")
	}
}
