package files

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/sessions/workspace"
)

// An album starts one turn, whose one answer tells what is in the pictures, even if the process is killed while it
// fetches them. Each picture becomes one file.
func TestAnAlbumIsSeenOnce(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"unharmed", "c1", "fetch:before/2", "fetch", "fetch/2", "fetched/2", "c3:before"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, parleytest.Beholder, "")
			for i, red := range []uint8{40, 140} {
				fields := map[string]any{"media_group_id": "g"}
				if i == 0 {
					fields["caption"] = "which colours?"
				}
				w.Telegram.Attach(2, 2, "photo", "", parleytest.Picture(t, red), fields)
			}
			if at != "unharmed" {
				w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			}
			p := w.Serve()
			answer := w.WaitSaid(2, 1)[0]
			p.Stop()
			if answers := parleytest.Texts(w.Telegram.Sent(2)); len(answers) > 1+w.InterruptedSends() {
				t.Errorf("answered %q", answers)
			}
			for _, want := range []string{"which colours?", "red 40", "red 140", `kind="picture"`, `type="image/png"`} {
				if !strings.Contains(answer, want) {
					t.Errorf("answered %q, without %q", answer, want)
				}
			}
			files, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*", "attachments", "*"))
			parleytest.Must(t, err)
			// A process that is killed while it writes a file leaves a second, partial file for a while.
			files = slices.DeleteFunc(files, func(name string) bool { return workspace.IsTemporary(filepath.Base(name)) })
			if len(files) != 2 {
				t.Errorf("the workspace has %q", files)
			}
		})
	}
}

// A file that is too large is not fetched, and the bot tells the person so. The other files arrive as they were sent.
func TestAFileThatIsTooLarge(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.Beholder, "")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, bytes.Replace(text, []byte("introduce ="), []byte("files_mb = 1\nintroduce ="), 1), 0o600))
	p := w.Serve()
	w.Telegram.Attach(2, 2, "document", "large.bin", make([]byte, 1<<20+1), map[string]any{"caption": "read it"})
	if answer := w.WaitSaid(2, 1)[0]; !strings.Contains(answer, "I didn't get large.bin: it's larger than the 1 MB") || !strings.Contains(answer, "problem=") {
		t.Errorf("answered %q", answer)
	}
	w.Telegram.Attach(2, 2, "document", "../a b.txt", []byte("small"), nil)
	if answer := w.WaitSaid(2, 2)[1]; !strings.Contains(answer, `-a_b.txt"`) {
		t.Errorf("answered %q", answer)
	}
	p.Stop()
	files, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*", "attachments", "*"))
	parleytest.Must(t, err)
	if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "-a_b.txt") }) || len(files) != 1 {
		t.Fatalf("the workspace has %q", files)
	}
	if raw, err := os.ReadFile(files[0]); err != nil || string(raw) != "small" {
		t.Errorf("the file holds %q, %v", raw, err)
	}
	if w.Telegram.Calls("download") != 1 {
		t.Errorf("%d files were downloaded", w.Telegram.Calls("download"))
	}
}
