package bench

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// A connectedBot is a bot of a few processes. The benchmark counts their connections to PostgreSQL.
type connectedBot struct {
	*shape
	database *sql.DB
	roles    []string
}

// newConnectedBot starts a process for each role, with at most conns connections; 0 means the default.
func newConnectedBot(b *testing.B, conns int, roles ...string) *connectedBot {
	b.Helper()
	place, server := sqldbtest.New(b), parleytest.StartRedis(b)
	address, err := url.Parse(place)
	parleytest.Must(b, err)
	query := address.Query()
	if conns > 0 {
		query.Set("pool_max_conns", fmt.Sprint(conns))
	}
	query.Set("application_name", "role")
	address.RawQuery = query.Encode()
	more := fmt.Sprintf("[bus]\nurl = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n", server.URL(), address, b.TempDir())
	x := newBotBench(b, func(r agenttest.Request) agenttest.Response { return agenttest.Reply("you said " + r.Said()) }, more)
	f := &connectedBot{shape: &shape{bench: x, name: fmt.Sprint("conns-", conns), chats: 200, next: 1}, roles: roles}
	f.database, err = sql.Open("pgx", place)
	parleytest.Must(b, err)
	b.Cleanup(func() { _ = f.database.Close() })
	raw, err := os.ReadFile(x.file)
	parleytest.Must(b, err)
	for _, role := range roles {
		x.file = fmt.Sprintf("%s.%s.toml", x.file, strings.ReplaceAll(role, ",", "-"))
		parleytest.Must(b, os.WriteFile(x.file, []byte(strings.Replace(string(raw), "application_name=role", "application_name="+strings.ReplaceAll(role, ",", "-"), 1)), 0o600))
		x.serveIn(b.TempDir(), "--role", role)
	}
	x.polled()
	return f
}

// count returns the number of connections of the process with a role, in all and active.
func (f *connectedBot) count(role string) (all, active int) {
	f.b.Helper()
	parleytest.Must(f.b, f.database.QueryRow("SELECT count(*), count(*) FILTER (WHERE state <> 'idle') FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1",
		strings.ReplaceAll(role, ",", "-")).Scan(&all, &active))
	return all, active
}

// under returns, for each role, the most connections that its process has while a load runs, and the most that are
// active.
func (f *connectedBot) under(load func(*shape, int64)) (all, active map[string]int) {
	f.b.Helper()
	all, active = map[string]int{}, map[string]int{}
	ctx, stop := context.WithCancel(f.b.Context())
	var counting sync.WaitGroup
	counting.Go(func() {
		for ctx.Err() == nil {
			for _, role := range f.roles {
				has, works := f.count(role)
				all[role], active[role] = max(all[role], has), max(active[role], works)
			}
			time.Sleep(5 * time.Millisecond) // measuring, not testing
		}
	})
	f.measured(load)
	stop()
	counting.Wait()
	return all, active
}

// BenchmarkConnections counts the connections of a process to PostgreSQL, at rest and while 200 people talk to the bot.
// It also compares the answers per second with the usual number of connections and with four.
func BenchmarkConnections(b *testing.B) {
	const atRest = 75 * time.Second // unused connections are closed by then
	b.Run("count", func(b *testing.B) {
		counts := map[string]int{}
		for _, f := range []*connectedBot{newConnectedBot(b, 0, "gateway,worker"), newConnectedBot(b, 0, "gateway", "worker")} {
			time.Sleep(atRest)
			for _, role := range f.roles {
				all, _ := f.count(role)
				counts[role+"-at-rest"] = all
			}
			for name, load := range map[string]func(*shape, int64){"dialogue": dialogue, "burst": burst} {
				all, active := f.under(load)
				for _, role := range f.roles {
					counts[role+"-"+name], counts[role+"-"+name+"-at-work"] = all[role], active[role]
				}
			}
		}
		for b.Loop() {
		}
		for name, n := range counts {
			b.ReportMetric(float64(n), name)
		}
		b.ReportMetric(0, "ns/op")
	})
	for name, load := range map[string]func(*shape, int64){"dialogue": dialogue, "burst": burst} {
		b.Run(name, func(b *testing.B) {
			usual, four := newConnectedBot(b, 0, "gateway,worker"), newConnectedBot(b, 4, "gateway,worker")
			for _, f := range []*connectedBot{usual, four} { // to warm up
				f.measured(load)
				f.took = nil
			}
			for b.Loop() {
				for range fleetRounds {
					usual.measured(load)
					four.measured(load)
				}
			}
			per := func(f *connectedBot) float64 { return float64(f.chats*fleetEach) / median(f.took) }
			b.ReportMetric(per(usual), "usual/s")
			b.ReportMetric(per(four), "four/s")
			b.ReportMetric(per(four)/per(usual), "x")
			b.ReportMetric(0, "ns/op")
		})
	}
}
