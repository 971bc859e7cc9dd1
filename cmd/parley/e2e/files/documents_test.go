package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/tools/documents/documentstest"
)

// The program reads a document itself, in a sandbox if the machine has one.
func TestReadsADocument(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "read_file", Args: `{"path":"report.pdf","pages":"40"}`})
		}
		return agenttest.Reply("It says " + strings.Join(r.Results(), ""))
	}, "")
	texts := make([]string, 40)
	texts[39] = "The answer is forty-two."
	dir := t.TempDir()
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "report.pdf"), documentstest.Pages(texts...).Bytes(), 0o600))
	out, errs, code := w.Run("chat", "--workspace", dir, "-m", "what does the last page of report.pdf say?")
	if strings.Contains(out, "none works on this machine") {
		t.Skip("NOT TESTED: this machine cannot have a sandbox")
	}
	if code != 0 || !strings.Contains(out, "The answer is forty-two.") {
		t.Errorf("it ended with %d and said %s\n%s", code, out, errs)
	}
}
