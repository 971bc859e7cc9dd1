package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/sessions/workspace"
)

func newWorkspaces(t *testing.T, cfg workspace.Config) *workspace.Workspaces {
	t.Helper()
	if cfg.Root == "" {
		cfg.Root = filepath.Join(t.TempDir(), "workspaces")
	}
	all, err := workspace.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	})
	return all
}

func openSession(t *testing.T, all *workspace.Workspaces, key string) *workspace.Dir {
	t.Helper()
	d, err := all.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newDir returns a session's directory in a new place.
func newDir(t *testing.T) *workspace.Dir {
	t.Helper()
	return openSession(t, newWorkspaces(t, workspace.Config{}), "main:telegram:42")
}

func TestDirectoriesOfSessions(t *testing.T) {
	root := filepath.Join(t.TempDir(), "workspaces")
	all := newWorkspaces(t, workspace.Config{Root: root})
	long := "main:web:" + strings.Repeat("x", 240)
	paths := map[string]string{}
	for _, key := range []string{"main:telegram:42", "main:telegram:42:7", "other:telegram:42", "main:slack:C1", "main:slack:C%2F1", long, long + "y"} {
		d := openSession(t, all, key)
		if err := d.Write("a.txt", []byte(key)); err != nil {
			t.Fatal(err)
		}
		if before, taken := paths[d.Path()]; taken {
			t.Errorf("%s and %s share a directory", key, before)
		}
		paths[d.Path()] = key
		for dir := d.Path(); dir != root; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if perm := info.Mode().Perm(); perm != 0o700 {
				t.Errorf("%s has mode %v", dir, perm)
			}
		}
	}
	for path, key := range paths {
		if got, err := os.ReadFile(filepath.Join(path, "a.txt")); err != nil || string(got) != key {
			t.Errorf("%s holds %q, %v; want %q", path, got, err, key)
		}
	}
	if want := filepath.Join(root, "main", "telegram:42"); paths[want] != "main:telegram:42" {
		t.Errorf("%s is not the directory of main:telegram:42", want)
	}
}

func TestOpenExistingMakesNothing(t *testing.T) {
	const key = "main:telegram:42"
	root := filepath.Join(t.TempDir(), "workspaces")
	all := newWorkspaces(t, workspace.Config{Root: root})
	if _, err := all.OpenExisting(key); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), root) {
		t.Errorf("without a directory: %v", err)
	}
	if made, err := os.ReadDir(root); err != nil || len(made) != 0 {
		t.Errorf("made %v, %v", made, err)
	}
	if _, err := all.OpenExisting("main"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is no key: %v", err)
	}
	if err := openSession(t, all, key).Write("a.txt", []byte("a")); err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]*workspace.Workspaces{"open": all, "not open": newWorkspaces(t, workspace.Config{Root: root})} {
		d, err := again.OpenExisting(key)
		if err != nil {
			t.Fatal(name, err)
		}
		if got, err := fs.ReadFile(d, "a.txt"); err != nil || string(got) != "a" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	removeSession(t, all, key, true)
	if _, err := all.OpenExisting(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after it was removed: %v", err)
	}
	own := t.TempDir()
	fixed, err := workspace.OpenFixed(own)
	if err != nil {
		t.Fatal(err)
	}
	defer fixed.Close()
	if _, err := fixed.OpenExisting(key); err != nil {
		t.Errorf("a person's own directory: %v", err)
	}
}

// A directory is looked up below the root that was opened, wherever that root has been moved.
func TestOpenExistingLooksBelowTheOpenedRoot(t *testing.T) {
	root := filepath.Join(t.TempDir(), "workspaces")
	const key = "main:telegram:42"
	openSession(t, newWorkspaces(t, workspace.Config{Root: root}), key)
	all := newWorkspaces(t, workspace.Config{Root: root}) // this process has not opened the directory yet
	requireNoError(t, os.Rename(root, root+"-moved"))
	if _, err := all.OpenExisting(key); err != nil {
		t.Errorf("after the root was renamed: %v", err)
	}
}

