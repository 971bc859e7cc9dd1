package workspace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/workspace"
)

// FuzzPaths writes, reads and removes by arbitrary paths, in a directory with links that lead out of it.
// Nothing outside may be changed, read or created.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{
		"a.txt", "sub/b", "../out/secret", "/etc/passwd", "out/secret", "out/new", "in/x", "loop/loop/x", "sub/../../out/secret", "./sub//b/", "~/x", "a\x00b",
		"/workspace/sub/b", "/workspace/../out/secret", "file/x", "dangling", "out/../a.txt", strings.Repeat("a/", 300), "\xff", ".parley-1.tmp",
	} {
		f.Add(path)
	}
	base := f.TempDir()
	outside := filepath.Join(base, "out")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("outside"), 0o600); err != nil {
		f.Fatal(err)
	}
	all, err := workspace.New(workspace.Config{Root: filepath.Join(base, "all"), MaxBytes: 1 << 20, MaxOpen: 4})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { all.Close() })
	dir, err := all.Open("main:c:1")
	if err != nil {
		f.Fatal(err)
	}
	if err := dir.Write("sub/b", []byte("b")); err != nil {
		f.Fatal(err)
	}
	for link, to := range map[string]string{
		"out": outside, "file": filepath.Join(outside, "secret"), "dangling": filepath.Join(outside, "new"), "in": "sub", "loop": ".", "up": "../../../out",
	} {
		if err := os.Symlink(to, filepath.Join(dir.Path(), link)); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, path string) {
		name, err := dir.Name(path)
		if err == nil && (!filepath.IsLocal(name) || name != filepath.Clean(name)) {
			t.Errorf("%q is %q", path, name)
		}
		if raw, err := fs.ReadFile(dir, path); err == nil && string(raw) == "outside" {
			t.Errorf("%q is read from outside", path)
		}
		_ = dir.Write(path, []byte("written")) // may be refused
		if _, err := dir.Fingerprint(t.Context(), []string{path, "sub", "up"}, []string{path, "sub", "up"}); err != nil {
			t.Errorf("%q: %v", path, err)
		}
		if _, err := dir.Stat(path); err == nil && !isOwnPath(path) {
			_ = dir.Remove(path)
		}
		for _, entry := range listDir(t, base) {
			if n := entry.Name(); n != "out" && n != "all" {
				t.Fatalf("%q made %q outside", path, n)
			}
		}
		entries := listDir(t, outside)
		if raw, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(raw) != "outside" || len(entries) != 1 {
			t.Fatalf("%q changed what is outside: %q, %v, %d files", path, raw, err, len(entries))
		}
	})
}

// isOwnPath reports whether the test itself has created this path.
func isOwnPath(path string) bool {
	switch filepath.Clean(path) {
	case "out", "file", "dangling", "in", "loop", "up", "sub", "sub/b", ".":
		return true
	}
	return strings.Contains(path, "loop") || strings.HasPrefix(path, "/")
}

func listDir(t *testing.T, dir string) []fs.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}
