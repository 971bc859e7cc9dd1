package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// status --live is for health checks: it fails where no server answers, also one
// that stands still, and leaves no trace in the home.
func TestStatusLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, echoModel, "")
	live := func() (string, error) {
		out, err := w.command("status", "--live").CombinedOutput()
		return string(out), err
	}
	fails := func(when string) {
		t.Helper()
		out, err := live()
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != exitFailed || !strings.Contains(out, "no server of the home "+w.home) {
			t.Errorf("%s it says %s, %v", when, out, err)
		}
	}
	fails("before")
	if entries, err := os.ReadDir(w.home); err != nil || len(entries) > 0 {
		t.Errorf("asking has made %v, %v", entries, err)
	}
	p := w.serve()
	p.serving()
	if out, err := live(); err != nil || out != "the server answers\n" {
		t.Errorf("it says %s, %v", out, err)
	}
	must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	fails("while it stands still")
	must(t, p.cmd.Process.Signal(syscall.SIGCONT))
	p.stop()
	fails("afterwards")
	if _, err := os.Lstat(filepath.Join(w.home, socketFile)); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}
