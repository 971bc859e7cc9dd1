package operation

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// parley backup reports success only if its result can be restored, and names what it had to leave out.
func TestBackupIsReadBack(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	deep := filepath.Join(w.Home, "workspaces", "main", "telegram:2", strings.Repeat("d/", 150))
	parleytest.Must(t, os.MkdirAll(deep, 0o700))
	parleytest.Must(t, os.WriteFile(filepath.Join(w.Home, "workspaces", "main", "telegram:2", "kept"), []byte("kept"), 0o600))
	run := func(args ...string) (stdout, stderr string) {
		t.Helper()
		cmd := w.Command(args...)
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, &said)
		}
		return out.String(), said.String()
	}
	file := filepath.Join(t.TempDir(), "backup")
	said, warned := run("backup", file)
	if !strings.Contains(said, "can be restored") || !strings.Contains(warned, "NOT IN THIS BACKUP") || !strings.Contains(warned, "main/telegram:2/d/d/") {
		t.Errorf("it said %s and warned %s", said, warned)
	}
	piped, warned := run("backup", "-")
	if !strings.Contains(warned, "NOT IN THIS BACKUP") {
		t.Errorf("to a pipe it warned %s", warned)
	}
	other := filepath.Join(t.TempDir(), "piped")
	parleytest.Must(t, os.WriteFile(other, []byte(piped), 0o600))
	for _, from := range []string{file, other} {
		w.Home = filepath.Join(t.TempDir(), "restored")
		run("restore", from)
		if raw, err := os.ReadFile(filepath.Join(w.Home, "workspaces", "main", "telegram:2", "kept")); err != nil || string(raw) != "kept" {
			t.Errorf("from %s comes %q, %v", from, raw, err)
		}
	}
}

// A backup replaces an earlier backup and no other file, so that a mistyped name destroys nothing.
func TestABackupReplacesOnlyABackup(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if _, errs, code := n.run("chat", "-m", "hello"); code != parleytest.ExitDone {
		t.Fatalf("chat: exit code %d, %s", code, errs)
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	parleytest.Must(t, os.Mkdir(path("folder"), 0o700))
	parleytest.Must(t, os.WriteFile(path("empty"), nil, 0o600))
	parleytest.Must(t, os.WriteFile(path("config"), []byte("[model]"), 0o600))
	parleytest.Must(t, os.Symlink(os.DevNull, path("device")))
	archive, err := exec.Command("tar", "-C", dir, "-cz", "config").Output()
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(path("archive"), archive, 0o600))
	for name, want := range map[string]string{
		"new": "", "empty": "", "config": "isn't a backup", "archive": "isn't a backup", "folder": "is a folder", "device": "isn't a regular file",
	} {
		before, _ := os.ReadFile(path(name))
		_, errs, code := n.run("backup", path(name))
		after, _ := os.ReadFile(path(name))
		if want == "" {
			if code == parleytest.ExitDone {
				_, errs, code = n.run("backup", path(name)) // replaces the first backup
			}
			if code != parleytest.ExitDone {
				t.Errorf("%s: exit code %d, %s", name, code, errs)
			}
			continue
		}
		if code != parleytest.ExitFailed || !strings.Contains(errs, want) || !bytes.Equal(before, after) {
			t.Errorf("%s, unchanged %t: exit code %d, %s; want %q", name, bytes.Equal(before, after), code, errs, want)
		}
	}
}
