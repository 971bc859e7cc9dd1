package operation

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/data/home"
	"parley/cmd/parley/parleytest"
)

// status --live, which is meant for health checks, fails if no server answers, even if the server's process exists but
// is stopped. It leaves no trace in the home.
func TestStatusLive(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	live := func() (string, error) {
		out, err := w.Command("status", "--live").CombinedOutput()
		return string(out), err
	}
	fails := func(when string) {
		t.Helper()
		out, err := live()
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != parleytest.ExitFailed || !strings.Contains(out, "no server answers in the home "+w.Home) {
			t.Errorf("%s it says %s, %v", when, out, err)
		}
	}
	fails("before")
	if entries, err := os.ReadDir(w.Home); err != nil || len(entries) > 0 {
		t.Errorf("asking has made %v, %v", entries, err)
	}
	p := w.Serve()
	p.WaitServing()
	if out, err := live(); err != nil || out != "the server answers\n" {
		t.Errorf("it says %s, %v", out, err)
	}
	parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGSTOP))
	fails("while it stands still")
	parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	p.Stop()
	fails("afterwards")
	if _, err := os.Lstat(filepath.Join(w.Home, home.SocketFile)); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}
