package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions/workspace"
)

// Only files directly in a folder are discarded, and none that is reached through a link.
func TestOldFilesAreRemoved(t *testing.T) {
	all := newWorkspaces(t, workspace.Config{MaxBytes: 20 * 4096})
	const key = "main:telegram:42"
	d := openSession(t, all, key)
	before := time.Now().Add(-time.Hour)
	age := func(name string) {
		t.Helper()
		requireNoError(t, os.Chtimes(filepath.Join(d.Path(), name), time.Time{}, before.Add(-time.Minute)))
	}
	for _, name := range []string{"in/old", "in/again", "in/linked", "in/new", "in/deep/old", "elsewhere/old", "elsewhere/new"} {
		requireNoError(t, d.Write(name, []byte("x")))
		if !strings.HasSuffix(name, "/new") {
			age(name)
		}
	}
	requireNoError(t, os.Link(filepath.Join(d.Path(), "in/linked"), filepath.Join(d.Path(), "elsewhere/linked")))
	requireNoError(t, os.Symlink("../elsewhere/old", filepath.Join(d.Path(), "in/symbolic")))
	requireNoError(t, os.Symlink("elsewhere", filepath.Join(d.Path(), "link")))
	requireNoError(t, os.WriteFile(filepath.Join(d.Path(), "in/.parley-aaaaaaaaaaaaaaaaaaaaaaaaaa.tmp"), nil, 0o600))
	age("in/.parley-aaaaaaaaaaaaaaaaaaaaaaaaaa.tmp")

	for folder, want := range map[string][]string{"in": {"in/again", "in/linked", "in/old"}, "link": nil, "in/deep": {"in/deep/old"}, "link/x": nil, "none": nil, "in/new": nil} {
		if got, err := all.ListOld(t.Context(), key, folder, before); err != nil || !slices.Equal(got, want) {
			t.Errorf("old in %s are %q, %v", folder, got, err)
		}
	}
	requireNoError(t, d.Write("in/again", []byte("y"))) // the file is used again
	n, err := all.DiscardOld(t.Context(), key, []string{"in/again", "in/old", "in/linked", "in/gone", "in/symbolic", "link/old", "in/new"}, before)
	if err != nil || n != 2 {
		t.Errorf("removed %d, %v", n, err)
	}
	for name, gone := range map[string]bool{"in/old": true, "in/linked": true, "in/again": false, "in/new": false, "elsewhere/old": false, "elsewhere/linked": false, "in/deep/old": false} {
		if _, err := os.Lstat(filepath.Join(d.Path(), name)); errors.Is(err, fs.ErrNotExist) != gone {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Discarded files no longer count against the quota.
	requireNoError(t, d.Write("room", make([]byte, 8*4096)))

	// Listing creates no directory, and a person's own directory is left alone.
	if got, err := all.ListOld(t.Context(), "main:telegram:43", "in", before); err != nil || got != nil {
		t.Errorf("old where nothing is: %q, %v", got, err)
	}
	if _, err := os.Lstat(strings.TrimSuffix(d.Path(), "42") + "43"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
	own, err := workspace.OpenFixed(d.Path())
	requireNoError(t, err)
	defer own.Close()
	if got, err := own.ListOld(t.Context(), key, "in/deep", before); err != nil || got != nil {
		t.Errorf("old in a person's own directory: %q, %v", got, err)
	}
	if n, err := own.DiscardOld(t.Context(), key, []string{"in/deep/old"}, before); err != nil || n != 0 {
		t.Errorf("removed %d from a person's own directory, %v", n, err)
	}
}

// The error for a missing file says why it may be missing.
func TestAMissingFileIsExplained(t *testing.T) {
	d := openSession(t, newWorkspaces(t, workspace.Config{Missing: func(name string) string {
		return map[string]string{"in/a": "it went"}[name]
	}}), "main:a:b")
	requireNoError(t, d.Write("in/there", nil))
	for path, want := range map[string]string{"./in/a": `"in/a" does not exist: it went`, "in/b": `"in/b" does not exist`, "in/there/a": "not a directory"} {
		_, err := d.Open(path)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
		if errors.Is(err, fs.ErrNotExist) != strings.Contains(want, "exist") {
			t.Errorf("%s: %v is of another kind", path, err)
		}
	}
	own := errors.Join(fs.ErrNotExist, errors.New("a caller's"))
	if err := d.Update("in/a", 1, func([]byte) ([]byte, error) { return nil, own }); !errors.Is(err, own) || strings.Contains(err.Error(), "it went") {
		t.Errorf("a caller's own error: %v", err)
	}
}
