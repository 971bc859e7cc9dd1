package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
)

// The audit can be read in the store and in a file. After a person is forgotten, it still says what was done, but no
// longer who did it.
func TestAudit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"a.txt","content":"xyzzy"}`}, agenttest.ToolCall{Name: "read_file", Args: `{"path":"gone.txt"}`})
		}
		return agenttest.Reply("written")
	}, fmt.Sprintf("[audit]\nfile = %q\n", file))
	w.Serve()
	w.Telegram.Say(2, 2, "write it down")
	w.WaitSaid(2, 1)

	read := func(filter string) (records []sessions.AuditRecord) {
		t.Helper()
		out, errs, code := w.Run("--json", "logs", "--filter", filter)
		if code != 0 {
			t.Fatalf("logs: %d %s", code, errs)
		}
		for line := range strings.Lines(out) {
			var r sessions.AuditRecord
			parleytest.Must(t, json.Unmarshal([]byte(line), &r))
			records = append(records, r)
		}
		return records
	}
	calls := read("tool")
	if len(calls) != 2 || calls[0].Tool != "write_file" || calls[0].By != "telegram:2" || calls[0].Session != "main:telegram:2" || calls[0].Result != "ok" ||
		!strings.Contains(string(calls[0].Arguments), "xyzzy") || calls[1].Result != "file_not_found" || calls[1].Verdict != "allow" {
		t.Errorf("the calls are %+v", calls)
	}
	for _, c := range []struct{ args, want string }{
		{"logs", "write_file"}, {"status --tools", "file_not_found"}, {"metrics", "parley_turns_total"}, {"metrics --tools", `parley_tool_calls_total{result="ok",tool="write_file"} 1`},
	} {
		if out, errs, code := w.Run(strings.Fields(c.args)...); code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d %q %q", c.args, code, out, errs)
		}
	}
	if out, _, _ := w.Run("metrics", "--tools"); strings.Contains(out, "parley_turns_total") {
		t.Errorf("metrics of tools have others: %s", out)
	}

	if out, errs, code := w.Run("--json", "sessions", "main:telegram:2"); code != 0 || !strings.Contains(out, "xyzzy") {
		t.Errorf("export: %d %q %q", code, out, errs)
	}
	if exports := read("export"); len(exports) != 1 || exports[0].By != "token:owner" || exports[0].Session != "main:telegram:2" {
		t.Errorf("the exports are %+v", exports)
	}
	parleytest.WaitFor(t, "the turn to be in the file", func() bool {
		raw, err := os.ReadFile(file)
		return err != nil || strings.Contains(string(raw), `"kind":"turn"`)
	})
	if raw, err := os.ReadFile(file); err != nil || strings.Count(string(raw), "\n") != 4 || !strings.Contains(string(raw), "xyzzy") {
		t.Errorf("the file has %s, %v", raw, err)
	}
	if _, errs, code := w.Run("forget", "--yes", "--user", "telegram:2"); code != 0 {
		t.Errorf("forget: %d %s", code, errs)
	}
	calls = read("tool")
	if len(calls) != 2 || calls[0].Tool != "write_file" || calls[0].By != "" || calls[0].Arguments != nil {
		t.Errorf("after forgetting the calls are %+v", calls)
	}
	if forgets := read("forget"); len(forgets) != 1 || forgets[0].Detail != "a person" {
		t.Errorf("the erasures are %+v", forgets)
	}
	if raw, err := os.ReadFile(file); err != nil || strings.Contains(string(raw), "xyzzy") || strings.Contains(string(raw), "telegram:2\",\"agent") || !strings.Contains(string(raw), "write_file") {
		t.Errorf("after forgetting the file has %s, %v", raw, err)
	}
}

func TestAuditFileThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "[audit]\nfile = \"/proc/none/audit.jsonl\"\n")
	if _, errs, code := w.Run("serve"); code != parleytest.ExitConfig || !strings.Contains(errs, "audit.file") {
		t.Errorf("serve: %d %q", code, errs)
	}
}
