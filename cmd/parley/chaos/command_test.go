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

// mark stands in the command line of every process of the command, and nowhere else.
const mark = "beats-of-a-command-that-outlives-nobody"

// beats is a command that writes for as long as it runs.
const beats = `: ` + mark + `; (while :; do echo x >> beats; sleep 0.05; done) & while :; do echo x >> beats; sleep 0.05; done`

// running are the processes whose command line has the mark.
func running(t *testing.T) (all []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if raw, err := os.ReadFile(line); err == nil && strings.Contains(string(raw), mark) { // it may be over
			all = append(all, filepath.Base(filepath.Dir(line)))
		}
	}
	return all
}

// A worker that stands still for longer than a lease, in the middle of a command, leaves
// no process and no write behind, and who takes over says that the outcome is unknown.
func TestPausedWorkerLeavesNoCommand(t *testing.T) {
	f := newFleet(t, func(r agenttest.Request) agenttest.Response {
		words := strings.Fields(r.Said())
		if words[len(words)-1] != "beat" {
			return agenttest.Reply("heard " + words[len(words)-1])
		}
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "exec_shell", Args: `{"command":"` + beats + `","timeout":300}`})
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
	if len(running(t)) == 0 {
		t.Fatal("no process of the command is found")
	}
	paused.signal(syscall.SIGSTOP, 0)
	f.join("next", worker)
	if got := f.Said(7, 1)[0]; !strings.Contains(got, "outcome_unknown") {
		t.Errorf("the next worker said %q", got)
	}
	if left := running(t); len(left) > 0 {
		t.Errorf("the processes %v are left", left)
	}
	at := written()
	for n, say := range []string{"one", "two"} {
		f.Telegram.Say(7, 7, say)
		if got := f.Said(7, n+2)[n+1]; got != "heard "+say {
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
	if left, now := running(t), written(); len(left) > 0 || now != at {
		t.Errorf("in the end the processes %v are left, and %d bytes were written", left, now-at)
	}
}
