package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"parley/sessions/workspace"
)

func TestAFingerprintChangesWithWhatIsNamed(t *testing.T) {
	all, err := workspace.New(workspace.Config{Root: t.TempDir(), MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	dir, err := all.Open("main:c:1")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		if err := dir.Write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	write("run.sh", "echo 1")
	write("sub/other", "x")
	sum := func() string {
		got, err := dir.Fingerprint([]string{"run.sh", "./run.sh", "new.sh", "../out", "/etc/passwd", "sub", "", "no\x00"})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	last := sum()
	same := func(want bool, what string) {
		t.Helper()
		now := sum()
		if (now == last) != want {
			t.Errorf("%s: changed %v", what, now != last)
		}
		last = now
	}
	same(true, "nothing happened")
	write("unnamed", "x")
	same(true, "a file that is not named")
	write("run.sh", "echo 2")
	same(false, "another content")
	write("run.sh", "echo 2")
	same(true, "the same content, written again")
	write("new.sh", "echo")
	same(false, "a named file that was not there")
	old := dir.Path() + ".old"
	if err := os.Rename(dir.Path(), old); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir.Path(), os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	same(false, "another directory in its place, with the same files")
	if err := os.Symlink("run.sh", filepath.Join(dir.Path(), "link")); err != nil {
		t.Fatal(err)
	}
}
