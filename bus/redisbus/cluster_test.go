package redisbus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/redisbus"
	"parley/bus/redisbus/cluster"
	"parley/bus/redisbus/redistest"
	redisserver "parley/bus/redisbus/server"
	"parley/bus/redisbus/shards"
	"parley/tools/testlog"
)

// connectMasters returns a client of each master of a Cluster.
func connectMasters(t testing.TB, url string) (masters []*redis.Client) {
	t.Helper()
	_, hosts, _ := strings.Cut(url, "://")
	first, _, _ := strings.Cut(hosts, ",")
	slots, err := connect(t, "redis://"+first).ClusterSlots(context.Background()).Result() //nolint:staticcheck // Redis 6.2 does not know CLUSTER SHARDS
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, s := range slots {
		if at := s.Nodes[0].Addr; !slices.Contains(known, at) {
			known = append(known, at)
			masters = append(masters, connect(t, "redis://"+at))
		}
	}
	return masters
}

// A bus in shards on a Cluster keeps all promises, even while slots move and masters are replaced.
func TestCluster(t *testing.T) {
	t.Parallel()
	x := redistest.NewCluster(t)
	os.Setenv(clusterEnv, x.URL()) // the suite's child processes need it
	h := harness()
	h.Divided = true
	h.NewPlace = func(t testing.TB) string { return testPrefix(t, onCluster) }
	bustest.Run(t, h)
	t.Run("slots move", func(t *testing.T) { testSlotsMove(t, x) })
	t.Run("masters are replaced", func(t *testing.T) { testMastersAreReplaced(t, x) })
}

// clusterTraffic opens a bus in shards on a Cluster, and returns traffic on it.
func clusterTraffic(t *testing.T, x *redistest.Cluster, prefix string) *traffic {
	t.Helper()
	r := &rig{T: t, network: newNetwork(), log: new(testlog.Buffer), redis: x.Clients[0]}
	c := redisbus.Config{URL: x.URL(), Prefix: prefix, Lease: testLease, Log: slog.New(slog.NewTextHandler(r.log, nil)), Dial: r.network.dial}
	r.ok("prepare", shards.Prepare(t.Context(), c, shardCount))
	b, err := shards.Open(t.Context(), c, shardCount)
	r.ok("open", err)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	all := newTraffic(r)
	all.bus = b
	return all
}

// checkIdle checks that the masters have nothing left.
func checkIdle(t *testing.T, x *redistest.Cluster, prefix string) {
	t.Helper()
	for _, c := range x.Masters(t) {
		for _, key := range under(t, c, prefix) {
			if !mayRemain(key) {
				t.Errorf("%s is left", key)
			}
		}
	}
}

// When a master of the Cluster is replaced during traffic, no accepted message is lost, and no settled message
// returns.
func testMastersAreReplaced(t *testing.T, x *redistest.Cluster) {
	const prefix = "replaced"
	traffic := clusterTraffic(t, x, prefix)
	slot := cluster.Slot(cluster.Tags(shardCount)[1])
	traffic.during(func() {
		traffic.more(400)
		start := time.Now()
		traffic.r.ok("failover", x.Clients[x.Replica(t, x.Owner(t, slot))].ClusterFailover(t.Context()).Err())
		traffic.more(400)
		t.Logf("400 more messages %v after a failover", time.Since(start))
		x.AwaitReplicas(t)
		old := x.Owner(t, slot)
		start = time.Now()
		traffic.r.ok("kill", x.Nodes[old].Kill())
		bustest.Await(t, "another master", func() bool { return x.Owner(t, slot) != old })
		promoted := time.Since(start)
		traffic.more(400)
		t.Logf("another master after %v, and 400 more messages after %v", promoted, time.Since(start))
		traffic.r.ok("start", x.Nodes[old].Restart())
		x.AwaitReplicas(t)
		traffic.more(400)
	})
	checkIdle(t, x, prefix)
}

// Traffic goes on while slots move to another node.
func testSlotsMove(t *testing.T, x *redistest.Cluster) {
	const prefix = "moved"
	traffic := clusterTraffic(t, x, prefix)
	traffic.during(func() {
		for _, tag := range cluster.Tags(shardCount) {
			traffic.more(200)
			slot := cluster.Slot(tag)
			from := x.Owner(t, slot)
			to := (from + 1) % 3
			start := time.Now()
			x.Move(t, slot, from, to)
			moved := time.Since(start)
			traffic.more(200)
			t.Logf("slot %d moved in %v, and 200 more messages after %v", slot, moved, time.Since(start))
		}
	})
	checkIdle(t, x, prefix)
}

// The error for each wrong address of a Cluster explains the problem.
func TestClusterRefuses(t *testing.T) {
	t.Parallel()
	node, alone := redistest.New(t, "--cluster-enabled", "yes"), redistest.New(t)
	for address, says := range map[string]string{
		node.URL():                                                   "write redis+cluster://",
		"redis+cluster://127.0.0.1:" + node.Port:                     "the Cluster",
		"redis+cluster://127.0.0.1:" + alone.Port:                    "cluster support disabled",
		"redis+cluster://:hunter2@127.0.0.1:" + node.Port + "/1":     "only one database",
		"redis+cluster://:hunter2@127.0.0.1:" + node.Port + ",b:c:d": "HOST:PORT",
	} {
		_, err := redisbus.Open(t.Context(), redisbus.Config{URL: address})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", address, err, says)
		}
	}
	if h, err := redisserver.Probe(t.Context(), node.URL(), "0"); err != nil || h.Mode != "cluster" {
		t.Errorf("probe: %+v, %v", h, err)
	}
}

