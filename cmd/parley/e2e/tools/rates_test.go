package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
)

// writing plays a model that is told "write N", writes N files one after another, and answers with the results. If it is
// told "hand out write N", it gives that task to a sub-agent.
func writing(r agenttest.Request) agenttest.Response {
	said, handsOut := strings.CutPrefix(r.Said(), "hand out ")
	n := 0
	_, _ = fmt.Sscanf(said, "write %d", &n)
	switch {
	case handsOut && r.Rounds() == 0:
		return agenttest.Calls(agenttest.Call("task", fmt.Sprintf(`{"prompt":%q}`, said)))
	case !handsOut && r.Rounds() < n:
		return agenttest.Calls(agenttest.Call("write_file", fmt.Sprintf(`{"path":"%d.txt","content":"x"}`, r.Rounds())))
	}
	return agenttest.Reply(strings.Join(r.Results(), "\n"))
}

// refusals returns the number of calls in an answer that exceeded a rate.
func refusals(text string) int { return strings.Count(text, `"code":"rate_limited"`) }

// A rate limits the calls of a person over all conversations and sub-agents, separately for each person. The model and
// the audit are told about refused calls. A reload applies a changed rate.
func TestARateLimitsThePersonsCalls(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, writing, "[tools]\nrate = [\"write_* 3/h\"]\n[agents.main]\ncapabilities = [\"file_read\", \"file_write\", \"session\"]\n")
	p := w.Serve()
	w.Telegram.Say(2, 2, "write 2")
	if said := w.WaitSaid(2, 1)[0]; refusals(said) != 0 {
		t.Errorf("within the rate: %s", said)
	}
	w.Telegram.Say(2, 2, "hand out write 2")
	said := w.WaitSaid(2, 2)[1]
	if n := strings.Count(said, "rate_limited"); n != 1 {
		t.Errorf("of a sub-agent's calls %d were refused: %s", n, said)
	}
	w.Telegram.Say(2, 2, "write 1")
	said = w.WaitSaid(2, 3)[2]
	parleytest.Wants(t, said, `"code":"rate_limited"`, "write_file was not run: the operator allows each person 3 calls of tools named write_* per hour", " UTC. Go on without it")
	w.Telegram.Say(3, 3, "write 1")
	if said := w.WaitSaid(3, 1)[0]; refusals(said) != 0 {
		t.Errorf("somebody else was refused: %s", said)
	}

	out, errs, code := w.Run("--json", "logs", "--filter", "tool")
	if code != 0 {
		t.Fatal(errs)
	}
	refused := 0
	for line := range strings.Lines(out) {
		var r sessions.AuditRecord
		parleytest.Must(t, json.Unmarshal([]byte(line), &r))
		if r.Result == "rate_limited" {
			refused++
			if r.Verdict != "deny" || r.Detail != "rate" || r.By != "telegram:2" {
				t.Errorf("the audit has %+v", r)
			}
		}
	}
	if refused != 2 {
		t.Errorf("the audit has %d calls over the rate, want 2:\n%s", refused, out)
	}

	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.ReplaceAll(string(text), "3/h", "4/h")), 0o600))
	parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGHUP))
	parleytest.WaitFor(t, "the configuration to be read again", func() bool { return strings.Contains(p.Stderr.String(), "configuration read again") })
	w.Telegram.Say(2, 2, "write 2")
	if said := w.WaitSaid(2, 4)[3]; refusals(said) != 1 {
		t.Errorf("after the reload: %s", said)
	}
	p.Stop()
}

// If the process dies after it has counted a call, the resumed turn runs the call, and the call is counted once.
func TestACallIsCountedOnceAlthoughItsProcessDied(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"rate:counted", "c4", "c5"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, writing, "[tools]\nrate = [\"write_file 1/d\"]\n")
			w.Telegram.Say(2, 2, "write 2")
			w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			p := w.Serve()
			if said := w.WaitSaid(2, 1)[0]; refusals(said) != 1 {
				t.Errorf("want one of two calls: %s", said)
			}
			p.Stop()
			if n := w.Count("sessions.db", "SELECT count(*) FROM rated_calls"); n != 1 {
				t.Errorf("%d calls are counted", n)
			}
		})
	}
}
