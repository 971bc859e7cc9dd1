package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// The demo reads what is sent to it, too, as a newcomer's first file.
func TestTheDemoReadsASentFile(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.Beholder, "")
	parleytest.Must(t, os.WriteFile(w.File, []byte("[http]\nlisten = \"\"\n"), 0o600))
	notes := filepath.Join(t.TempDir(), "notes.txt")
	parleytest.Must(t, os.WriteFile(notes, []byte("what I noted"), 0o600))
	if out, errs, code := w.Run("chat", "-m", "read @"+notes); code != 0 || !strings.Contains(out, "what I noted") {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

// A terminal sends files and pictures that the agent gets as it gets those of a platform, whether
// the terminal's process serves the home or another one does.
func TestATerminalSendsFiles(t *testing.T) {
	t.Parallel()
	for _, serves := range []bool{false, true} {
		w := parleytest.New(t, parleytest.Beholder, "")
		dir := t.TempDir()
		text, picture := filepath.Join(dir, "my notes.txt"), filepath.Join(dir, "red.png")
		parleytest.Must(t, os.WriteFile(text, []byte("what I noted"), 0o600))
		parleytest.Must(t, os.WriteFile(picture, parleytest.Picture(t, 40), 0o600))
		if serves {
			p := w.Serve()
			p.WaitServing()
			defer p.Stop()
		}
		out, errs, code := w.Run("chat", "-m", `which colour? @`+picture+` and @"`+text+`"`)
		for _, want := range []string{"which colour?", "red 40", `kind="picture"`, `type="image/png"`, "-my_notes.txt"} {
			if !strings.Contains(out, want) || code != 0 {
				t.Errorf("served %t: %d %q %q, without %q", serves, code, out, errs, want)
			}
		}
		found, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*", "attachments", "*-my_notes.txt"))
		parleytest.Must(t, err)
		if len(found) != 1 {
			t.Fatalf("the workspace has %q", found)
		}
		if raw, err := os.ReadFile(found[0]); err != nil || string(raw) != "what I noted" {
			t.Errorf("the file holds %q, %v", raw, err)
		}
		// The next message makes room: what was fetched is not kept twice.
		if out, errs, code := w.Run("chat", "-m", "again @"+picture); code != 0 || !strings.Contains(out, "red 40") {
			t.Errorf("again: %d %q %q", code, out, errs)
		}
		if waiting, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "~outgoing", "*", "*")); err != nil || len(waiting) != 1 {
			t.Errorf("%q wait, %v", waiting, err)
		}
		if out, errs, code := w.Run("chat", "-m", "see @"+dir); code != 1 || !strings.Contains(errs, "is a folder") {
			t.Errorf("a folder: %d %q %q", code, out, errs)
		}
	}
}
