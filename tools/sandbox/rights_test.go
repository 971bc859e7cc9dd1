//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// containerRights are root's capabilities in a container, with the usual settings.
const containerRights = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap"

// withRights runs an attempt as root with only these capabilities.
func withRights(t *testing.T, rights string, what ...string) string {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root has rights to lose, by the program setpriv")
	}
	cmd := exec.Command(setpriv, append([]string{"--inh-caps=" + rights, "--bounding-set=" + rights, "--", testProgram(t), "attempt"}, what...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v ended with %v: %s", what, err, out)
	}
	return string(out)
}

// Root in a container can't mount, and can't see other users' processes. Commands run in workspaces that their user can
// reach, and are limited and ended; in other workspaces they don't run.
func TestRootInAContainer(t *testing.T) {
	dir, err := os.MkdirTemp("", "parley-sandbox-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, path := range []string{"open/a", "closed/a", "more"} {
		must(t, os.MkdirAll(filepath.Join(dir, path), 0o700))
	}
	for _, path := range []string{".", "open", "more"} {
		must(t, os.Chmod(filepath.Join(dir, path), 0o711))
	}
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock, sandbox.None} {
		t.Run(string(mode), func(t *testing.T) {
			openBox(t, mode, func(*sandbox.Config) {}) // or it is skipped
			withRights(t, containerRights, "in a container", string(mode), dir)
		})
	}
	t.Run("without walls to choose", func(t *testing.T) {
		for right, want := range map[string]string{"-setuid": "CAP_SETUID", "-kill,-chown": "CAP_CHOWN, CAP_KILL"} {
			if out := withRights(t, right, "absent"); !strings.Contains(out, want) || !strings.Contains(out, "ordinary user") {
				t.Errorf("without %s it says %s", right, out)
			}
		}
	})
}

// wantAbsent returns an error unless no mode works here, and prints why.
func wantAbsent() error {
	for _, mode := range []sandbox.Mode{sandbox.Auto, sandbox.Bubblewrap, sandbox.None} {
		_, err := sandbox.Open(context.Background(), testConfig(mode))
		absent, none := errors.AsType[*sandbox.AbsentError](err)
		wrong, refused := errors.AsType[*sandbox.SettingError](err)
		switch {
		case none && mode == sandbox.Auto:
			fmt.Println(absent, absent.Remedy())
		case !refused || mode == sandbox.Auto:
			return fmt.Errorf("%s gave %w", mode, err)
		case !strings.Contains(wrong.Error(), "never runs as root"):
			return wrong
		}
	}
	return nil
}

// inContainer runs commands in the subfolder "open", and checks that none runs in the subfolder "closed".
func inContainer(mode sandbox.Mode, dir string) error {
	cfg := testConfig(mode)
	cfg.Workspaces = []string{filepath.Join(dir, "open")}
	b, err := sandbox.Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	b = b.WithoutGroups()
	run := func(line string, within time.Duration) (sandbox.Result, error) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		return b.Run(ctx, sandbox.Command{
			Args: []string{"sh", "-c", line}, Workspace: filepath.Join(dir, "open", "a"), Network: mode == sandbox.None, Quota: sandbox.Quota{Bytes: 20 << 20, Items: 1000},
		})
	}
	const works = `set -e; id -u; rm -rf *; echo x >f; chmod 700 f; chmod +x ./f; touch -d 2001-01-01 f; mkdir d; cp -p f d; rm -r d; (cd "$PWD" && ls)`
	if r, err := run(works, 20*time.Second); err != nil || r.ExitCode != 0 || r.Stdout != "65527\nf\n" {
		return fmt.Errorf("it gave %+v, %w", r, err)
	}
	if r, err := run(`(setsid sleep 60 &) ; sleep 60`, time.Second); err != nil || r.Killed != sandbox.Timeout {
		return fmt.Errorf("what sleeps gave %+v, %w", r, err)
	}
	if r, err := run(`i=0; while [ $i -lt 100 ]; do sleep 30 & i=$((i+1)); done; wait`, 20*time.Second); err != nil || r.Killed != sandbox.Processes {
		return fmt.Errorf("many processes gave %+v, %w", r, err)
	}
	if r, err := b.Run(context.Background(), sandbox.Command{OwnProgram: true, Args: []string{"attempt", "who"}}); err != nil || r.ExitCode != 0 {
		return fmt.Errorf("this program gave %+v, %w", r, err)
	}
	r, err := b.Run(context.Background(), sandbox.Command{Args: []string{"true"}, Workspace: filepath.Join(dir, "closed", "a"), Network: mode == sandbox.None})
	if !errors.Is(err, sandbox.ErrUnreachable) || strings.Contains(sandbox.ErrorForModel(err).Error(), dir) {
		return fmt.Errorf("where nobody may go it gave %+v, %w", r, err)
	}
	cfg.Workspaces = []string{filepath.Join(dir, "closed", "a")}
	_, err = sandbox.Open(context.Background(), cfg)
	if wrong, ok := errors.AsType[*sandbox.SettingError](err); !ok || !strings.Contains(wrong.Remedy, "chmod o+x") || !strings.Contains(wrong.Error(), "may not go through") {
		return fmt.Errorf("there a sandbox opens with %w", err)
	}
	return nil
}
