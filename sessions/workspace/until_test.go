package workspace_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions/workspace"
)

func TestLateWritesChangeNothing(t *testing.T) {
	root := t.TempDir()
	mine, others := openDirIn(t, root), openDirIn(t, root) // opened by two processes
	synctest.Test(t, func(t *testing.T) {
		mine := mine.WritableUntil(time.Now().Add(3 * time.Second))
		if err := mine.Write("a.txt", []byte("mine")); err != nil {
			t.Fatalf("in time: %v", err)
		}
		err := mine.Update("a.txt", 100, func(old []byte) ([]byte, error) {
			time.Sleep(4 * time.Second) // in the bubble's fake time: the process is paused
			return append(old, " too"...), others.Write("a.txt", []byte("another's"))
		})
		if !errors.Is(err, workspace.ErrLate) {
			t.Errorf("an update that comes too late gives %v", err)
		}
		if err := mine.Write("b.txt", []byte("mine")); !errors.Is(err, workspace.ErrLate) {
			t.Errorf("a write that comes too late gives %v", err)
		}
		if err := mine.Remove("a.txt"); !errors.Is(err, workspace.ErrLate) {
			t.Errorf("a removal that comes too late gives %v", err)
		}
	})
	if got, err := fs.ReadFile(others, "a.txt"); err != nil || string(got) != "another's" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if names, err := others.ReadDir("."); err != nil || len(names) != 1 {
		t.Errorf("the directory has %v, %v", names, err)
	}
}

func openDirIn(t *testing.T, root string) *workspace.Dir {
	t.Helper()
	w, err := workspace.New(workspace.Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() }) // the test has ended
	d, err := w.Open("main:c:1")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
