package subagents_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"parley/agent/subagents"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/guard"
)

// newWorkspaces makes the workspaces of a session and of a sub-agent.
func newWorkspaces(t *testing.T) (from, to *workspace.Dir) {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "workspaces")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	var dirs []*workspace.Dir
	for _, key := range []string{"main:test:1", "main:agent:a:b"} {
		d, err := all.Open(key)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	return dirs[0], dirs[1]
}

func writeFile(t *testing.T, d *workspace.Dir, name string, size int) {
	t.Helper()
	if err := d.Write(name, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
}

// The copy of a file that may contain strangers' words is marked. Links, and the files that Parley keeps for itself,
// are not copied.
func TestCopiesKeepTheirMarks(t *testing.T) {
	from, to := newWorkspaces(t)
	writeFile(t, from, "a/plain.txt", 1)
	writeFile(t, from, "a/foreign.txt", 1)
	if err := guard.ChangeMarks(from, false, []string{"a/foreign.txt"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(from.Path(), "a", "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a call that was cut off copies again
		if err := (&subagents.Copier{From: from, To: to}).Copy(t.Context(), []string{"a", ".agent"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"a/plain.txt": true, "a/foreign.txt": true, "a/link": false} {
		if _, err := to.Stat(name); (err == nil) != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v, want %v", name, err, want)
		}
	}
	if m := guard.ReadMarks(to); m.All || !m.Has("a/foreign.txt") || m.Has("a/plain.txt") {
		t.Errorf("the marks are %+v", m)
	}
}

func TestTooManyFilesAreNotCopied(t *testing.T) {
	from, to := newWorkspaces(t)
	for _, name := range []string{"a/1", "a/2", "a/3"} {
		writeFile(t, from, name, 8<<20)
	}
	err := (&subagents.Copier{From: from, To: to}).Copy(t.Context(), []string{"a"})
	if refused, ok := errors.AsType[*tools.Error](err); !ok || refused.Code != tools.InvalidArgs {
		t.Errorf("24 MB are refused with %v", err)
	}
	if entries, err := to.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
}
