package sqldbtest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Server is a PostgreSQL that a test may kill.
type Server struct {
	t          testing.TB
	bin        string
	dir        string
	port       string
	credential *syscall.Credential // the user to run the server as, because PostgreSQL refuses to run as root; nil if we are not root
	killSwitch io.Closer           // closing it kills the server
	ended      chan struct{}       // closed when the server has ended; nil while none runs
}

// Start starts a server, which ends with the test. It needs PostgreSQL's
// programs in the folder PARLEY_TEST_POSTGRES_BIN; without it the test is skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, bin: os.Getenv("PARLEY_TEST_POSTGRES_BIN")}
	if s.bin == "" {
		t.Skip("there is no PARLEY_TEST_POSTGRES_BIN: " + howToRun)
	}
	s.makePlace()
	init := s.command(filepath.Join(s.bin, "initdb"), "-D", s.data(), "--no-sync", "-A", "trust", "-U", "parley", "--no-locale", "-E", "UTF8")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// makePlace makes the server's folder, and finds a free port.
func (s *Server) makePlace() {
	s.t.Helper()
	s.dir, s.credential = placeFor(s.t, "parley-postgres")
	_, s.port, _ = net.SplitHostPort(freeAddress(s.t))
}

// freeAddress returns an address of the loopback interface at which nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return free.Addr().String()
}

// placeFor makes a folder for a server, which is deleted after the test, and returns the user to run the server
// as: nil unless we are root, otherwise an unprivileged user, who gets the folder.
func placeFor(t testing.TB, name string) (dir string, as *syscall.Credential) {
	t.Helper()
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		as = unprivilegedUser(t)
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, as
}

// Standby starts a standby for this server, whose commits from then on wait for the standby.
func (s *Server) Standby() *Server {
	s.t.Helper()
	other := &Server{t: s.t, bin: s.bin}
	other.makePlace()
	from := s.command(filepath.Join(s.bin, "pg_basebackup"), "-D", other.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-h", "127.0.0.1", "-p", s.port, "-U", "parley")
	if out, err := from.CombinedOutput(); err != nil {
		s.t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	other.Restart()
	s.t.Cleanup(other.Kill)
	execute(s.t.Context(), s.t, s.URL(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
	execute(s.t.Context(), s.t, s.URL(), "SELECT pg_reload_conf()")
	return other
}

// Promote makes a standby the primary.
func (s *Server) Promote() {
	s.t.Helper()
	execute(s.t.Context(), s.t, s.URL(), "SELECT pg_promote()")
}

// Address returns the server's host and port.
func (s *Server) Address() string { return "127.0.0.1:" + s.port }

// URL returns the URL of the server's database, which is empty at first.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://parley@127.0.0.1:%s/postgres?sslmode=disable", s.port)
}

// Kill kills the server as kill -9 does.
func (s *Server) Kill() {
	if s.ended == nil {
		return
	}
	s.killSwitch.Close()
	<-s.ended
	s.ended = nil
}

// Stop suspends the server's processes, including those that answer queries, until the returned
// function is called.
func (s *Server) Stop() (resume func()) {
	s.t.Helper()
	var pids []int
	for _, row := range Query(s.t, "pgx", s.URL(), "SELECT pid FROM pg_stat_activity") {
		pid, err := strconv.Atoi(row)
		if err != nil {
			s.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	pids = append(pids, s.postmaster())
	tell := func(signal syscall.Signal) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, signal) // it may have ended
		}
	}
	tell(syscall.SIGSTOP)
	return func() { tell(syscall.SIGCONT) }
}

// Restart starts a server that was killed, on its data, and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.Tick(10 * time.Millisecond); ; {
		if s.ended == nil {
			s.launch()
		}
		select {
		case <-s.ended: // processes of the killed server may not have noticed yet
			s.Kill()
		case <-deadline:
			s.t.Fatal("the server does not start")
		case <-tick:
			if s.ready() {
				return
			}
		}
	}
}

// launch starts the server under a shell that kills it when the shell's standard input ends, which happens at
// the latest when this process ends.
func (s *Server) launch() {
	s.t.Helper()
	_ = os.Remove(s.pidFile()) // left by a killed server
	const script = `exec 3<&0; "$@" </dev/null & pid=$!; { cat <&3; kill -9 $pid; } & wait $pid`
	cmd := s.command("sh", "-c", script, "sh", filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", s.port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "max_connections=200") // the processes of a fleet and their audits fill the default of 100
	life, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	s.killSwitch, s.ended = life, ended
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential}
	return cmd
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) pidFile() string { return filepath.Join(s.data(), "postmaster.pid") }

// statusLine returns one line of the file in which the server records its state; "" if
// there is none.
func (s *Server) statusLine(line int) string {
	raw, _ := os.ReadFile(s.pidFile()) // it may not be there yet
	lines := strings.Split(string(raw), "\n")
	if line >= len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[line])
}

func (s *Server) ready() bool { return s.statusLine(7) == "ready" }

// postmaster returns the id of the server's main process.
func (s *Server) postmaster() int {
	pid, err := strconv.Atoi(s.statusLine(0))
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// unprivilegedUser returns a user without privileges, to run the server as.
func unprivilegedUser(t testing.TB) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
