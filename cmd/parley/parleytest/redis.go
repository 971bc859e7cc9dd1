package parleytest

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A Redis is a Redis server that a test may kill. It writes every change to its file before it
// answers. With Redis's default setting, appendfsync everysec, it would delay changes while a busy
// disk is slow (docs/reliability.md), and these tests are not about the disk.
type Redis struct {
	t    testing.TB
	name string
	port string
	dir  string
	cmd  *exec.Cmd
}

// StartRedis starts a Redis that ends with the test.
func StartRedis(t testing.TB) *Redis {
	t.Helper()
	name := os.Getenv("PARLEY_TEST_REDIS_SERVER")
	if name == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_SERVER: run it as `.ci/servers go test …`, or with make test")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	s := &Redis{t: t, name: name, port: port, dir: t.TempDir()}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// URL returns the address of the server.
func (s *Redis) URL() string { return "redis://127.0.0.1:" + s.port }

// Start starts the server with its existing data, and waits until it answers.
func (s *Redis) Start() error {
	s.cmd = exec.Command(s.name, "--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "no", "--maxmemory-policy", "noeviction", "--daemonize", "no", "--logfile", "")
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			go func() {
				for lines.Scan() {
					continue // until it ends
				}
			}()
			return nil
		}
	}
	return errors.Join(errors.New("redis-server does not start"), s.cmd.Wait())
}

// Kill ends the server with SIGKILL.
func (s *Redis) Kill() {
	_ = s.cmd.Process.Kill() // it may be dead
	_ = s.cmd.Wait()         // it was killed
}

// Signal sends the server a signal.
func (s *Redis) Signal(what syscall.Signal) {
	if err := s.cmd.Process.Signal(what); err != nil {
		s.t.Error(err)
	}
}
