//go:build unix

package workspace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"parley/sessions/workspace"
)

// What root creates in a session's directory belongs to the user as whom commands run there: the configured
// user, or the owner of the folder that contains all directories. A person's own directory keeps its owner.
func TestRootGivesNewFilesToTheirOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	const user, other = 65527, 4242
	uids := func(dir string) map[string]uint32 {
		all := map[string]uint32{}
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil {
				name, _ := filepath.Rel(dir, path)
				all[name] = info.Sys().(*syscall.Stat_t).Uid
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	work := func(all *workspace.Workspaces) {
		t.Helper()
		d := openSession(t, all, "main:test:1")
		for path, text := range map[string]string{"a/b/file": "x", "file": "x"} {
			if err := d.Write(path, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		f, err := d.Create("jobs/1/out")
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]int{"root's": 0, "another's": other} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "workspaces")
			if err := os.MkdirAll(filepath.Join(root, "main"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(root, of, of); err != nil {
				t.Fatal(err)
			}
			work(newWorkspaces(t, workspace.Config{Root: root, User: user}))
			want := uint32(user)
			if of != 0 {
				want = other
			}
			for path, uid := range uids(root) {
				if inSession := path != "." && path != "main"; inSession && uid != want || !inSession && uid != uint32(of) {
					t.Errorf("%s belongs to %d", path, uid)
				}
			}
			for _, path := range []string{root, filepath.Join(root, "main")} {
				if info, err := os.Stat(path); err != nil || of == 0 && info.Mode().Perm() != 0o701 || of != 0 && info.Mode().Perm() != 0o700 {
					t.Errorf("%s has the mode %v, %v", path, info.Mode(), err)
				}
			}
		})
	}
	t.Run("a person's own", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, of := range []int{0, other} {
			if err := os.Chown(dir, of, of); err != nil {
				t.Fatal(err)
			}
			all, err := workspace.OpenFixed(dir)
			if err != nil {
				t.Fatal(err)
			}
			work(all)
			got := uids(dir)
			if got["file"] != 0 || got["a/b/file"] != uint32(of) || got["jobs"] != uint32(of) || got["."] != uint32(of) {
				t.Errorf("of %d: they belong to %v", of, got)
			}
			for _, path := range []string{"a", "jobs"} {
				if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
					t.Fatal(err)
				}
			}
			if err := all.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