// A bus can change its number of shards once it is empty and no process has it open. It still knows which messages
// were published.
func TestReshard(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	config := redisbus.Config{URL: s.URL(), Lease: testLease}
	open := func(n int) (bustest.Bus, error) {
		if err := shards.Prepare(t.Context(), config, n); err != nil {
			return nil, err
		}
		if n == 1 {
			return redisbus.Open(t.Context(), config)
		}
		return shards.Open(t.Context(), config, n)
	}
	refused := func(n int, says string) {
		t.Helper()
		if _, err := open(n); !errors.Is(err, redisbus.ErrShards) || !strings.Contains(err.Error(), says) {
			t.Errorf("open with %d shards: %v, want %q", n, err, says)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var fence int64
	for round, n := range []int{1, 4, 3, 1} {
		b, err := open(n)
		ok(err)
		for k := range 10 {
			m := bus.Message{ID: fmt.Sprint(round, "/", k), Key: fmt.Sprint("k", k), Body: []byte("x")}
			ok(b.Publish(t.Context(), inbound, m))
			m.ID = fmt.Sprint(round-1, "/", k)
			if round > 0 {
				ok(b.Publish(t.Context(), inbound, m)) // the id is known, so the message is dropped
			}
		}
		ok(b.Close())
		refused(n+1, "start with [bus] shards = "+fmt.Sprint(n))
		if n > 1 {
			_, err := redisbus.Open(t.Context(), config)
			if !errors.Is(err, redisbus.ErrShards) {
				t.Errorf("opened as a whole: %v", err)
			}
		}
		b, err = open(n)
		ok(err)
		highest := fence
		for range 10 {
			l, err := b.Claim(t.Context(), inbound)
			ok(err)
			if l.Claim().Fence <= fence {
				t.Errorf("round %d: fence %d is not above %d", round, l.Claim().Fence, fence)
			}
			highest = max(highest, l.Claim().Fence)
			mail, err := l.Mail(t.Context(), 0)
			ok(err)
			if len(mail) != 1 {
				t.Errorf("round %d: mail %v", round, mail)
			}
			ok(l.Settle(t.Context(), bus.End{Done: mail[0].Seq}))
		}
		fence = highest
		refused(n+1, "processes that have it open")
		ok(b.Close())
	}
}

// What another bus contains can be imported into shards, also if an import begins again: each message is then in the shard of
// its mailbox, and its id is known there.
func TestImportIntoShards(t *testing.T) {
	t.Parallel()
	r := &rig{T: t}
	config := redisbus.Config{URL: redistest.New(t).URL(), Lease: testLease}
	r.ok("prepare", shards.Prepare(t.Context(), config, shardCount))
	b, err := shards.Open(t.Context(), config, shardCount)
	r.ok("open", err)
	t.Cleanup(func() { r.ok("close", b.Close()) })
	const keys = 12
	day := time.Now().UnixMicro() / (24 * time.Hour).Microseconds()
	dead := message(99, "gone")
	dead.Reason, dead.BuriedAt, dead.Attempts = "no answer", time.Now(), 3
	var in *shards.Importer
	for range 2 {
		in, err = shards.NewImporter(t.Context(), b, "move")
		r.ok("look", err)
		r.ok("begin", in.Begin(t.Context(), time.Now().Add(time.Minute).UnixMicro()))
		for n := range int64(2 * keys) {
			r.ok("take", in.AddMessage(t.Context(), message(n+1, fmt.Sprint("k", n%keys))))
		}
		r.ok("inter", in.AddDead(t.Context(), dead))
		r.ok("know", in.AddKnown(t.Context(), inbound, day, []string{"old"}))
	}
	r.ok("wait", in.AwaitDurable(t.Context()))
	read := 0
	for _, err := range in.Messages(t.Context()) {
		r.ok("read", err)
		read++
	}
	if read != 2*keys {
		t.Errorf("the importer reads %d messages, want %d", read, 2*keys)
	}
	if letters, err := b.DeadLetters(t.Context(), inbound, "", 10); err != nil || len(letters) != 1 || letters[0].Message.ID != dead.Message.ID {
		t.Errorf("dead letters are %v, %v", letters, err)
	}
	for _, id := range []string{"old", "m1"} { // known, and dropped
		r.ok("publish", b.Publish(t.Context(), inbound, bus.Message{ID: id, Key: "k0", Body: []byte("again")}))
	}
	for range keys {
		l, err := b.Claim(t.Context(), inbound)
		r.ok("claim", err)
		mail, err := l.Mail(t.Context(), 0)
		r.ok("mail", err)
		if len(mail) != 2 || fmt.Sprint("k", idNumber(mail[0])-1) != l.Claim().Key || idNumber(mail[1])-idNumber(mail[0]) != keys {
			t.Fatalf("%s has %v", l.Claim().Key, mail)
		}
		r.ok("settle", l.Settle(t.Context(), bus.End{Done: mail[1].Seq}))
	}
	if _, err := shards.NewImporter(t.Context(), b, "another"); !errors.Is(err, redisbus.ErrOccupied) {
		t.Errorf("another import: %v, want ErrOccupied", err)
	}
}

// idNumber returns the number in the id of a message that message has made.
func idNumber(m bus.Message) (n int) {
	_, _ = fmt.Sscanf(m.ID, "m%d", &n)
	return n
}
