package workspace_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"parley/sessions/workspace"
)

func removeSession(t *testing.T, all *workspace.Workspaces, key string, want bool) {
	t.Helper()
	if got, err := all.Remove(t.Context(), key); got != want || err != nil {
		t.Fatalf("removing %s: %v, %v, want %v", key, got, err, want)
	}
}

// listFiles lists all files below a directory.
func listFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestRemove(t *testing.T) {
	root := filepath.Join(t.TempDir(), "workspaces")
	all := newWorkspaces(t, workspace.Config{Root: root, MaxBytes: 16384})
	d := openSession(t, all, "main:telegram:42")
	neighbour := openSession(t, all, "main:telegram:42:7")
	for _, dir := range []*workspace.Dir{d, neighbour} {
		if err := dir.Write("deep/down/a.txt", make([]byte, 8000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(d.Path(), "link")); err != nil {
		t.Fatal(err)
	}
	reading, err := d.Open("deep/down/a.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	removeSession(t, all, "main:telegram:42", true)
	removeSession(t, all, "main:telegram:42", false)
	removeSession(t, all, "main:telegram:unknown", false)
	if got := listFiles(t, root); len(got) != 1 {
		t.Errorf("what is left: %q", got)
	}
	// A Dir that was opened before continues in a new directory, with the full quota.
	if err := d.Write("b.txt", make([]byte, 8000)); err != nil {
		t.Errorf("writing after the removal: %v", err)
	}
	if _, err := d.Stat("deep"); err == nil {
		t.Error("what was there is there again")
	}
	removeSession(t, all, "main:telegram:42", true)
	if _, err := all.Remove(t.Context(), "../escape"); err == nil {
		t.Error("removed what is no session's")
	}
}

func TestRemoveLeavesAPersonsOwnDirectory(t *testing.T) {
	dir := t.TempDir()
	all, err := workspace.OpenFixed(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if err := openSession(t, all, "main:console:owner").Write("mine.txt", nil); err != nil {
		t.Fatal(err)
	}
	removeSession(t, all, "main:console:owner", false)
	if len(listFiles(t, dir)) != 1 {
		t.Error("it is gone")
	}
}

func TestAnInterruptedRemovalIsFinished(t *testing.T) {
	root := filepath.Join(t.TempDir(), "workspaces")
	all := newWorkspaces(t, workspace.Config{Root: root})
	if err := openSession(t, all, "main:telegram:42").Write("a.txt", nil); err != nil {
		t.Fatal(err)
	}
	// This is the state after a process has died in the middle of a removal.
	if err := os.Rename(filepath.Join(root, "main", "telegram:42"), filepath.Join(root, ".parley-abcdefghijklmnopqrstuvwxyz.tmp")); err != nil {
		t.Fatal(err)
	}
	newWorkspaces(t, workspace.Config{Root: root})
	if got := listFiles(t, root); len(got) != 0 {
		t.Errorf("what is left: %q", got)
	}
}

func TestRemoveDuringOperations(t *testing.T) {
	root := filepath.Join(t.TempDir(), "workspaces")
	all := newWorkspaces(t, workspace.Config{Root: root})
	done := make(chan struct{})
	var working sync.WaitGroup
	for w := range 4 {
		d := openSession(t, all, "main:telegram:42")
		working.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				// A write in progress may fail when the directory is removed; the next one succeeds.
				name := fmt.Sprintf("%d/%d.txt", w, n%10)
				if err := d.Write(name, []byte("x")); err != nil {
					err = d.Write(name, []byte("x"))
					for tries := 0; err != nil && tries < 100; tries++ {
						err = d.Write(name, []byte("x"))
					}
					if err != nil {
						t.Errorf("writing on: %v", err)
						return
					}
				}
			}
		})
	}
	for range 30 {
		if _, err := all.Remove(t.Context(), "main:telegram:42"); err != nil {
			t.Error(err)
		}
	}
	close(done)
	working.Wait()
	if _, err := all.Remove(t.Context(), "main:telegram:42"); err != nil {
		t.Error(err)
	}
	if got := listFiles(t, root); len(got) != 0 {
		t.Errorf("what is left: %q", got)
	}
}
