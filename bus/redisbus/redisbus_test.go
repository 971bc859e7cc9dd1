package redisbus_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/bustest"
	"parley/bus/redisbus"
	"parley/bus/redisbus/shards"
)

// testLease is shorter than the default, so tests wait less.
const testLease = 2 * time.Second

// networks holds the network of each bus that the suite has opened.
type networks struct {
	mu    sync.Mutex
	ofBus map[bustest.Bus]*network
}

func harness() bustest.Harness {
	all := &networks{ofBus: map[bustest.Bus]*network{}}
	return bustest.Harness{
		NewPlace: func(t testing.TB) string { return testPrefix(t, "test-") },
		Open: func(ctx context.Context, place string, o bustest.Options) (bustest.Bus, error) {
			g := newNetwork()
			b, err := openPlace(ctx, place, redisbus.Config{
				URL: os.Getenv(envOf(place)), Prefix: place, Caps: o.Caps, MaxHold: o.MaxHold, Lease: cmp.Or(o.Lease, testLease), Dial: g.dial,
			})
			if err != nil {
				return nil, err
			}
			all.mu.Lock()
			defer all.mu.Unlock()
			all.ofBus[b] = g
			return b, nil
		},
		Residue: residue,
		NextDay: nextDay,
		Shared:  true,
		CutOff: func(_ testing.TB, b bustest.Bus) func() {
			all.mu.Lock()
			defer all.mu.Unlock()
			g := all.ofBus[b]
			g.cut()
			return g.restore
		},
		Wipe:      wipe,
		LeaseTime: testLease,
	}
}

// These prefixes mark places on the Redis behind Sentinels, and places of buses in shards on a Cluster.
const (
	behindSentinels = "sentinel-"
	onCluster       = "cluster-"
)

// shardCount is the number of shards of the buses in these tests.
const shardCount = 4

// openPlace opens the bus at a place, in shards if the place is on a Cluster.
func openPlace(ctx context.Context, place string, c redisbus.Config) (bustest.Bus, error) {
	if !strings.HasPrefix(place, onCluster) {
		return redisbus.Open(ctx, c)
	}
	if err := shards.Prepare(ctx, c, shardCount); err != nil {
		return nil, err
	}
	return shards.Open(ctx, c, shardCount)
}

// envOf returns the name of the variable with the address of a prefix's Redis. The suite's child processes have the
// variable, too.
func envOf(prefix string) string {
	switch {
	case strings.HasPrefix(prefix, behindSentinels):
		return sentinelEnv
	case strings.HasPrefix(prefix, onCluster):
		return clusterEnv
	}
	return urlEnv
}

// connectTo returns the test's own clients to the servers of a prefix: one server, or all masters of a Cluster.
func connectTo(t testing.TB, prefix string) []*redis.Client {
	t.Helper()
	if url := os.Getenv(envOf(prefix)); !strings.HasPrefix(prefix, onCluster) {
		return []*redis.Client{connect(t, url)}
	}
	return connectMasters(t, os.Getenv(clusterEnv))
}

// testPrefix returns a new prefix for a test. Its keys are deleted when the test ends.
func testPrefix(t testing.TB, begins string) string {
	t.Helper()
	if os.Getenv(envOf(begins)) == "" {
		t.Skip(howToRun)
	}
	prefix := begins + rand.Text()[:8]
	t.Cleanup(func() { wipe(t, prefix) })
	return prefix
}

func wipe(t testing.TB, place string) {
	t.Helper()
	for _, c := range connectTo(t, place) {
		wipeOn(t, c, place)
	}
}

func wipeOn(t testing.TB, c *redis.Client, place string) {
	t.Helper()
	pipe := c.Pipeline() // not one call: its keys would have to be in one slot of a Cluster
	for _, key := range under(t, c, place) {
		pipe.Del(context.Background(), key)
	}
	if _, err := pipe.Exec(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// mayRemain reports whether a key may remain after all messages are settled: because it expires, or because the
// number of such keys doesn't grow with the number of mailboxes.
func mayRemain(key string) bool {
	_, name, _ := strings.Cut(key, "}:")
	kind, _, _ := strings.Cut(name, ":")
	switch kind {
	case "clock", "contact", "topics", "wake", "seen", "hold", "waiting", "nudge", "pause", "dead", "graves", "events", "working", "begun", "last", "counted", "shards":
		return true
	}
	return false
}

func residue(t testing.TB, place string, b bustest.Bus) (left []string) {
	t.Helper()
	for _, c := range connectTo(t, place) {
		for _, key := range under(t, c, place) {
			if !mayRemain(key) {
				left = append(left, key)
			}
		}
	}
	if whole, ok := b.(*redisbus.Bus); ok && whole.LeasesInMemory() > 0 {
		left = append(left, fmt.Sprint(whole.LeasesInMemory(), " leases in memory"))
	}
	return left
}

// nextDay moves the known ids of each day to the day before.
func nextDay(t testing.TB, place string) {
	t.Helper()
	for _, c := range connectTo(t, place) {
		for days := 3; days >= 0; days-- { // the oldest first, to make room for the next
			moveKnown(t, c, place, time.Now().UnixMicro()/(24*time.Hour).Microseconds()-int64(days))
		}
	}
}

// moveKnown moves the known ids of a day to the day before.
func moveKnown(t testing.TB, c *redis.Client, place string, day int64) {
	t.Helper()
	for _, key := range under(t, c, place) {
		parts := strings.Split(key, ":")
		if n := len(parts); parts[2] == "seen" && parts[n-2] == strconv.FormatInt(day, 10) {
			parts[n-2] = strconv.FormatInt(day-1, 10)
			if err := c.Rename(t.Context(), key, strings.Join(parts, ":")).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestBus(t *testing.T) {
	t.Parallel()
	bustest.Run(t, harness())
}

func BenchmarkBus(b *testing.B) { bustest.Bench(b, harness()) }
