package operation

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/data/home"
	"parley/cmd/parley/parleytest"
)

// atLongHome gives a world a home whose path is too long for a socket.
func atLongHome(t *testing.T, w *parleytest.World) {
	t.Helper()
	w.Home = filepath.Join(w.Home, strings.Repeat("long", 30))
	parleytest.Must(t, os.MkdirAll(w.Home, 0o700))
}

// The socket of a home with a long path is in a folder that only its user can enter, with a random name. The folder is
// removed when its server ends, and after a kill when the next server starts.
func TestSocketOfAHomeWithALongPath(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	atLongHome(t, w)
	temporary, runtimes := t.TempDir(), t.TempDir()
	parleytest.Must(t, os.Chmod(runtimes, 0o700))
	status := func() string {
		t.Helper()
		out, err := w.Command("status").CombinedOutput() // the command does not have the server's environment
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
		parleytest.Must(t, err)
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

// The socket refuses other users because of the user id that the kernel reports, not only because of file modes.
func TestSocketServesItsOwnUserAlone(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	other := asOther(t, w, "status")
	p := w.Serve()
	p.WaitServing()
	parleytest.Must(t, os.Chmod(filepath.Join(w.Home, home.SocketFile), 0o777))
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

// A command sends nothing to a server of another user that has replaced the home's own server.
func TestCommandsTrustNoOtherUsersServer(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	theirs := parleytest.New(t, parleytest.EchoModel, "")
	other := asOther(t, theirs, "serve")
	parleytest.Must(t, os.Chown(theirs.Home, otherUser, otherUser))
	other.Args = append(other.Args, "--listen", parleytest.FreeAddress(t))
	stderr := &parleytest.SyncBuffer{}
	other.Stderr = stderr
	parleytest.Must(t, other.Start())
	t.Cleanup(func() {
		_ = other.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = other.Wait()
	})
	parleytest.WaitFor(t, "the other's server", func() bool { return strings.Contains(stderr.String(), "serving") })
	// Root can talk to the other user's server through that user's own home.
	if out, err := theirs.Command("status").CombinedOutput(); err != nil || !strings.Contains(string(out), ", up ") {
		t.Errorf("status in the other's home says %s, %v", out, err)
	}
	parleytest.Must(t, w.Command("chat", "-m", "hello").Run()) // so that there is something to look at
	parleytest.Must(t, os.Symlink(filepath.Join(theirs.Home, home.SocketFile), filepath.Join(w.Home, home.SocketFile)))
	out, err := w.Command("status").CombinedOutput()
	if err != nil || strings.Contains(string(out), ", up ") || !strings.Contains(string(out), "no server is running") {
		t.Errorf("status took another user's server for its own: %s, %v", out, err)
	}
}

// --listen none and --listen "" switch HTTP off regardless of the configuration, unless a platform needs HTTP to
// deliver its requests.
func TestServeListensNowhereIfToldSo(t *testing.T) {
	t.Parallel()
	for _, none := range []string{"none", ""} {
		w := parleytest.New(t, parleytest.EchoModel, "")
		address := parleytest.ListenHTTP(w).URL
		stderr := &parleytest.SyncBuffer{}
		cmd := w.Command("serve", "--listen", none)
		cmd.Stderr = stderr
		parleytest.Must(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		})
		parleytest.WaitFor(t, "the server", func() bool { return strings.Contains(stderr.String(), "serving") })
		if out, err := w.Command("status").CombinedOutput(); err != nil || !strings.Contains(string(out), ", up ") {
			t.Errorf("status says %s, %v", out, err)
		}
		if got, err := http.Get(address + "/healthz"); err == nil {
			_ = got.Body.Close()
			t.Errorf("with --listen %q it answers %s at %s", none, got.Status, address)
		}
	}
	w := parleytest.New(t, parleytest.EchoModel, "public_url = \"https://bot.example\"\n[channels.slack]\nbot_token = \"xoxb-1\"\nreceive = \"http\"\nsigning_secret = \"0123456789abcdef0123456789abcdef\"\napi_url = \"http://127.0.0.1:1/api\"\n")
	parleytest.ListenHTTP(w)
	if out, errs, code := w.Run("serve", "--listen", "none"); code == parleytest.ExitDone || !strings.Contains(errs, "[channels.slack] receive") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}
