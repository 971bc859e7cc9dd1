package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// commander plays a model that makes the call that it is told to make: TOOL ARGUMENTS.
func commander(r agenttest.Request) agenttest.Response {
	if r.Rounds() > 0 {
		return agenttest.Reply(strings.Join(r.Results(), "\n"))
	}
	name, args, _ := strings.Cut(r.Said(), " ")
	return agenttest.Calls(agenttest.ToolCall{Name: name, Args: args})
}

func shellCall(line string) string { return fmt.Sprintf(`exec_shell {"command":%q}`, line) }

// The owner's agent in a terminal can run commands. The commands cannot see the program's secrets, its home, or other
// conversations.
func TestCommandsInATerminal(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, commander, "")
	w.NeedsSandbox()
	say := func(session, text string) string {
		t.Helper()
		out, errs, code := w.Run("chat", "--session", session, "-m", text)
		if code != parleytest.ExitDone {
			t.Errorf("%s: exit code %d, %s", text, code, errs)
		}
		return out
	}
	if out := say("one", shellCall(`printf SECRET >kept; echo hello >&2; echo $((6*7))`)); !strings.Contains(out, `"exit_code":0,"stdout":"42\n","stderr":"hello\n","duration_ms":`) {
		t.Errorf("it gave %s", out)
	}
	if out := say("one", `read_file {"path":"/workspace/kept"}`); !strings.Contains(out, "SECRET") {
		t.Errorf("what it wrote, by the path that it knows, is %s", out)
	}
	for _, line := range []string{
		`cat "` + w.Home + `"/token "` + w.File + `"; find / -name kept 2>/dev/null; cat /proc/*/environ | tr '\0' '\n'; env`,
		`ls -R "` + filepath.Join(w.Home, "workspaces") + `"; cat "` + filepath.Join(w.Home, "workspaces", "main", "console:one", "kept") + `"`,
		`ls -R "` + w.Home + `"`,
	} {
		token, err := os.ReadFile(filepath.Join(w.Home, "token"))
		parleytest.Must(t, err)
		if out := say("two", shellCall(line)); strings.Contains(out, "SECRET") || strings.Contains(out, strings.TrimSpace(string(token))) || strings.Contains(out, "sessions.db") || strings.Contains(out, parleytest.Token) {
			t.Errorf("%s gave %s", line, out)
		}
	}
	// The tools for files cannot be tricked by links that a command has made.
	say("one", shellCall(`mkfifo pipe; ln -s /etc/passwd link; ln -s "`+w.Home+`/token" token; truncate -s 150M sparse`))
	for _, path := range []string{"pipe", "link", "token"} {
		if out := say("one", fmt.Sprintf(`read_file {"path":%q}`, path)); !strings.Contains(out, "invalid_path") {
			t.Errorf("%s gave %s", path, out)
		}
	}
	if out := say("one", `read_file {"path":"sparse"}`); !strings.Contains(out, "error") || len(out) > 2000 {
		t.Errorf("a sparse file gave %.2000s", out)
	}
	if out := say("one", shellCall(`git init -q .; git config core.fsmonitor 'touch "`+w.Home+`/marker" ran;:'; git status >/dev/null; ls ran`)); !strings.Contains(out, `ran\n`) {
		t.Errorf("git ran nothing: %s", out)
	}
	say("one", `git_status {}`)
	if _, err := os.Stat(filepath.Join(w.Home, "marker")); err == nil {
		t.Error("git ran it outside of the sandbox")
	}
}

// On a platform, an agent can run commands only if the configuration grants it that capability, and its commands can
// use the network only if it grants that, too.
func TestCommandsAreGranted(t *testing.T) {
	t.Parallel()
	commands := []string{"exec_shell", "spawn", "git_status", "git_diff", "git_log", "git_commit", "git_branch"}
	for capabilities, want := range map[string][]string{`"file_read"`: nil, `"shell"`: commands[:2], `"git"`: commands[2:]} {
		shown := make(chan []string, 10)
		w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
			shown <- r.Tools()
			return commander(r)
		}, "[agents.main]\ncapabilities = ["+capabilities+"]\n")
		w.NeedsSandbox()
		for len(shown) > 0 {
			<-shown // doctor also asks the model
		}
		w.Serve()
		w.Telegram.Say(2, 2, `spawn {"command":"echo","args":["spoke"]}`)
		got := w.WaitSaid(2, 1)[0]
		tools := <-shown
		for _, name := range commands {
			if slices.Contains(tools, name) != slices.Contains(want, name) {
				t.Errorf("with %s: %s is shown: %v", capabilities, name, slices.Contains(tools, name))
			}
		}
		if ran := strings.Contains(got, "spoke"); ran != (capabilities == `"shell"`) || !ran && !strings.Contains(got, "permission_denied") {
			t.Errorf("with %s: %s", capabilities, got)
		}
	}
}

func TestASandboxThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"mode = \"none\"\n":                          {"sandbox.network", `"none"`, "isolates nothing"},
		"mode = \"landlock\"\nnetwork = \"full\"\n":  {"sandbox.network", "bubblewrap"},
		"mode = \"landlock\"\nnetwork = [\"a.b\"]\n": {"sandbox.network", "bubblewrap"},
		"network = [\"a.b\", \"none\"]\n":            {"sandbox.network", "be combined with hosts"},
	} {
		w := parleytest.New(t, parleytest.EchoModel, "[sandbox]\n"+text)
		needed := w.Command("serve")
		out, err := needed.CombinedOutput()
		if err == nil || needed.ProcessState.ExitCode() != parleytest.ExitConfig {
			t.Errorf("%s: ended with %v", text, err)
		}
		for _, word := range append(want, "parley.toml:") {
			if !strings.Contains(string(out), word) {
				t.Errorf("%s: it says %s, without %q", text, out, word)
			}
		}
	}
	w := parleytest.New(t, parleytest.EchoModel, "[sandbox]\nmode = \"bubblewrap\"\n[agents.main]\ncapabilities = [\"shell\"]\n")
	for _, command := range []string{"serve", "doctor"} {
		cmd := w.Command(command)
		cmd.Env = []string{"PATH=" + t.TempDir(), "HOME=" + w.Home}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "install bubblewrap") {
			t.Errorf("%s without bubblewrap: %v, %s", command, err, out)
		}
	}
}

// If a worker is killed in the middle of a command, no process of the command is left. The next worker does not run the
// command again, and says so.
func TestAWorkerDiesInACommand(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, commander, "[agents.main]\ncapabilities = [\"shell\"]\n")
	w.NeedsSandbox()
	p := w.Serve()
	mark := fmt.Sprintf("mark-%d", time.Now().UnixNano())
	w.Telegram.Say(2, 2, shellCall(`echo x >>times; setsid sh -c 'trap "" TERM; while :; do date +%N >>written; sleep 0.02; done' `+mark+` & wait`))
	folder := filepath.Join(w.Home, "workspaces", "main", "telegram:2")
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	parleytest.WaitFor(t, "the command to run", func() bool { return size("written") > 0 })
	p.Kill()
	parleytest.WaitFor(t, "the command's end", func() bool { return len(processesWith(t, mark)) == 0 })
	before := size("written")
	w.Serve()
	if got := w.WaitSaid(2, 1)[0]; !strings.Contains(got, "outcome_unknown") {
		t.Errorf("the next worker says %s", got)
	}
	if size("written") != before || size("times") != 2 {
		t.Errorf("it was written after the end, or ran twice: %d then %d, %d", before, size("written"), size("times"))
	}
}

// A command also ends with all its processes on /stop, and when its server stops in good order.
func TestACommandIsStopped(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, commander, "[serve]\ndrain = \"200ms\"\n[agents.main]\ncapabilities = [\"shell\"]\n")
	w.NeedsSandbox()
	p := w.Serve()
	for _, how := range []string{"/stop", "SIGTERM"} {
		mark := fmt.Sprintf("mark-%d", time.Now().UnixNano())
		w.Telegram.Say(3, 3, shellCall(`setsid sleep 1000 `+"`: "+mark+"`"+`& sh -c 'trap "" TERM; sleep 1000; :' `+mark))
		parleytest.WaitFor(t, "the command to run", func() bool { return len(processesWith(t, mark)) > 0 })
		if how == "/stop" {
			w.Telegram.Say(3, 3, "/stop")
		} else {
			parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGTERM))
		}
		parleytest.WaitFor(t, "its end after "+how, func() bool { return len(processesWith(t, mark)) == 0 })
	}
	if err := <-p.Ended; err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

// processesWith returns the ids of the processes whose arguments contain a text.
func processesWith(t *testing.T, text string) (pids []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	parleytest.Must(t, err)
	for _, name := range names {
		if raw, err := os.ReadFile(name); err == nil && strings.Contains(string(raw), text) {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids
}
