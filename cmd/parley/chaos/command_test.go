package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// commandMark is in the command line of every process of the command, and of no other process.
const commandMark = "beats-of-a-command-that-outlives-nobody"

// beatingCommand is a command that writes to a file again and again as long as it runs.
const beatingCommand = `: ` + commandMark + `; (while :; do echo x >> beats; sleep 0.05; done) & while :; do echo x >> beats; sleep 0.05; done`

// runningCommands returns the processes whose command line contains the mark.
func runningCommands(t *testing.T) (all []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if raw, err := os.ReadFile(line); err == nil && strings.Contains(string(raw), commandMark) { // it may be over
			all = append(all, filepath.Base(filepath.Dir(line)))
		}
	}
	return all
}

// A worker that is paused for longer than a lease in the middle of a command leaves no process of the command, and the
// command writes nothing later. The worker that takes over says that the outcome is unknown.
func TestPausedWorkerLeavesNoCommand(t *testing.T) {
	f := newFleet(t, func(r agenttest.Request) agenttest.Response {
		words := strings.Fields(r.Said())
		if words[len(words)-1] != "beat" {
			return agenttest.Reply("heard " + words[len(words)-1])
		}
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "exec_shell", Args: `{"command":"` + beatingCommand + `","timeout":300}`})
		}
		return agenttest.Reply("then: " + strings.Join(r.Results(), " "))
	})
	text, err := os.ReadFile(f.File)
	if err != nil {
		t.Fatal(err)
	}
	granted := strings.Replace(string(text), "[agents.main]\n", "[agents.main]\ncapabilities = [\"file_read\", \"shell\"]\n", 1)
	if err := os.WriteFile(f.File, []byte(granted), 0o600); err != nil {
		t.Fatal(err)
	}
	f.join("front", gateway)
	paused := f.join("paused", worker)
	file := filepath.Join(f.root, "main", "telegram:7", "beats")
	written := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	f.Telegram.Say(7, 7, "beat")
	parleytest.WaitFor(t, "the command to write", func() bool { return written() > 10 })
	if len(runningCommands(t)) == 0 {
		t.Fatal("no process of the command is found")
	}
	paused.signal(syscall.SIGSTOP, 0)
	f.join("next", worker)
	if got := f.WaitSaid(7, 1)[0]; !strings.Contains(got, "outcome_unknown") {
		t.Errorf("the next worker said %q", got)
	}
	if left := runningCommands(t); len(left) > 0 {
		t.Errorf("the processes %v are left", left)
	}
	at := written()
	for n, say := range []string{"one", "two"} {
		f.Telegram.Say(7, 7, say)
		if got := f.WaitSaid(7, n+2)[n+1]; got != "heard "+say {
			t.Errorf("it said %q", got)
		}
		if now := written(); now != at {
			t.Errorf("%d bytes were written after the command was over", now-at)
		}
		paused.signal(syscall.SIGCONT, 0)
	}
	f.endAll()
	if said := parleytest.Texts(f.Telegram.Sent(7)); len(said) != 3 {
		t.Errorf("it said %q", said)
	}
	if left, now := runningCommands(t), written(); len(left) > 0 || now != at {
		t.Errorf("in the end the processes %v are left, and %d bytes were written", left, now-at)
	}
}
