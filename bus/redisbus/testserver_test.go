package redisbus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/bustest"
	"parley/bus/redisbus/sentinel"
)

const (
	urlEnv    = "PARLEY_TEST_REDIS_URL"
	serverEnv = "PARLEY_TEST_REDIS_SERVER"
	// sentinelEnv is for the suite's child processes: TestSentinels sets it.
	sentinelEnv = "PARLEY_TEST_SENTINEL_URL"
	howToRun    = "these tests need Redis: install redis-server, or name it in " + serverEnv + ", or set " + urlEnv
)

// TestMain runs the tests on the Redis named in the environment, else on one of
// their own. Child processes of the suite are told which.
func TestMain(m *testing.M) {
	if os.Getenv(urlEnv) != "" {
		bustest.Main(m, harness())
	}
	s, err := startServer()
	if err != nil {
		if !errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run()) // they are skipped
	}
	os.Setenv(urlEnv, s.url())
	code := m.Run()
	if err := s.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// A server is a Redis of a test's own.
type server struct {
	dir  string
	port string
	args []string
	cmd  *exec.Cmd
}

func program() (string, error) {
	if name := os.Getenv(serverEnv); name != "" {
		return name, nil
	}
	return exec.LookPath("redis-server")
}

func startServer(args ...string) (*server, error) {
	if _, err := program(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redisbus")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, port: port, args: args}
	return s, s.start()
}

func freePort() (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// url is the server's address, with the password that its arguments set.
func (s *server) url() string {
	user := ""
	if i := slices.Index(s.args, "--requirepass"); i >= 0 {
		user = ":" + s.args[i+1] + "@"
	}
	return "redis://" + user + "127.0.0.1:" + s.port
}

// start starts the server over the data that it has, and waits until it says
// that it takes connections.
func (s *server) start() error {
	name, err := program()
	if err != nil {
		return err
	}
	// Every write reaches the kernel before it is answered, so that what is killed
	// loses nothing. With everysec it would be held back while the disk is slow.
	args := append([]string{
		"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "no",
		"--logfile", "", "--daemonize", "no",
	}, s.args...)
	return s.run("Ready to accept connections", name, args...)
}

// run starts the program, and waits until it says that it is ready.
func (s *server) run(ready, name string, args ...string) error {
	s.cmd = exec.CommandContext(context.Background(), name, args...)
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
		if strings.Contains(lines.Text(), ready) {
			go drain(lines) // ends with the process
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

func (s *server) signal(t testing.TB, what syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
}

// kill ends the server as a crash would.
func (s *server) kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	if err := s.cmd.Wait(); err == nil {
		return errors.New("redis-server ended by itself")
	}
	return nil
}

func (s *server) remove() error { return errors.Join(s.kill(), os.RemoveAll(s.dir)) }

// ownServer is a server for one test.
func ownServer(t testing.TB, args ...string) *server {
	t.Helper()
	s, err := startServer(args...)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(howToRun)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// connect is a client of the test's own.
func connect(t testing.TB, url string) *redis.Client {
	t.Helper()
	var c *redis.Client
	if a, err := sentinel.Parse(url); sentinel.Is(url) && err == nil {
		c = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: a.Name, SentinelAddrs: a.Sentinels, Protocol: 2})
	} else {
		o, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		o.Protocol = 2
		c = redis.NewClient(o)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// under lists the keys of a prefix.
func under(t testing.TB, c *redis.Client, prefix string) (keys []string) {
	t.Helper()
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		page, next, err := c.Scan(context.Background(), cursor, prefix+":*", 1000).Result()
		if err != nil {
			t.Fatal(err)
		}
		keys, cursor = append(keys, page...), next
	}
	return keys
}

// A network is what lies between one bus and the server. A test can cut it, and can
// have it lose the server's answers.
type network struct {
	mu     sync.Mutex
	closed bool
	deaf   string // the next call that contains this text is to lose its answer
	every  int    // every so many calls one loses its answer; 0 means none
	calls  int
	conns  map[net.Conn]bool
}

func newNetwork() *network { return &network{conns: map[net.Conn]bool{}} }

func (g *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	g.conns[conn] = true
	return &networkConn{Conn: conn, network: g}, nil
}

// written returns how many calls were written so far.
func (g *network) written() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// A networkConn is a connection through a network.
type networkConn struct {
	net.Conn
	network *network
	deaf    atomic.Bool
}

// Write makes Read fail if what is written is the call whose answer is to be lost.
func (c *networkConn) Write(p []byte) (int, error) {
	g := c.network
	g.mu.Lock()
	if g.deaf != "" && strings.Contains(string(p), g.deaf) {
		g.deaf = ""
		c.deaf.Store(true)
	}
	if g.calls++; g.every > 0 && g.calls%g.every == 0 {
		c.deaf.Store(true)
	}
	g.mu.Unlock()
	return c.Conn.Write(p)
}

// Read waits for the answer also if that is to be lost: by then the server has done
// what it was asked for.
func (c *networkConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.deaf.Load() {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Close())
	}
	return n, err
}

// loseAnswer makes the next call that contains text lose its answer.
func (g *network) loseAnswer(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deaf = text
}

// loseEvery makes every n-th call lose its answer; 0 ends that.
func (g *network) loseEvery(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.every = n
}

func (g *network) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for conn := range g.conns {
		_ = conn.Close() // the client may have closed it
	}
	clear(g.conns)
}

func (g *network) restore() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}
