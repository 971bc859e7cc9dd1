package bench

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal/client"
	"parley/sessions/sqldb/sqldbtest"
)

// A costlyFleet is a gateway with workers whose costs are measured.
type costlyFleet struct {
	*shape
	redis    *redis.Client
	database *sql.DB
	homes    []string // the home directories of the workers
	pids     []int    // the process ids, the gateway's first
}

// fleetCosts contains what a fleet has used so far.
type fleetCosts struct {
	gateway, workers, redis, postgres time.Duration // processor time
	commands, transactions            float64
	answers                           float64
	read, opened                      float64 // how often a worker read a session's log, and how often it began work on a session
}

// total returns the processor time of all parts together.
func (c fleetCosts) total() time.Duration { return c.gateway + c.workers + c.redis + c.postgres }

// plus returns the costs c plus the difference between before and after.
func (c fleetCosts) plus(after, before fleetCosts) fleetCosts {
	c.gateway += after.gateway - before.gateway
	c.workers += after.workers - before.workers
	c.redis += after.redis - before.redis
	c.postgres += after.postgres - before.postgres
	c.commands += after.commands - before.commands
	c.transactions += after.transactions - before.transactions
	c.read += after.read - before.read
	c.opened += after.opened - before.opened
	return c
}

func newCostlyFleet(b *testing.B, workers int, people int64) *costlyFleet {
	b.Helper()
	server, place := parleytest.StartRedis(b), sqldbtest.New(b)
	more := fmt.Sprintf("[bus]\nurl = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n", server.URL(), place, b.TempDir())
	x := newBotBench(b, func(r agenttest.Request) agenttest.Response { return agenttest.Reply("you said " + r.Said()) }, more)
	f := &costlyFleet{shape: &shape{bench: x, name: fmt.Sprint("workers-", workers), chats: people, next: 1}}
	options, err := redis.ParseURL(server.URL())
	parleytest.Must(b, err)
	f.redis = redis.NewClient(options)
	f.database, err = sql.Open("pgx", place)
	parleytest.Must(b, err)
	b.Cleanup(func() { _, _ = f.redis.Close(), f.database.Close() })
	for n := range workers + 1 {
		home, role := b.TempDir(), "worker"
		if n == 0 {
			role = "gateway"
		} else {
			f.homes = append(f.homes, home)
		}
		x.serveIn(home, "--role", role)
		f.pids = append(f.pids, x.cmd.Process.Pid)
	}
	x.polled()
	return f
}

// processorOf returns the processor time that a process has used.
func processorOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	const cpuOf = 2 // all that a process has used, as clock_getcpuclockid(3) names it
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|cpuOf), &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Nano())
}

var infoLine = regexp.MustCompile(`(?m)^(used_cpu_sys|used_cpu_user|total_commands_processed):(\S+?)\r?$`)

// costs returns what the fleet has used so far.
func (f *costlyFleet) costs() (c fleetCosts) {
	f.b.Helper()
	c.gateway = processorOf(f.b, f.pids[0])
	for _, pid := range f.pids[1:] {
		c.workers += processorOf(f.b, pid)
	}
	info, err := f.redis.Info(f.b.Context(), "cpu", "stats").Result()
	parleytest.Must(f.b, err)
	for _, m := range infoLine.FindAllStringSubmatch(info, -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		parleytest.Must(f.b, err)
		if strings.HasPrefix(m[1], "used_cpu") {
			c.redis += time.Duration(value * float64(time.Second))
		} else {
			c.commands = value
		}
	}
	rows, err := f.database.Query("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	parleytest.Must(f.b, err)
	for rows.Next() {
		var pid int
		parleytest.Must(f.b, rows.Scan(&pid))
		c.postgres += processorOf(f.b, pid)
	}
	parleytest.Must(f.b, rows.Err())
	parleytest.Must(f.b, f.database.QueryRow("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").Scan(&c.transactions))
	for _, home := range f.homes {
		var page strings.Builder
		ctx, cancel := context.WithTimeout(f.b.Context(), time.Minute)
		parleytest.Must(f.b, client.Dial(home).Get(ctx, "/metrics", &page))
		cancel()
		read, kept := openedFrom(f.b, page.String(), "log"), openedFrom(f.b, page.String(), "memory")
		c.read, c.opened = c.read+read, c.opened+read+kept
	}
	return c
}

// openedFrom returns how often work on a session began with its log read from this place.
func openedFrom(b *testing.B, page, from string) float64 {
	b.Helper()
	_, rest, found := strings.Cut(page, fmt.Sprintf("parley_sessions_opened_total{from=%q} ", from))
	value, err := strconv.ParseFloat(strings.Fields(rest + " ?")[0], 64)
	if !found || err != nil {
		b.Fatalf("the metrics do not say how often a session came from %s: %v", from, err)
	}
	return value
}

// BenchmarkFleetCosts measures the processor time that an answer costs a gateway with one, two and four workers, in all
// processes and in both servers, and how often a log is read again. In each round, people have conversations of ten
// messages and wait for each answer: 50 people in all, or 50 for each worker. The fleets take turns.
func BenchmarkFleetCosts(b *testing.B) {
	b.Run("of-50-people", func(b *testing.B) { measureCosts(b, func(int) int64 { return 50 }) })
	b.Run("of-50-each", func(b *testing.B) { measureCosts(b, func(workers int) int64 { return 50 * int64(workers) }) })
}

func measureCosts(b *testing.B, people func(workers int) int64) {
	var all []*costlyFleet
	for _, workers := range []int{1, 2, 4} {
		f := newCostlyFleet(b, workers, people(workers))
		f.measured(dialogue) // to warm up
		all = append(all, f)
	}
	sums := make([]fleetCosts, len(all))
	for b.Loop() {
		for range fleetRounds {
			for n, f := range all {
				before := f.costs()
				f.measured(dialogue)
				sums[n] = sums[n].plus(f.costs(), before)
				sums[n].answers += float64(fleetEach * f.chats)
				sums[n].read -= float64(f.chats) // the first read of each conversation
			}
		}
	}
	for n, f := range all {
		s := sums[n]
		report := func(figure float64, unit string) { b.ReportMetric(figure, f.name+"-"+unit) }
		each := func(d time.Duration) float64 { return d.Seconds() * 1000 / s.answers }
		report(each(s.gateway), "gateway-ms")
		report(each(s.workers), "workers-ms")
		report(each(s.redis), "redis-ms")
		report(each(s.postgres), "postgres-ms")
		report(each(s.total())/(sums[0].total().Seconds()*1000/sums[0].answers), "x-cpu")
		report(s.commands/s.answers, "commands")
		report(s.transactions/s.answers, "transactions")
		report(100*s.read/s.opened, "%read-again")
	}
	b.ReportMetric(0, "ns/op")
}