func TestOpenRefusesInvalidKeys(t *testing.T) {
	root := filepath.Join(t.TempDir(), "workspaces")
	all := newWorkspaces(t, workspace.Config{Root: root})
	for _, key := range []string{"", "main", "main:", ":a:b", "..:a:b", "main:..:x", "main:a/b:c", "main:a::b", "main:a:b::", "main::b::d", "main:a:::d", "main:a:\x00", "main:ä:b", "main:a:" + strings.Repeat("x", 300)} {
		if _, err := all.Open(key); err == nil {
			t.Errorf("%q was taken for a key", key)
		}
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 0 {
		t.Errorf("there is %v in the root, %v", entries, err)
	}
}

func TestOpenFixed(t *testing.T) {
	dir := t.TempDir()
	all, err := workspace.OpenFixed(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"main:console:default", "anything"} {
		if err := openSession(t, all, key).Write(fmt.Sprintf("%d.txt", len(key)), nil); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := openSession(t, all, "x").ReadDir(".")
	if err != nil || len(entries) != 2 {
		t.Errorf("both sessions should have written into one directory: %v, %v", entries, err)
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := all.Open("x"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Open after Close = %v", err)
	}
	if _, err := workspace.OpenFixed(filepath.Join(dir, "missing")); err == nil {
		t.Error("a directory that is missing was taken")
	}
}

// TestManySessions opens far more sessions than are kept open, from many goroutines, and counts file
// descriptors if the system shows them.
func TestManySessions(t *testing.T) {
	all := newWorkspaces(t, workspace.Config{MaxOpen: 8})
	before := countDescriptors()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				d, err := all.Open(fmt.Sprintf("main:chat:%d", (g*37+i)%200))
				if err == nil {
					err = d.Write("x", []byte("y"))
				}
				if err == nil {
					_, err = fs.ReadFile(d, "x")
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if now := countDescriptors(); now-before > 10 {
		t.Errorf("%d descriptors stay open, at most 8 should", now-before)
	}
}

// countDescriptors returns the number of this process's open file descriptors; 0 if the system does not show
// them.
func countDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

func TestNames(t *testing.T) {
	d := newDir(t)
	for path, want := range map[string]string{
		"a": "a", "./a": "a", "a/../b": "b", "a//b/": "a/b", ".": ".", d.Path() + "/a/b": "a/b", d.Path(): ".", "..a": "..a",
	} {
		if got, err := d.Name(path); err != nil || got != want {
			t.Errorf("Name(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{
		"", "..", "../x", "a/../../x", "/etc/passwd", "/", d.Path() + "-evil/x", d.Path() + "/../x", "a\x00b", "~", "~/x",
		strings.Repeat("n", 300), strings.Repeat("d/", 5000),
	} {
		_, err := d.Name(path)
		if !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Name(%.40q) = %v, want fs.ErrInvalid", path, err)
		} else if len(err.Error()) > 300 || strings.Contains(strings.ReplaceAll(err.Error(), path, ""), d.Path()) {
			t.Errorf("the error for %.40q says too much: %v", path, err)
		}
	}
}

func TestTheDirectoryIsMeasuredBeforeAWrite(t *testing.T) {
	all := newWorkspaces(t, workspace.Config{MaxBytes: 40960}) // ten blocks
	d := openSession(t, all, "main:a:b")
	if err := os.WriteFile(filepath.Join(d.Path(), "before"), make([]byte, 5*4096), 0o600); err != nil {
		t.Fatal(err)
	}
	// A sparse file counts with its size on disk, and not with its nominal size.
	sparse := filepath.Join(d.Path(), "sparse")
	requireNoError(t, os.WriteFile(sparse, nil, 0o600))
	requireNoError(t, os.Truncate(sparse, 1<<40))
	write := func(name string, blocks int) error { return d.Write(name, []byte(strings.Repeat("x", blocks*4096))) }
	if err := write("a", 3); err != nil {
		t.Fatal(err)
	}
	err := write("b", 2)
	if !errors.Is(err, workspace.ErrQuota) || !strings.Contains(err.Error(), "40960") {
		t.Fatalf("a write over the quota gave %v", err)
	}
	if _, err := d.Stat("b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the refused write left something: %v", err)
	}
	if err := write("a", 4); err != nil {
		t.Errorf("replacing counts the old content twice: %v", err)
	}
	if err := write("a", 5); !errors.Is(err, workspace.ErrQuota) {
		t.Errorf("a growing file passed the quota: %v", err)
	}
	if err := write("before", 1); err != nil {
		t.Errorf("making a file shorter is refused: %v", err)
	}
	if err := write("b", 4); err != nil {
		t.Errorf("room that a shorter file made is not there: %v", err)
	}
	if err := os.Remove(filepath.Join(d.Path(), "b")); err != nil {
		t.Fatal(err)
	}
	if err := write("c", 4); err != nil {
		t.Errorf("what somebody else removed still counts: %v", err)
	}
}
