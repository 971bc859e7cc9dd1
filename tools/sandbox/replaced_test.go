//go:build linux

package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox"
)

// rootFolder makes a folder that belongs to root, and checks at the end that all of it still does and that nothing was
// written there.
func rootFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etc")
	must(t, os.MkdirAll(filepath.Join(dir, "below"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	before := describeFolder(t, dir)
	t.Cleanup(func() {
		for _, name := range []string{".", "below", "file"} {
			info, err := os.Lstat(filepath.Join(dir, name))
			must(t, err)
			if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 || st.Gid != 0 {
				t.Errorf("%s was given to %d:%d", name, st.Uid, st.Gid)
			}
		}
		if now := describeFolder(t, dir); now != before {
			t.Errorf("it was\n%s\nand is\n%s", before, now)
		}
	})
	return dir
}

// aliceWorkspace makes a workspace below a folder in which another user may rename it, and returns it with its
// description from when it was opened.
func aliceWorkspace(t *testing.T, owner int) (workspace string, opened os.FileInfo) {
	t.Helper()
	above := filepath.Join(t.TempDir(), "alices")
	workspace = filepath.Join(above, "one")
	must(t, os.MkdirAll(workspace, 0o755))
	must(t, os.Chown(above, 4242, 4242))
	must(t, os.Chown(workspace, owner, owner))
	opened, err := os.Stat(workspace)
	must(t, err)
	return workspace, opened
}

// The owner of a folder above a workspace can replace the workspace. Then root runs nothing there, and gives nothing of
// it away.
func TestAReplacedWorkspaceIsNotTouched(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as another user")
	}
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		for name, replace := range map[string]func(target, workspace string) error{
			"a link": os.Symlink,
			"a link above": func(target, workspace string) error {
				return errors.Join(os.Rename(filepath.Dir(workspace), filepath.Dir(workspace)+".old"),
					os.Symlink(filepath.Dir(target), filepath.Dir(workspace)), os.Symlink(target, filepath.Join(filepath.Dir(target), "one")))
			},
			"a folder": func(target, workspace string) error {
				return errors.Join(os.Mkdir(workspace, 0o755), os.Mkdir(filepath.Join(workspace, "in"), 0o755))
			},
		} {
			for _, c := range []sandbox.Command{{}, {Personal: true}, {ReadOnly: true}, {WritableDir: "below"}, {Quota: sandbox.Quota{Bytes: 1 << 20, Items: 100}}} {
				target := rootFolder(t)
				workspace, opened := aliceWorkspace(t, 4242)
				must(t, os.Rename(workspace, workspace+".old"))
				must(t, replace(target, workspace))
				c.Args, c.Workspace, c.Opened, c.Network = []string{"sh", "-c", "touch made; echo ran"}, workspace, opened, b.Mode() == sandbox.None
				if r, err := b.Run(t.Context(), c); !errors.Is(err, sandbox.ErrReplaced) {
					t.Errorf("%s: with %+v it gave %+v, %v", name, c, r, err)
				}
			}
		}
		target := rootFolder(t)
		workspace, _ := aliceWorkspace(t, 4242)
		must(t, os.Remove(workspace))
		must(t, os.Symlink(target, workspace))
		r, err := b.Run(t.Context(), sandbox.Command{Args: []string{"true"}, Workspace: workspace, Network: b.Mode() == sandbox.None})
		if !errors.Is(err, sandbox.ErrReplaced) {
			t.Errorf("a link that nobody has opened gave %+v, %v", r, err)
		}
	})
}

// The same holds if the workspace is replaced at any moment while commands start, run and end.
func TestAWorkspaceIsReplacedAllTheTime(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as another user")
	}
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		for _, owner := range []int{0, 4242} {
			target := rootFolder(t)
			workspace, opened := aliceWorkspace(t, owner)
			link := workspace + ".link"
			must(t, os.Symlink(target, link))
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
						_ = unix.Renameat2(unix.AT_FDCWD, workspace, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
					}
				}
			}()
			for i := range 40 {
				// How it ends depends on the moment.
				_, _ = b.Run(t.Context(), sandbox.Command{
					Args: []string{"true"}, Workspace: workspace, Opened: opened, Personal: owner == 0 && i%2 == 0,
					Network: b.Mode() == sandbox.None, Quota: sandbox.Quota{Bytes: 1 << 20, Items: 100},
				})
			}
			close(stop)
			<-stopped
		}
	})
}

// A folder that is mounted below a workspace is not part of it, even if it is on the same filesystem: root gives
// nothing of it away, and removes nothing.
func TestMountsInAWorkspaceAreKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as another user")
	}
	everyMode(t, func(t *testing.T, b *sandbox.Box) {
		target := rootFolder(t)
		raised := filepath.Join(target, "below", "raised")
		must(t, os.WriteFile(raised, nil, 0o755))
		must(t, unix.Chmod(raised, 0o4755))
		workspace := t.TempDir()
		at := filepath.Join(workspace, "a", "project")
		must(t, os.MkdirAll(at, 0o755))
		if err := unix.Mount(target, at, "", unix.MS_BIND, ""); err != nil {
			t.Skipf("NOT TESTED: nothing can be mounted here: %v", err)
		}
		t.Cleanup(func() { must(t, unix.Unmount(at, unix.MNT_DETACH)) })
		if r := runShell(t, b, workspace, `id -u; ls a/project`); r.ExitCode != 0 || r.Stdout != "65527\nbelow\nfile\n" {
			t.Errorf("it gave %+v", r)
		}
		if info, err := os.Stat(raised); err != nil || info.Mode()&os.ModeSetuid == 0 {
			t.Errorf("its file has the mode %v, %v", info.Mode(), err)
		}
		remnant := filepath.Join(workspace, ".parley-"+strings.Repeat("a", 26)+".tmp")
		must(t, os.MkdirAll(filepath.Join(remnant, "project"), 0o755))
		must(t, unix.Mount(target, filepath.Join(remnant, "project"), "", unix.MS_BIND, ""))
		r, err := b.Run(t.Context(), sandbox.Command{Args: []string{"true"}, Workspace: workspace, Network: b.Mode() == sandbox.None})
		mounted, globErr := filepath.Glob(filepath.Join(workspace, ".parley-*.tmp", "project")) // the folder was renamed
		must(t, globErr)
		for _, at := range mounted {
			must(t, unix.Unmount(at, unix.MNT_DETACH))
		}
		if err == nil {
			t.Errorf("with something mounted in what is to be removed it gave %+v", r)
		}
		if r := runShell(t, b, workspace, `ls`); r.ExitCode != 0 || r.Stdout != "a\n" {
			t.Errorf("without that it gave %+v", r)
		}
		if info, err := os.Stat(filepath.Join(workspace, "a")); err != nil || info.Sys().(*syscall.Stat_t).Uid != sandbox.CommandUser {
			t.Errorf("the folder around it was not given: %v", err)
		}
	})
}
