package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// In these benchmarks, the same people talk to the bot in each of its shapes: one process over SQLite, one process over
// Redis and PostgreSQL, and a gateway with one worker and with two. All shapes run all the time and take turns within a
// round, so that other load on the machine affects them alike. A ratio is the median of the rounds' ratios. Each round
// uses new chats, so that the rounds are alike.

const (
	fleetChats  = 200
	fleetEach   = 10 // messages in each chat
	fleetRounds = 5  // the measured rounds, after one round that warms up
)

// A shape is one way to run the bot: its processes and its databases.
type shape struct {
	*bench
	name  string
	chats int64     // the number of chats that talk at once
	next  int64     // the first chat of the next round
	took  []float64 // the seconds that each round took
}

// shapes starts the bot in each shape.
func shapes(b *testing.B) (all []*shape) {
	for _, s := range []struct {
		name  string
		fleet bool
		roles []string // the roles of each process
	}{
		{"sqlite", false, []string{"gateway,worker"}},
		{"redis+postgres", true, []string{"gateway,worker"}},
		{"one-worker", true, []string{"gateway", "worker"}},
		{"two-workers", true, []string{"gateway", "worker", "worker"}},
	} {
		more := ""
		if s.fleet {
			more = fleetHome(b)
		}
		x := newBotBench(b, func(r agenttest.Request) agenttest.Response { return agenttest.Reply("you said " + r.Said()) }, more)
		for _, roles := range s.roles {
			x.serve("--role", roles)
		}
		x.polled()
		all = append(all, &shape{bench: x, name: s.name, chats: fleetChats, next: 1})
	}
	return all
}

// fleetHome returns the configuration of a bot with a Redis of its own and a separate database in the tests'
// PostgreSQL.
func fleetHome(b *testing.B) string {
	b.Helper()
	return fmt.Sprintf("[bus]\nurl = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n",
		parleytest.StartRedis(b).URL(), sqldbtest.New(b), b.TempDir())
}

// measured runs one round of a load and records how long it took.
func (s *shape) measured(load func(s *shape, first int64)) {
	s.b.Helper()
	first := s.next
	s.next += s.chats
	began := time.Now()
	load(s, first)
	s.took = append(s.took, time.Since(began).Seconds())
	for c := first; c < s.next; c++ {
		sent := s.tg.Sent(c)
		for n := range max(fleetEach, len(sent)) {
			if n >= len(sent) || sent[n].Text != "you said "+strconv.Itoa(n) {
				s.b.Fatalf("%s: chat %d has %d answers, the first %d of them right", s.name, c, len(sent), n)
			}
		}
	}
}

// burst makes all people send all their messages at once, and waits for all answers.
func burst(s *shape, first int64) {
	for n := range fleetEach {
		for c := first; c < first+s.chats; c++ {
			s.tg.Say(c, inTurn(c, n), strconv.Itoa(n))
		}
	}
	for c := first; c < first+s.chats; c++ {
		s.wait(c, fleetEach)
	}
}

// dialogue makes all people talk at once; each waits for an answer before the next message.
func dialogue(s *shape, first int64) {
	ctx, cancel := context.WithTimeout(s.b.Context(), time.Minute)
	defer cancel()
	var people sync.WaitGroup
	for c := first; c < first+s.chats; c++ {
		people.Go(func() {
			for n := range fleetEach {
				s.tg.Say(c, c, strconv.Itoa(n))
				if _, err := s.tg.WaitSent(ctx, c, n+1); err != nil {
					s.b.Error(err)
					return
				}
			}
		})
	}
	people.Wait()
}

// BenchmarkFleet compares the answers per second of the shapes: Redis and PostgreSQL with SQLite, and two workers with
// one.
func BenchmarkFleet(b *testing.B) {
	for _, load := range []struct {
		name string
		run  func(*shape, int64)
	}{{"burst", burst}, {"dialogue", dialogue}} {
		b.Run(load.name, func(b *testing.B) {
			all := shapes(b)
			for _, s := range all {
				s.measured(load.run)
				s.took = nil
			}
			for b.Loop() {
				for range fleetRounds {
					for _, s := range all {
						s.measured(load.run)
					}
					slices.Reverse(all) // so that no shape is always the first
				}
			}
			slices.SortFunc(all, func(a, b *shape) int { return cmp.Compare(a.name, b.name) })
			compare(b, all)
		})
	}
}

// BenchmarkBudgets measures how much caps slow down two workers: it compares the answers per second with and without
// caps for a person, a day and a month, with 50 turns at once.
func BenchmarkBudgets(b *testing.B) {
	var all []*shape
	for name, model := range map[string]string{
		"bounded":   "price_input = 1\nprice_output = 2\n[budget]\nuser_day = 100000\nday = 1000000\nmonth = 10000000\n",
		"unbounded": "price_input = 0\n",
	} {
		x := newBotBench(b, func(r agenttest.Request) agenttest.Response { return agenttest.Reply("you said " + r.Said()) }, fleetHome(b))
		text, err := os.ReadFile(x.file)
		if err != nil {
			b.Fatal(err)
		}
		text = bytes.Replace(text, []byte("user_tokens_day = 1000000000000\n"), nil, 1)
		text = bytes.Replace(text, []byte("[log]\n"), []byte(model+"[log]\n"), 1)
		if err := os.WriteFile(x.file, text, 0o600); err != nil {
			b.Fatal(err)
		}
		for _, role := range []string{"gateway", "worker", "worker"} {
			x.serve("--role", role)
		}
		x.polled()
		all = append(all, &shape{bench: x, name: name, chats: 50, next: 1})
	}
	for _, s := range all {
		s.measured(dialogue)
		s.took = nil
	}
	for b.Loop() {
		for range fleetRounds {
			for _, s := range all {
				s.measured(dialogue)
			}
			slices.Reverse(all)
		}
	}
	compare(b, all)
}

// compare reports the answers per second of each shape, and the ratios between shapes.
func compare(b *testing.B, all []*shape) {
	by := map[string][]float64{}
	for _, s := range all {
		by[s.name] = s.took
		b.ReportMetric(float64(s.chats*fleetEach)/median(s.took), s.name+"/s")
	}
	for _, ratio := range []struct{ of, to, name string }{
		{"redis+postgres", "sqlite", "of-sqlite"},
		{"two-workers", "one-worker", "of-one-worker"},
		{"bounded", "unbounded", "of-unbounded"},
	} {
		if by[ratio.of] == nil {
			continue
		}
		var parts []float64
		for i, took := range by[ratio.of] {
			parts = append(parts, by[ratio.to][i]/took)
		}
		b.ReportMetric(median(parts), ratio.name)
	}
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
