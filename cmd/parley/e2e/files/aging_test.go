package files

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// With [retention], a file that somebody sent is deleted with its turn, although the conversation continues. A call
// that asks for the file afterwards fails and says why.
func TestAFileThatSomebodySentIsKeptAsLongAsItsTurn(t *testing.T) {
	t.Parallel()
	var path string // the path of the file, once it is known
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() != "where is it?" {
			return agenttest.Reply("seen")
		}
		if r.Rounds() == 0 {
			at := fmt.Sprintf(`{"path":%q}`, path)
			return agenttest.Calls(agenttest.ToolCall{Name: "read_file", Args: at}, agenttest.ToolCall{Name: "image", Args: at},
				agenttest.ToolCall{Name: "message", Args: fmt.Sprintf(`{"channel":"telegram","chat_id":"2","content":"here it is","files":[%q]}`, path)})
		}
		return agenttest.Reply(strings.Join(r.Results(), "\n"))
	}, "[retention]\ndays = 30\n")
	p := w.Serve()
	w.Telegram.Attach(2, 2, "photo", "", parleytest.Picture(t, 40), map[string]any{"caption": "keep it"})
	w.WaitSaid(2, 1)
	w.Telegram.Attach(2, 2, "photo", "", parleytest.Picture(t, 140), map[string]any{"caption": "and this"})
	w.WaitSaid(2, 2)
	p.Stop()

	workspace := filepath.Join(w.Home, "workspaces", "main", "telegram:2")
	files := func(folder string) []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(workspace, folder, "*"))
		parleytest.Must(t, err)
		return found
	}
	sent, views := files("attachments"), files(".agent/pictures")
	if len(sent) != 2 || len(views) != 2 {
		t.Fatalf("the workspace has %q and %q", sent, views)
	}
	if strings.Contains(sent[0], "/11-") { // the number of the second file
		slices.Reverse(sent)
	}
	path = "attachments/" + filepath.Base(sent[0])
	// The first turn becomes old: its entries and all files.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.Home, "sessions.db"))
	parleytest.Must(t, err)
	_, err = db.Exec("UPDATE entries SET at = '2020' || substr(at, 5) WHERE turn = (SELECT turn FROM entries WHERE n = 1)")
	parleytest.Must(t, err)
	parleytest.Must(t, db.Close())
	for _, file := range append(sent, views...) {
		parleytest.Must(t, os.Chtimes(file, time.Time{}, time.Now().AddDate(0, 0, -40)))
	}

	p = w.Serve()
	parleytest.WaitFor(t, "the file and its picture to go", func() bool { return len(files("attachments")) == 1 && len(files(".agent/pictures")) == 1 })
	if left := files("attachments"); left[0] != sent[1] {
		t.Errorf("%q is left of %q", left, sent)
	}
	w.Telegram.Say(2, 2, "where is it?")
	answer := w.WaitSaid(2, 3)[2]
	p.Stop()
	const why = "Files that people send are kept for only 30 days, so ask for this one again if you need it"
	if n := strings.Count(answer, why); n != 3 || strings.Count(answer, "file_not_found") != 3 {
		t.Errorf("it is said %d times why the file is not there:\n%s", n, answer)
	}
}
