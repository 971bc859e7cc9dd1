package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// parley backup says that it is done when what it has written can be restored,
// and names what it had to leave out.
func TestBackupIsReadBack(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	deep := filepath.Join(w.Home, "workspaces", "main", "telegram:2", strings.Repeat("d/", 150))
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.WriteFile(filepath.Join(w.Home, "workspaces", "main", "telegram:2", "kept"), []byte("kept"), 0o600))
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
	must(t, os.WriteFile(other, []byte(piped), 0o600))
	for _, from := range []string{file, other} {
		w.Home = filepath.Join(t.TempDir(), "restored")
		run("restore", from)
		if raw, err := os.ReadFile(filepath.Join(w.Home, "workspaces", "main", "telegram:2", "kept")); err != nil || string(raw) != "kept" {
			t.Errorf("from %s comes %q, %v", from, raw, err)
		}
	}
}
