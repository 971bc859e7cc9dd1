//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox"
)

// runInFolder runs a line of shell that may write to one folder of a workspace.
func runInFolder(t *testing.T, b *sandbox.Box, workspace, folder string, all bool, line string) (sandbox.Result, error) {
	t.Helper()
	return b.Run(t.Context(), sandbox.Command{Args: []string{"sh", "-c", line}, Workspace: workspace, WritableDir: folder, WritesAll: all})
}

func TestWritesToOneFolder(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, "jobs", "one"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("as it was"), 0o644))
		before := describeFolder(t, dir)
		for _, line := range []string{
			`echo evil >file`, `echo evil >new`, `rm file`, `mv file other`, `mkdir d`, `chmod 777 file`, `touch -d 2001-01-01 file`, `ln -s /etc link`,
			`echo evil >jobs/new`, `rmdir jobs/one`, `mv jobs other`, `ln file "$JOB_DIR/hard" && echo evil >"$JOB_DIR/hard"`,
		} {
			r, err := runInFolder(t, b, dir, "jobs/one", false, line)
			must(t, err)
			if now := describeFolder(t, dir); r.ExitCode == 0 || now != before {
				t.Errorf("%s ended with %d and changed the workspace:\n%s\n%s", line, r.ExitCode, before, now)
			}
		}
		r, err := runInFolder(t, b, dir, "jobs/one", false, `cat file && cp file "$JOB_DIR/copy" && cd "$JOB_DIR" && mkdir d && echo ok >d/made && chmod 700 d/made && pwd`)
		must(t, err)
		made, readErr := os.ReadFile(filepath.Join(dir, "jobs", "one", "d", "made"))
		if r.ExitCode != 0 || !strings.HasPrefix(r.Stdout, "as it was") || string(made) != "ok\n" {
			t.Errorf("it ended with %d: %s%s; the folder has %q, %v", r.ExitCode, r.Stdout, r.Stderr, made, readErr)
		}
		r, err = runInFolder(t, b, dir, "jobs/one", true, `echo more >>file && echo more >>"$JOB_DIR/copy"`)
		must(t, err)
		whole, _ := os.ReadFile(filepath.Join(dir, "file"))
		part, _ := os.ReadFile(filepath.Join(dir, "jobs", "one", "copy"))
		if r.ExitCode != 0 || string(whole) != "as it wasmore\n" || string(part) != "as it wasmore\n" {
			t.Errorf("one that may write to all ended with %d: %s; there is %q and %q", r.ExitCode, r.Stderr, whole, part)
		}
	})
}

func TestTheFolderIsNoLink(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		dir, outside := t.TempDir(), t.TempDir()
		must(t, os.Mkdir(filepath.Join(outside, "one"), 0o755))
		must(t, os.Symlink(outside, filepath.Join(dir, "jobs")))
		must(t, os.Symlink(filepath.Join(outside, "one"), filepath.Join(dir, "link")))
		for _, folder := range []string{"jobs/one", "link", "missing", "../" + filepath.Base(outside)} {
			if r, err := runInFolder(t, b, dir, folder, false, `echo evil >"$JOB_DIR/evil"`); err == nil {
				t.Errorf("with the folder %s it ran: %+v", folder, r)
			}
		}
		if names, err := filepath.Glob(filepath.Join(outside, "*", "*")); err != nil || len(names) > 0 {
			t.Errorf("outside there is %v, %v", names, err)
		}
	})
}

// While commands start, another process keeps replacing the folder by a link that leads out of the workspace: no
// command writes outside.
func TestTheFolderIsSwapped(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		dir, outside := t.TempDir(), t.TempDir()
		jobs, link := filepath.Join(dir, "jobs"), filepath.Join(dir, "link")
		must(t, os.MkdirAll(filepath.Join(jobs, "one"), 0o755))
		must(t, os.Mkdir(filepath.Join(outside, "one"), 0o755))
		must(t, os.Symlink(outside, link))
		stop := make(chan struct{})
		var swapping sync.WaitGroup
		swapping.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, jobs, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
				}
			}
		})
		ran := 0
		for range 40 {
			if r, err := runInFolder(t, b, dir, "jobs/one", false, `echo evil >"$JOB_DIR/evil"`); err == nil && r.ExitCode == 0 {
				ran++
			}
		}
		close(stop)
		swapping.Wait()
		t.Logf("%d of 40 ran", ran)
		if names, err := filepath.Glob(filepath.Join(outside, "*", "*")); err != nil || len(names) > 0 {
			t.Errorf("outside there is %v, %v", names, err)
		}
	})
}
