package operation

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
)

// readAudit returns the records that parley logs prints with these flags.
func readAudit(t *testing.T, w *parleytest.World, flags ...string) (records []sessions.AuditRecord) {
	t.Helper()
	out, errs, code := w.Run(append([]string{"--json", "logs"}, flags...)...)
	if code != 0 {
		t.Fatalf("logs %v: %d %s", flags, code, errs)
	}
	for line := range strings.Lines(out) {
		var r sessions.AuditRecord
		parleytest.Must(t, json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	return records
}

// parley logs shows what the bot did and which messages it did not answer. It filters by kind, person, session and
// time, and can follow new records.
func TestLogsOfTurnsAndRefusals(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response { return agenttest.Reply("you said " + r.Said()) }, "[limits]\nuser_turns_hour = 1\n")
	w.Telegram.SwitchPrivacy(false)
	server := w.Serve()
	server.WaitServing()
	w.Telegram.Say(2, 2, "my-words")
	w.WaitSaid(2, 1)
	w.Telegram.Say(2, 2, "my-words too")
	w.WaitSaid(2, 2)
	w.Telegram.Say(5000, 5000, "my-words")
	w.WaitSaid(5000, 1)
	w.Telegram.Say(-77, 2, "my-words")
	var turns, refusals []sessions.AuditRecord
	parleytest.WaitFor(t, "the records", func() bool {
		turns, refusals = readAudit(t, w, "--filter", "turn"), readAudit(t, w, "--filter", "refusal")
		return len(turns) == 1 && len(refusals) == 3
	})
	if r := turns[0]; r.By != "telegram:2" || r.Session != "main:telegram:2" || r.Result != "done" || r.Used == nil || r.Used.ModelCalls != 1 || r.Used.Model != "scripted" {
		t.Errorf("the turn is %+v", r)
	}
	for rule, want := range map[string]sessions.AuditRecord{
		"too_many_turns": {By: "telegram:2", Address: "telegram:2", Session: "main:telegram:2"},
		"stranger":       {By: "telegram:5000", Address: "telegram:5000"},
		"not_mentioned":  {Address: "telegram:-77"},
	} {
		found := false
		for _, r := range refusals {
			found = found || r.Result == rule && r.By == want.By && r.Address == want.Address && r.Session == want.Session && len(r.Messages) == 1 && r.Count == 1
		}
		if !found {
			t.Errorf("no refusal is %q as %+v, but %+v", rule, want, refusals)
		}
	}
	for flags, want := range map[string]int{
		"--person telegram:5000": 1, "--session main:telegram:2": 2, "--since 1h": 4, "--since 2999-01-01": 0, "--limit 3": 3, "--limit 1 --filter turn": 1,
	} {
		if got := readAudit(t, w, strings.Fields(flags)...); len(got) != want {
			t.Errorf("logs %s prints %d records, want %d: %+v", flags, len(got), want, got)
		}
	}
	if out, errs, code := w.Run("logs", "--since", "yesterdayish"); code != parleytest.ExitUsage || out != "" || !strings.Contains(errs, "2h") {
		t.Errorf("a time that is none: %d %q %q", code, out, errs)
	}
	for _, line := range []string{`"turn begins"`, `"turn ended"`, `"message refused"`} {
		if !strings.Contains(server.Stderr.String(), line) {
			t.Errorf("the log has no line %s", line)
		}
	}
	if strings.Contains(server.Stderr.String(), "my-words") {
		t.Error("the log has what was said")
	}
	for flags, want := range map[string]int{"": 1, "--person telegram:2 --since 1h": 1, "--person telegram:5000": 0, "--limit 1": 1, "--since 2999-01-01": 0} {
		out, errs, code := w.Run(append([]string{"sessions"}, strings.Fields(flags)...)...)
		if code != 0 || strings.Count(out, "\n") != 1+want || want > 0 && !strings.Contains(out, "main:telegram:2") || want > 0 && !strings.Contains(out, "my-words") {
			t.Errorf("sessions %s: %d %q %q", flags, code, out, errs)
		}
	}
	followLogs(t, w)
	if _, errs, code := w.Run("forget", "--yes", "--user", "telegram:5000"); code != 0 {
		t.Errorf("forget: %d %s", code, errs)
	}
	if left := readAudit(t, w, "--person", "telegram:5000"); len(left) != 0 {
		t.Errorf("after forgetting there are %+v", left)
	}
}

// followLogs checks that parley logs --follow shows a stranger's message that arrives while it runs.
func followLogs(t *testing.T, w *parleytest.World) {
	t.Helper()
	follow := w.Command("logs", "--follow", "--limit", "1")
	out := &parleytest.SyncBuffer{}
	follow.Stdout = out
	parleytest.Must(t, follow.Start())
	parleytest.WaitFor(t, "the first record", func() bool { return strings.Count(out.String(), "\n") == 2 })
	w.Telegram.Say(6000, 6000, "hello")
	parleytest.WaitFor(t, "the record of the stranger", func() bool { return strings.Contains(out.String(), "telegram:6000") })
	parleytest.Must(t, follow.Process.Signal(syscall.SIGINT))
	ended := make(chan error, 1)
	go func() { ended <- follow.Wait() }()
	select {
	case err := <-ended:
		parleytest.Must(t, err)
	case <-time.After(parleytest.Patience):
		_ = follow.Process.Kill() // the command does not end by itself
		t.Error("Ctrl-C does not end it")
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines are printed:\n%s", n, out.String())
	}
}
