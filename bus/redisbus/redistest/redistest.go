// Package redistest starts real Redis servers for tests, which may kill them: a single server, a master with a
// replica and Sentinels, or a Cluster.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// ProgramEnv is the variable that contains the path of redis-server.
	ProgramEnv = "PARLEY_TEST_REDIS_SERVER"
	// howToRun is the reason for a skipped test.
	howToRun = "this test needs Redis: install redis-server, or name it in " + ProgramEnv
)

// A Server is a Redis, or a Sentinel, that a test has started.
type Server struct {
	Port string

	dir   string
	args  []string
	ready string // the line it prints when it is ready
	cmd   *exec.Cmd
}

func program() (string, error) {
	if name := os.Getenv(ProgramEnv); name != "" {
		return name, nil
	}
	return exec.LookPath("redis-server")
}

// Start starts a Redis with additional arguments. The caller has to call Remove. The error is exec.ErrNotFound if
// redis-server isn't installed.
func Start(args ...string) (*Server, error) {
	s, err := newServer("Ready to accept connections")
	if err != nil {
		return nil, err
	}
	// Every write reaches the kernel before it is answered, so a killed server loses nothing. With everysec, writes
	// would be delayed while the disk is slow.
	s.args = append([]string{
		"--port", s.Port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "no",
		"--maxmemory-policy", "noeviction", "--logfile", "", "--daemonize", "no",
	}, args...)
	return s, s.Restart()
}

func newServer(ready string) (*Server, error) {
	if _, err := program(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	return &Server{Port: port, dir: dir, ready: ready}, err
}

func freePort() (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// New starts a Redis that is removed after the test. It skips the test if redis-server isn't installed.
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := Start(args...)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(howToRun)
	}
	return s.removedAfter(t, err)
}

func (s *Server) removedAfter(t testing.TB, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// URL returns the server's address, with the password in its arguments.
func (s *Server) URL() string {
	user := ""
	if i := slices.Index(s.args, "--requirepass"); i >= 0 {
		user = ":" + s.args[i+1] + "@"
	}
	return "redis://" + user + "127.0.0.1:" + s.Port
}

// Restart starts the server with its existing data, and waits until it is ready.
func (s *Server) Restart() error {
	name, err := program()
	if err != nil {
		return err
	}
	s.cmd = exec.CommandContext(context.Background(), name, s.args...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), s.ready) {
			go drain(lines) // this goroutine ends with the process
			return nil
		}
	}
	return fmt.Errorf("redis-server ended: %w\n%s", s.cmd.Wait(), strings.Join(said, "\n"))
}

func drain(lines *bufio.Scanner) {
	for lines.Scan() {
		continue
	}
}

// Signal sends the server a signal.
func (s *Server) Signal(t testing.TB, what syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server like a crash.
func (s *Server) Kill() error {
	if s.IsDead() {
		return nil
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	if err := s.cmd.Wait(); err == nil {
		return errors.New("redis-server ended by itself")
	}
	return nil
}

// IsDead reports whether Kill has ended the server.
func (s *Server) IsDead() bool { return s.cmd == nil || s.cmd.ProcessState != nil }

// Remove ends the server and removes its data.
func (s *Server) Remove() error { return errors.Join(s.Kill(), os.RemoveAll(s.dir)) }

// Client returns a client of the server for the test.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	o.Protocol = 2
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() }) // the server may be gone
	return c
}

// patience is how long servers may take to agree.
const patience = 2 * time.Minute

// await waits until a condition is true, and fails the test if that takes too long.
func await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}
