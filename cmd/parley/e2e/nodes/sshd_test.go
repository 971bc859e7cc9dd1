//go:build linux

package nodes

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"parley/cmd/parley/parleytest"
)

// An sshd is a real OpenSSH server with keys of its own, at a free port of the loopback interface.
type sshd struct {
	t    *testing.T
	dir  string
	port int
}

// run runs a program of OpenSSH until it exits.
func (s *sshd) run(name string, args ...string) {
	s.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// set writes a file in the server's folder.
func (s *sshd) set(name, text string) {
	s.t.Helper()
	parleytest.Must(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// settings writes the server's settings, and appends more lines.
func (s *sshd) settings(more string) {
	s.t.Helper()
	s.set("sshd_config", fmt.Sprintf("HostKey %[1]s/host\nAuthorizedKeysFile %[1]s/user.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\n%[2]s", s.dir, more))
}

// newSSHD starts a server. The client in the box's folder knows the server and has a key that the server accepts.
func newSSHD(b *box) *sshd {
	t := b.t
	t.Helper()
	program, err := exec.LookPath("/usr/sbin/sshd")
	client, clientErr := exec.LookPath("ssh")
	if err != nil || clientErr != nil {
		t.Skip("there is no sshd: install openssh-server, or run it as `.ci/servers go test …`, or with make test")
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Skipf("sshd can't run here: %v", err)
		}
	}
	s := &sshd{t: t, dir: t.TempDir()}
	for _, name := range []string{"host", "user"} {
		s.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(s.dir, name))
	}
	s.settings("")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	parleytest.Must(t, err)
	s.port = listener.Addr().(*net.TCPAddr).Port
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(program, conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
		if t.Failed() {
			raw, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			t.Logf("sshd said:\n%s", raw)
		}
	})
	host, err := os.ReadFile(filepath.Join(s.dir, "host.pub"))
	parleytest.Must(t, err)
	s.set("known", fmt.Sprintf("[127.0.0.1]:%d %s", s.port, host))
	s.set("config", fmt.Sprintf("IdentityFile %[1]s/user\nIdentitiesOnly yes\nUserKnownHostsFile %[1]s/known\nGlobalKnownHostsFile none\n", s.dir))
	parleytest.Must(t, os.WriteFile(filepath.Join(b.bin, "ssh"), fmt.Appendf(nil, "#!/bin/sh\necho $$ > %[1]s/new && mv %[1]s/new %[1]s/pid\nexec %[2]s -F %[3]s/config \"$@\"\n", b.bin, client, s.dir), 0o755))
	return s
}

// serve serves one connection.
func (s *sshd) serve(program string, conn *net.TCPConn) {
	defer conn.Close()
	socket, err := conn.File()
	if err != nil {
		s.t.Error(err)
		return
	}
	defer socket.Close()
	cmd := exec.Command(program, "-i", "-f", filepath.Join(s.dir, "sshd_config"), "-E", filepath.Join(s.dir, "log"))
	cmd.Stdin, cmd.Stdout = socket, socket
	_ = cmd.Run() // the exit code may be that of a killed client
}

// An agent works over the real ssh and sshd, even if the connection is killed in the middle of a call.
func TestAnAgentWorksOverTheRealSSH(t *testing.T) {
	t.Parallel()
	w := parleytest.ListenHTTP(parleytest.New(t, callModel, parleytest.WithShell))
	w.NeedsSandbox()
	b := newBox(w.World, "")
	s := newSSHD(b)
	me, err := user.Current()
	parleytest.Must(t, err)
	target := fmt.Sprintf("ssh://%s@127.0.0.1:%d%s/parley", me.Username, s.port, b.bin)
	file, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	runsOn := func(target string) {
		t.Helper()
		parleytest.Must(t, os.WriteFile(w.File, fmt.Appendf(slices.Clip(file), "[agents.main]\nruns_on = %q\n", target), 0o600))
	}
	runsOn(target)
	p := w.Up()
	here(w)
	w.Telegram.Say(1, 1, waitCall)
	dir, first := b.begun(), b.pid()
	b.kill()
	parleytest.WaitFor(t, "another ssh", func() bool { return b.pid() != first })
	here(w)
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	parleytest.Wants(t, w.WaitSaid(1, 1)[0], `"stdout":"begun\n"`)
	b.ranOnce(dir)

	out, _, _ := w.Run("doctor")
	parleytest.Wants(t, out, target, "ssh connects, and parley")
	runsOn(fmt.Sprintf("ssh://%s@127.0.0.1:%d/nowhere/parley", me.Username, s.port))
	out, _, _ = w.Run("doctor")
	parleytest.Wants(t, out, "there is no parley")
	runsOn(target)
	s.settings("ForceCommand echo Welcome; eval \"$SSH_ORIGINAL_COMMAND\"\n")
	out, _, _ = w.Run("doctor")
	parleytest.Wants(t, out, `writes first there: "Welcome"`, ".bashrc")
	s.settings("DenyUsers *\n")
	out, _, _ = w.Run("doctor")
	parleytest.Wants(t, out, "ssh can't connect: ", "Permission denied", "has to work without asking anything")
	s.set("known", "")
	out, _, _ = w.Run("doctor")
	parleytest.Wants(t, out, "ssh can't connect: Host key verification failed.")
	p.Stop()
}
