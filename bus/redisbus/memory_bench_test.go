package redisbus_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/redisbus/redistest"
)

// These benchmarks measure the memory that messages use in a Redis of their own, without a file: for a waiting
// message, and for a session whose messages are settled.

const benchBody = 512

// A stock is a bus on an empty Redis.
type stock struct {
	*redisbus.Bus
	b      *testing.B
	redis  *redis.Client
	before int64 // bytes that Redis used when it was empty
}

func newStock(b *testing.B) *stock {
	b.Helper()
	server := redistest.New(b, "--appendonly", "no")
	s := &stock{b: b, redis: connect(b, server.URL())}
	var err error
	if s.Bus, err = redisbus.Open(b.Context(), redisbus.Config{URL: server.URL()}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	s.publish(0, 1, 1) // create the keys that exist once, however many sessions there are
	s.work(1)
	s.before = s.used()
	return s
}

// used returns how many bytes Redis uses.
func (s *stock) used() int64 {
	s.b.Helper()
	info, err := s.redis.Info(s.b.Context(), "memory").Result()
	if err != nil {
		s.b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "used_memory:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				s.b.Fatal(err)
			}
			return n
		}
	}
	s.b.Fatal("Redis does not say how much memory it uses")
	return 0
}

// publish publishes some messages to each of several sessions.
func (s *stock) publish(first, sessions, each int) {
	s.b.Helper()
	const at = 256
	var wg sync.WaitGroup
	var next atomic.Int64
	for range at {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < sessions*each; n = int(next.Add(1)) - 1 {
				err := s.Publish(context.WithoutCancel(s.b.Context()), inbound, bus.Message{
					ID: "telegram:" + strconv.Itoa(first) + ":" + strconv.Itoa(n), Key: "main:telegram:" + strconv.Itoa(first+n%sessions),
					Body: make([]byte, benchBody),
				})
				if err != nil {
					s.b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if s.b.Failed() {
		s.b.FailNow()
	}
}

// work claims and settles until that many messages are done.
func (s *stock) work(messages int) {
	s.b.Helper()
	ctx, cancel := context.WithCancel(s.b.Context())
	defer cancel()
	const workers = 256
	var wg sync.WaitGroup
	var done atomic.Int64
	for range workers {
		wg.Go(func() {
			for {
				l, err := s.Claim(ctx, inbound)
				if err != nil {
					return // all messages are done
				}
				mail, err := l.Mail(s.b.Context(), 0)
				if err == nil {
					err = l.Settle(s.b.Context(), bus.End{Done: mail[len(mail)-1].Seq})
				}
				if err != nil {
					s.b.Error(err)
					cancel()
					return
				}
				if done.Add(int64(len(mail))) == int64(messages) {
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if s.b.Failed() {
		s.b.FailNow()
	}
}

// BenchmarkWaiting measures the memory of a waiting message besides its body, alone in its mailbox and among others.
func BenchmarkWaiting(b *testing.B) {
	const most = 1.2 * 1024
	for _, each := range []int{1, 20} {
		b.Run(fmt.Sprintf("each=%d", each), func(b *testing.B) {
			const messages = 100_000
			cost := 0.0
			for b.Loop() {
				s := newStock(b)
				s.publish(1, messages/each, each)
				cost = float64(s.used()-s.before)/messages - benchBody
			}
			b.ReportMetric(cost, "B-beside-body")
			b.ReportMetric(0, "ns/op")
			if cost >= most {
				b.Errorf("a message costs %.0f bytes beside its body, which is to be less than %.0f", cost, most)
			}
		})
	}
}

// BenchmarkIdle publishes and settles a message in each of a million sessions (-short: 100,000), and fails if Redis
// then has any other keys of them than those that detect duplicates.
func BenchmarkIdle(b *testing.B) {
	sessions := 1_000_000
	if testing.Short() {
		sessions = 100_000
	}
	for b.Loop() {
		s := newStock(b)
		var working sync.WaitGroup
		working.Go(func() { s.work(sessions) })
		s.publish(1, sessions, 1)
		working.Wait()
		b.ReportMetric(float64(s.used()-s.before)/float64(sessions), "B-each")
		s.idle(b)
	}
	b.ReportMetric(float64(sessions*b.N)/b.Elapsed().Seconds(), "sessions/s")
	b.ReportMetric(0, "ns/op")
}

// idle checks and counts the remaining keys, by kind.
func (s *stock) idle(b *testing.B) {
	b.Helper()
	// These keys exist once, however many sessions there were: the highest number, the last contact of the fleet, the
	// topics, the wake token, and the process that repairs.
	single := map[string]bool{"clock": true, "contact": true, "topics": true, "wake": true, "nudge": true, "hold": true, "waiting": true}
	counts, rest := map[string]int{}, int64(0)
	for _, key := range under(b, s.redis, redisbus.DefaultPrefix) {
		_, name, _ := strings.Cut(key, ":{0}:")
		kind, _, _ := strings.Cut(name, ":")
		counts[kind]++
		switch {
		case kind == "seen":
		case single[kind]:
			size, err := s.redis.MemoryUsage(b.Context(), key, 0).Result()
			if err != nil {
				b.Fatal(err)
			}
			rest += size
		default:
			b.Errorf("%s is left", key)
		}
	}
	for kind, n := range counts {
		b.ReportMetric(float64(n), kind+"-keys")
	}
	b.ReportMetric(float64(rest), "B-beside-seen")
	if limit := int64(4 << 10); rest > limit {
		b.Errorf("%d bytes are left beside what tells duplicates, want at most %d", rest, limit)
	}
	if n := s.LeasesInMemory(); n > 0 {
		b.Errorf("%d leases are left in memory", n)
	}
}
