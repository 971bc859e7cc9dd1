package redisbus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/bustest"
	"parley/bus/redisbus/redistest"
	"parley/bus/redisbus/sentinel"
)

const (
	urlEnv = "PARLEY_TEST_REDIS_URL"
	// sentinelEnv is the variable that TestSentinels sets for the suite's child processes.
	sentinelEnv = "PARLEY_TEST_SENTINEL_URL"
	clusterEnv  = "PARLEY_TEST_CLUSTER_URL" // the same for TestCluster
	howToRun    = "these tests need Redis: install redis-server, or name it in " + redistest.ProgramEnv + ", or set " + urlEnv
)

// TestMain runs the tests on the Redis named in the environment, or else on a Redis of their own, and passes its
// address on to the suite's child processes.
func TestMain(m *testing.M) {
	if os.Getenv(urlEnv) != "" {
		bustest.Main(m, harness())
	}
	s, err := redistest.Start()
	if err != nil {
		if !errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run()) // without a Redis the tests are skipped
	}
	os.Setenv(urlEnv, s.URL())
	code := m.Run()
	if err := s.Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// connect returns the test's own client.
func connect(t testing.TB, url string) *redis.Client {
	t.Helper()
	var c *redis.Client
	if a, err := sentinel.Parse(url); sentinel.Is(url) && err == nil {
		c = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: a.Name, SentinelAddrs: a.Hosts, Protocol: 2})
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

// under returns the keys of a prefix.
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

// A network is the connection between one bus and the server. A test can cut it, and can make it lose the server's
// answers.
type network struct {
	mu     sync.Mutex
	closed bool
	deaf   string // the next call that contains this text loses its answer
	every  int    // each n-th call loses its answer; 0 means none
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

// Write makes Read fail if p contains the call whose answer is to be lost.
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

// Read waits for the answer even if it is to be lost, so the server has done the call by then.
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

// loseEvery makes each n-th call lose its answer. 0 ends that.
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
