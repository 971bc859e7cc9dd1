package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/sessions/workspace"
)

// If an agent has its own folder, all its sessions, including those as a sub-agent, have their directories
// there, each with its quota. Sessions of other agents do not.
func TestAgentsWithTheirOwnFolders(t *testing.T) {
	root, own := filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "own")
	w, err := workspace.New(workspace.Config{Root: root, MaxBytes: 64 << 10, Folders: map[string]string{"ops": own}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for key, at := range map[string]string{
		"ops:telegram:2": filepath.Join(own, "ops", "telegram:2"), "ops:agent:t1": filepath.Join(own, "ops", "agent:t1"),
		"main:telegram:2": filepath.Join(root, "main", "telegram:2"), "ops2:telegram:2": filepath.Join(root, "ops2", "telegram:2"),
	} {
		dir, err := w.Open(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := dir.Write("a.txt", make([]byte, 60<<10)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(at, "a.txt")); err != nil || dir.Path() != at {
			t.Errorf("%s is in %s: %v, %v", key, dir.Path(), info, err)
		}
		if err := dir.Write("b.txt", make([]byte, 8<<10)); !errors.Is(err, workspace.ErrQuota) {
			t.Errorf("%s takes more than its quota: %v", key, err)
		}
	}
	full := w.ListFull(0.9)
	slices.Sort(full)
	if want := []string{"main/telegram:2", "ops/agent:t1", "ops/telegram:2", "ops2/telegram:2"}; !slices.Equal(full, want) {
		t.Errorf("full are %q, want %q", full, want)
	}
	if part, err := w.UsedPart(t.Context(), "ops/agent:t1"); err != nil || part < 0.9 {
		t.Errorf("used is %v, %v", part, err)
	}
	if gone, err := w.Remove(t.Context(), "ops:agent:t1"); !gone || err != nil {
		t.Errorf("removed: %v, %v", gone, err)
	}
	if left, err := os.ReadDir(filepath.Join(own, "ops")); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}
