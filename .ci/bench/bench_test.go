package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	urlEnv    = "PARLEY_TEST_REDIS_URL"
	serverEnv = "PARLEY_TEST_REDIS_SERVER"

	producers = 8
	workers   = 32
	bodyBytes = 512
)

// A system carries messages from publishers to workers.
type system interface {
	// publish returns once the server has message i of session s.
	publish(ctx context.Context, i, s int) error
	// consume passes every message to handle, with at most workers calls at once, until ctx ends.
	consume(ctx context.Context, handle func(body []byte))
	close() error
}

// systems are the measured systems by name. raw is the one that the others are compared with.
var systems = []struct {
	name string
	open func(url string) (system, error)
}{
	{"raw", openRaw},
	{"parley", openParley},
	{"watermill", openWatermill},
	{"asynq", openAsynq},
}

func body(i int) []byte {
	b := make([]byte, bodyBytes)
	binary.BigEndian.PutUint64(b, uint64(i))
	return b
}

func number(body []byte) int { return int(binary.BigEndian.Uint64(body)) }

// address returns the address of the Redis to measure. The benchmark deletes all its data.
func address(b *testing.B) string {
	b.Helper()
	url := os.Getenv(urlEnv)
	if url == "" {
		b.Skip("set " + urlEnv + ", or install redis-server")
	}
	return url
}

func TestMain(m *testing.M) {
	if os.Getenv(urlEnv) != "" {
		os.Exit(m.Run())
	}
	stop, err := serve()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(m.Run()) // the benchmarks then skip
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// serve starts a Redis with an append-only file, as in production.
func serve() (stop func(), err error) {
	name := os.Getenv(serverEnv)
	if name == "" {
		if name, err = exec.LookPath("redis-server"); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "redisbench")
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), name,
		"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes", "--logfile", "")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "Ready to accept") {
		continue
	}
	go func() {
		for lines.Scan() {
			continue
		}
	}()
	os.Setenv(urlEnv, "redis://127.0.0.1:"+port)
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}, nil
}

func open(b *testing.B, f func(url string) (system, error)) system {
	b.Helper()
	url := address(b)
	o, err := redis.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	c := redis.NewClient(o)
	if err := errors.Join(c.FlushAll(b.Context()).Err(), c.Close()); err != nil {
		b.Fatal(err)
	}
	s, err := f(url)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// through publishes n messages of some sessions from several producers to several workers, and returns how long it
// took until the last one was handled.
func through(b *testing.B, f func(string) (system, error), n, sessions int) time.Duration {
	b.Helper()
	x := open(b, f)
	ctx, cancel := context.WithCancel(b.Context())
	var consuming, producing sync.WaitGroup
	var next, done atomic.Int64
	seen := make([]atomic.Bool, n)
	all := make(chan struct{})
	start := time.Now()
	consuming.Go(func() {
		x.consume(ctx, func(body []byte) {
			if i := number(body); !seen[i].Swap(true) && done.Add(1) == int64(n) {
				close(all)
			}
		})
	})
	for range producers {
		producing.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := x.publish(ctx, i, i%sessions); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	select {
	case <-all:
	case <-time.After(2 * time.Minute):
		b.Errorf("%d of %d messages came", done.Load(), n)
	}
	took := time.Since(start)
	producing.Wait()
	cancel()
	consuming.Wait()
	if err := x.close(); err != nil {
		b.Error(err)
	}
	return took
}

// BenchmarkThrough measures each system right after raw, and reports its throughput as a part of raw's.
func BenchmarkThrough(b *testing.B) {
	for _, sessions := range []int{100, 10000} {
		for _, s := range systems {
			b.Run(fmt.Sprintf("%s/sessions=%d", s.name, sessions), func(b *testing.B) {
				var own, raw time.Duration
				for b.Loop() {
					const n = 10000
					raw += through(b, openRaw, n, sessions)
					own += through(b, s.open, n, sessions)
				}
				b.ReportMetric(10000*float64(b.N)/own.Seconds(), "messages/s")
				b.ReportMetric(raw.Seconds()/own.Seconds(), "of-raw")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkPaced measures the time from before publish until the handler has the message, at 500 messages per second.
func BenchmarkPaced(b *testing.B) {
	for _, s := range systems {
		b.Run(s.name, func(b *testing.B) {
			const n = 2000
			var all []time.Duration
			for b.Loop() {
				x := open(b, s.open)
				all = append(all, paced(b, x, n)...)
				if err := x.close(); err != nil {
					b.Error(err)
				}
			}
			quantiles(b, all)
		})
	}
}

// BenchmarkHot gives one session a backlog whose messages take a worker 5 ms each, and measures the other sessions
// meanwhile.
func BenchmarkHot(b *testing.B) {
	const backlog, others = 3000, 1000
	var all []time.Duration
	for b.Loop() {
		x := open(b, openParley)
		for i := range backlog {
			if err := x.publish(b.Context(), others+i, 0); err != nil {
				b.Fatal(err)
			}
		}
		slow := func(body []byte) {
			if number(body) >= others {
				<-time.After(5 * time.Millisecond)
			}
		}
		all = append(all, pace(b, x, others, func(i int) int { return i + 1 }, slow)...)
		if err := x.close(); err != nil {
			b.Error(err)
		}
	}
	quantiles(b, all)
}

// paced publishes at a steady pace to a hundred sessions.
func paced(b *testing.B, x system, n int) []time.Duration {
	return pace(b, x, n, func(i int) int { return i % 100 }, func([]byte) {})
}

// pace publishes n messages, 500 per second, and returns how long each took.
func pace(b *testing.B, x system, n int, session func(int) int, work func([]byte)) []time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	sent := make([]time.Time, n)
	took := make([]time.Duration, n)
	var done atomic.Int64
	all := make(chan struct{})
	var consuming sync.WaitGroup
	consuming.Go(func() {
		x.consume(ctx, func(body []byte) {
			work(body)
			if i := number(body); i < n && took[i] == 0 {
				took[i] = time.Since(sent[i])
				if done.Add(1) == int64(n) {
					close(all)
				}
			}
		})
	})
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		sent[i] = time.Now()
		if err := x.publish(ctx, i, session(i)); err != nil {
			b.Fatal(err)
		}
	}
	select {
	case <-all:
	case <-time.After(time.Minute):
		b.Errorf("%d of %d messages came", done.Load(), n)
	}
	cancel()
	consuming.Wait()
	return took
}

func quantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*q/100])/1e6, fmt.Sprintf("p%d-ms", q))
	}
	b.ReportMetric(0, "ns/op")
}
