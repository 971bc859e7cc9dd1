//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/tools/sandbox"
)

// A shown folder can be read and its programs run, but it can't be written to, and the folders beside it are hidden. A
// read-only workspace can't be written to.
func TestAFolderIsShown(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		above, dir := t.TempDir(), t.TempDir()
		shown := filepath.Join(above, "shown")
		must(t, os.Mkdir(shown, 0o755))
		must(t, os.WriteFile(filepath.Join(shown, "run"), []byte("#!/bin/sh\ncat \"$SHOWN\"/note file\n"), 0o755))
		must(t, os.WriteFile(filepath.Join(shown, "note"), []byte("a note\n"), 0o644))
		must(t, os.WriteFile(filepath.Join(above, "file"), []byte("a secret"), 0o644))
		must(t, os.Symlink(filepath.Join(above, "file"), filepath.Join(shown, "link")))
		must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("as it was"), 0o644))
		run := func(readOnly bool, line string) sandbox.Result {
			t.Helper()
			r, err := b.Run(t.Context(), sandbox.Command{
				Args: []string{"sh", "-c", line}, Workspace: dir, ReadOnly: readOnly,
				ShownFolders: []sandbox.Shown{{Path: shown, PathInside: "/skills/one", Env: "SHOWN"}},
			})
			must(t, err)
			return r
		}
		if r := run(true, `exec "$SHOWN/run"`); r.ExitCode != 0 || r.Stdout != "a note\nas it was" {
			t.Errorf("its program gave %+v", r)
		}
		before, shownBefore := describeFolder(t, dir), describeFolder(t, above)
		for _, line := range []string{
			`echo evil >"$SHOWN/note"`, `echo evil >"$SHOWN/new"`, `rm "$SHOWN/note"`, `chmod 777 "$SHOWN/note"`, `mv "$SHOWN/note" "$SHOWN/x"`,
			`echo evil >file`, `echo evil >new`, `rm file`, `touch -d 2001-01-01 file`, `mkdir d`, `ln file hard`,
		} {
			if r := run(true, line); r.ExitCode == 0 {
				t.Errorf("%s ended with 0", line)
			}
		}
		for _, line := range []string{`cat "$SHOWN/link"`, `cat "$SHOWN/../file"`, "cat " + above + "/file", "ls " + above} {
			if r := run(true, line); r.ExitCode == 0 || strings.Contains(r.Stdout, "secret") {
				t.Errorf("%s gave %+v", line, r)
			}
		}
		if now := describeFolder(t, dir); now != before {
			t.Errorf("the workspace was\n%s\nand is\n%s", before, now)
		}
		if now := describeFolder(t, above); now != shownBefore {
			t.Errorf("the folder was\n%s\nand is\n%s", shownBefore, now)
		}
		if r := run(false, `echo more >new`); r.ExitCode != 0 {
			t.Errorf("one that may write gave %+v", r)
		}
	})
}
