package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/home"
	"parley/cmd/parley/parleytest"
)

// atLongHome gives a world a home whose path is too long for a socket.
func atLongHome(t *testing.T, w *parleytest.World) {
	t.Helper()
	w.Home = filepath.Join(w.Home, strings.Repeat("long", 30))
	must(t, os.MkdirAll(w.Home, 0o700))
}

// The socket of such a home lies in a folder of nobody else's, under a name that
// nobody foresees, and goes with its server, also with one that was killed.
func TestSocketOfAHomeWithALongPath(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	atLongHome(t, w)
	temporary, runtimes := t.TempDir(), t.TempDir()
	must(t, os.Chmod(runtimes, 0o700))
	status := func() string {
		t.Helper()
		out, err := w.Command("status").CombinedOutput() // it knows nothing of the server's environment
		if err != nil {
			t.Errorf("status: %v, %s", err, out)
		}
		return string(out)
	}
	var folders []string
	for _, env := range []string{"XDG_RUNTIME_DIR=" + runtimes, "TMPDIR=" + temporary, "TMPDIR=" + temporary} {
		p := w.Serve(env)
		p.WaitServing()
		if said := status(); !strings.Contains(said, ", up ") {
			t.Errorf("with %s status says %s", env, said)
		}
		at, err := os.Readlink(filepath.Join(w.Home, home.SocketFile))
		must(t, err)
		folder := filepath.Dir(at)
		_, want, _ := strings.Cut(env, "=")
		if info, err := os.Lstat(folder); err != nil || info.Mode() != os.ModeDir|0o700 || filepath.Dir(folder) != want {
			t.Errorf("with %s the socket is in %s: %v, %v", env, folder, info, err)
		}
		folders = append(folders, folder)
		if len(folders) == 3 {
			p.Stop()
		} else {
			p.Kill()
		}
	}
	if folders[1] == folders[2] {
		t.Errorf("both times it was %s, which can be foreseen", folders[1])
	}
	for _, folder := range folders {
		if _, err := os.Lstat(folder); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", folder, err)
		}
	}
}

// Whoever gets at the socket of somebody else is refused by the kernel's word on
// who they are, not only by modes.
func TestSocketServesItsOwnUserAlone(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	other := asOther(t, w, "status")
	p := w.Serve()
	p.WaitServing()
	must(t, os.Chmod(filepath.Join(w.Home, home.SocketFile), 0o777))
	if out, err := other.CombinedOutput(); err == nil || strings.Contains(string(out), ", up ") {
		t.Errorf("another user is told %s, %v", out, err)
	}
	if out, err := w.Command("status").CombinedOutput(); err != nil || !strings.Contains(string(out), ", up ") {
		t.Errorf("its own user is told %s, %v", out, err)
	}
	if said := p.Stderr.String(); !strings.Contains(said, "a connection to the home's socket is refused") || !strings.Contains(said, "65533") {
		t.Error("the refusal is not logged")
	}
}

// A command says nothing to a server of another user that has got into the
// place of the home's own.
func TestCommandsTrustNoOtherUsersServer(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	theirs := parleytest.New(t, parleytest.EchoModel, "")
	other := asOther(t, theirs, "serve")
	must(t, os.Chown(theirs.Home, otherUser, otherUser))
	other.Args = append(other.Args, "--listen", freeAddress(t))
	stderr := &parleytest.SyncBuffer{}
	other.Stderr = stderr
	must(t, other.Start())
	t.Cleanup(func() {
		_ = other.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = other.Wait()
	})
	parleytest.WaitFor(t, "the other's server", func() bool { return strings.Contains(stderr.String(), "serving") })
	// Root speaks to it where it serves its own home.
	if out, err := theirs.Command("status").CombinedOutput(); err != nil || !strings.Contains(string(out), ", up ") {
		t.Errorf("status in the other's home says %s, %v", out, err)
	}
	must(t, w.Command("chat", "-m", "hello").Run()) // so that there is something to look at
	must(t, os.Symlink(filepath.Join(theirs.Home, home.SocketFile), filepath.Join(w.Home, home.SocketFile)))
	out, err := w.Command("status").CombinedOutput()
	if err != nil || strings.Contains(string(out), ", up ") || !strings.Contains(string(out), "no server is running") {
		t.Errorf("status took another user's server for its own: %s, %v", out, err)
	}
}
