package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/data/backup"
	"parley/cmd/parley/hometest"
)

// deepen makes a chain of nested folders, as older releases allowed, with a file in the last one.
func deepen(t *testing.T, dir, name string, n int) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	for range n {
		if err == nil {
			err = at.Mkdir(name, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		var below *os.Root
		below, err = at.OpenRoot(name)
		at.Close()
		at = below
	}
	if err == nil {
		err = at.WriteFile("end", []byte("deep"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	at.Close()
}

// depth returns how many folders of that name are nested, and what the last one contains.
func depth(t *testing.T, dir, name string) (n int, end string) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	for err == nil {
		var below *os.Root
		if below, err = at.OpenRoot(name); err != nil {
			break
		}
		at.Close()
		at, n = below, n+1
	}
	raw, err := at.ReadFile("end")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	at.Close()
	return n, string(raw)
}

func opens(t *testing.T) func(context.Context, string) error {
	return func(_ context.Context, dir string) error {
		hometest.Open(t, dir).Close()
		return nil
	}
}

// A backup leaves out trees that are too deep to restore, and names them. It restores everything else, even with
// paths longer than the system accepts.
func TestDeepTreesDoNotSpoilABackup(t *testing.T) {
	home := t.TempDir()
	homeWithWord(t, home, "first")
	space := filepath.Join(home, "workspaces", "main", "telegram:42")
	for i := range 5 {
		dir := filepath.Join(space, fmt.Sprint("tree", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		deepen(t, dir, "d", 2000)
	}
	long := strings.Repeat("n", 200)
	deepen(t, space, long, 126) // below main and the session: 128 in all
	raw, m := write(t, home)
	if len(m.TooDeep) != 5 || !slices.ContainsFunc(m.TooDeep, func(name string) bool { return strings.HasPrefix(name, "main/telegram:42/tree3/d/d/d/") }) {
		t.Errorf("told as too deep: %.200q", m.TooDeep)
	}
	before := tree(t, filepath.Join(home, "workspaces", "main", "telegram:42", "tree0"))
	if err := backup.Check(t.Context(), bytes.NewReader(raw), home, opens(t)); err != nil {
		t.Fatalf("the backup does not prove itself: %v", err)
	}
	equal(t, "after the check", tree(t, filepath.Join(home, "workspaces", "main", "telegram:42", "tree0")), before)
	if left, err := filepath.Glob(filepath.Join(home, ".backup-*")); err != nil || len(left) > 0 {
		t.Errorf("the check left %q, %v", left, err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if _, err := read(t, raw, restored, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(restored, "workspaces", "main", "telegram:42")
	if n, end := depth(t, there, long); n != 126 || end != "deep" {
		t.Errorf("%d of 126 folders with long names are there, and %q in the last", n, end)
	}
	if n, end := depth(t, filepath.Join(there, "tree1"), "d"); n != 125 || end != "" {
		t.Errorf("%d of 125 folders of a tree that is too deep are there, and %q", n, end)
	}
	checkWord(t, restored, "first")
}

// A backup of an older release may contain trees that are too deep now. It can be restored anyway.
func TestDeepBackupOfAnOlderReleaseIsRestored(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	homeWithWord(t, home, "first")
	raw, _ := write(t, home)
	deep := "workspaces/main/telegram:42" + strings.Repeat("/d", 1500)
	old := repack(t, raw, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
		if h.Name == "manifest.json" {
			put(&tar.Header{Typeflag: tar.TypeDir, Name: deep + "/", Mode: 0o700}, nil)
		}
		put(h, content)
	})
	if err := backup.Check(t.Context(), bytes.NewReader(old), home, nil); err == nil || !strings.Contains(err.Error(), "at most 128") || !strings.Contains(err.Error(), "telegram:42/d/d/") {
		t.Errorf("the check says %v", err)
	}
	restored := filepath.Join(dir, "restored")
	if _, err := read(t, old, restored, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	if n, _ := depth(t, filepath.Join(restored, "workspaces", "main", "telegram:42"), "d"); n != 1500 {
		t.Errorf("%d of 1500 folders are there", n)
	}
}

// The check reports everything that a restore would fail on, by name.
func TestCheckNamesWhatCannotBeRestored(t *testing.T) {
	home := t.TempDir()
	homeWithWord(t, home, "first")
	raw, _ := write(t, home)
	if err := backup.Check(t.Context(), bytes.NewReader(raw), home, opens(t)); err != nil {
		t.Fatal(err)
	}
	adding := func(extra ...tar.Header) []byte {
		return repack(t, raw, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
			if h.Name == "manifest.json" {
				for _, e := range extra {
					put(&e, nil)
				}
			}
			put(h, content)
		})
	}
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600} }
	folder := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o700}
	}
	const space = "workspaces/main/telegram:42/"
	for what, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"cut short":                   {raw[:len(raw)/2], ""},
		"a file in a file":            {adding(file(space + "first.txt/x")), "first.txt"},
		"a file in place of folders":  {adding(folder(space+"a/b/"), file(space+"a")), space + "a"},
		"a folder in place of a file": {adding(folder(space + "first.txt/")), "first.txt"},
		"a file twice":                {adding(file(space + "first.txt")), "twice"},
		"a file that is not listed":   {adding(file(space + "more.txt")), "more.txt"},
	} {
		err := backup.Check(t.Context(), bytes.NewReader(c.raw), home, nil)
		if !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		if _, err := read(t, c.raw, filepath.Join(t.TempDir(), "new"), backup.Options{}); err == nil {
			t.Errorf("%s: it is restored", what)
		}
	}
	refused := errors.New("does not open")
	if err := backup.Check(t.Context(), bytes.NewReader(raw), home, func(context.Context, string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("databases that do not open: %v", err)
	}
}
