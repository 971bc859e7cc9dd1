package redisbus_test

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/redisbus"
	"parley/bus/redisbus/redistest"
	"parley/tools/testlog"
)

// trioRig returns a rig whose buses find their server through Sentinels.
func trioRig(t *testing.T, x *redistest.Trio, prefix string) *rig {
	t.Helper()
	r := &rig{T: t, network: newNetwork(), log: new(testlog.Buffer), redis: connect(t, x.URL())}
	b, err := redisbus.Open(t.Context(), redisbus.Config{
		URL: x.URL(), Prefix: prefix, Lease: testLease, Log: slog.New(slog.NewTextHandler(r.log, nil)), Dial: r.network.dial,
	})
	r.ok("open", err)
	r.Bus = b
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// Through Sentinels, the bus keeps all its promises.
func TestSentinels(t *testing.T) {
	t.Parallel()
	x := redistest.NewTrio(t)
	os.Setenv(sentinelEnv, x.URL()) // the suite's child processes need it
	h := harness()
	h.NewPlace = func(t testing.TB) string { return testPrefix(t, behindSentinels) }
	bustest.Run(t, h)
}

// When the master is replaced during traffic, no accepted message is lost, and no settled message returns.
func TestMasterIsReplaced(t *testing.T) {
	t.Parallel()
	x := redistest.NewTrio(t)
	r := trioRig(t, x, "parley")
	traffic := newTraffic(r)
	began := time.Now()
	traffic.during(func() {
		for _, replace := range []func(old *redistest.Server){
			func(*redistest.Server) {
				r.ok("failover", x.Clients[0].Failover(t.Context(), redistest.MasterName).Err())
			},
			func(old *redistest.Server) { r.ok("kill", old.Kill()) },
		} {
			traffic.more(400)
			old := x.Master(t)
			start := time.Now()
			replace(old)
			x.AwaitMaster(t, old)
			promoted := time.Since(start)
			traffic.more(400)
			t.Logf("another master after %v, and 400 more messages after %v", promoted, time.Since(start))
			if old.IsDead() {
				r.ok("start", old.Restart())
			}
			x.AwaitReplica(t)
		}
		traffic.more(400)
	})
	t.Logf("%d messages in %v, with two failovers", traffic.count(), time.Since(began))
	r.idle()
}

// A master that has lost its last replica continues alone, even for a new process, and waits for a replica again once
// it has one.
func TestMasterGoesOnAlone(t *testing.T) {
	t.Parallel()
	x := redistest.NewTrio(t)
	r := trioRig(t, x, "parley")
	accepts := func(id string) {
		r.await(id+" to be accepted", func() bool {
			return r.Publish(t.Context(), inbound, bus.Message{ID: id, Key: "k", Body: []byte("x")}) == nil
		})
	}
	logged := func(said string, times int) {
		r.await(fmt.Sprint(times, " lines: ", said), func() bool { return strings.Count(r.log.String(), said) == times })
	}
	accepts("with a replica")
	r.ok("kill the replica", x.Nodes[1].Kill())
	accepts("alone")
	logged("redis has no replica in touch", 1)
	r.ok("kill the master", x.Nodes[0].Kill())
	r.ok("start it", x.Nodes[0].Restart())
	accepts("as another process")
	r.ok("start the replica", x.Nodes[1].Restart())
	x.AwaitReplica(t)
	logged("redis has a replica again", 1)
	accepts("with a replica again")
	r.finish(r.claim("k"), "with a replica", "alone", "as another process", "with a replica again")
}

// isLate reports whether the error means that a server didn't answer in time, as happens on a busy machine.
func isLate(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "deadline exceeded") || strings.Contains(err.Error(), "i/o timeout"))
}

// The error for each wrong address of Sentinels explains the problem.
func TestSentinelsRefuse(t *testing.T) {
	t.Parallel()
	node := redistest.New(t, "--requirepass", "of-redis")
	start := func(more ...string) string {
		return "127.0.0.1:" + redistest.NewSentinel(t, node.Port, more...).Port
	}
	at, locked, wrongPort := start(), start("requirepass of-sentinel"), "127.0.0.1:"+redistest.New(t).Port
	var opening sync.WaitGroup
	for address, says := range map[string]string{
		"redis+sentinel://" + at + "/other":                                      at + `: it knows no master "other"`,
		"redis+sentinel://" + wrongPort + "/mail":                                wrongPort + ": this isn't a Sentinel",
		"redis+sentinel://127.0.0.1:1/mail":                                      "127.0.0.1:1: dial tcp 127.0.0.1:1",
		"redis+sentinel://" + at + "/mail":                                       "NOAUTH",
		"redis+sentinel://:no@" + at + "/mail":                                   "WRONGPASS",
		"redis://" + at:                                                          "redis+sentinel://",
		"redis+sentinel://:of-redis@" + at + "?db=1":                             "the name that they use for the master",
		"redis+cluster://:of-redis@" + at:                                        "who serves slot",
		"redis+sentinel://" + at + "/mail?no_such=1":                             "no_such",
		"redis+sentinel://:of-redis@" + locked + "/mail":                         "this Sentinel needs a password, which isn't the one for Redis",
		"redis+sentinel://:of-redis@" + locked + "/mail?sentinel_password=wrong": "this Sentinel doesn't accept",
	} {
		opening.Go(func() { // each takes as long as a dial may take
			_, err := redisbus.Open(t.Context(), redisbus.Config{URL: address})
			for tries := 0; tries < 20 && isLate(err); tries++ {
				_, err = redisbus.Open(t.Context(), redisbus.Config{URL: address})
			}
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "of-redis") {
				t.Errorf("%s: %v, want %q", address, err, says)
			}
		})
	}
	opening.Wait()
}
