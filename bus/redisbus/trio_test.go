package redisbus_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/redisbus"
	"parley/tools/testlog"
)

// masterName is what the Sentinels call the master.
const masterName = "mail"

// A trio is three Sentinels over a master and a replica, all of them real.
type trio struct {
	nodes     []*server // the first is the first master
	sentinels []*server
	clients   []*redis.SentinelClient
}

// startTrio starts a trio, and waits until the Sentinels could replace the master. settings are those of
// Redis and of the Sentinels, by lines.
func startTrio(t testing.TB, more ...string) *trio {
	t.Helper()
	args := append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, more...)
	x := &trio{nodes: []*server{ownServer(t, args...)}}
	x.nodes = append(x.nodes, ownServer(t, append(args, "--replicaof", "127.0.0.1 "+x.nodes[0].port)...))
	master := connect(t, x.nodes[0].url())
	bustest.Await(t, "the replica", func() bool { return x.replicas(t, master) == 1 })
	for range 3 {
		s, err := startSentinel(x.nodes[0].port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.remove(); err != nil {
				t.Error(err)
			}
		})
		x.sentinels = append(x.sentinels, s)
		c := redis.NewSentinelClient(&redis.Options{Addr: "127.0.0.1:" + s.port, Protocol: 2})
		t.Cleanup(func() { _ = c.Close() })
		x.clients = append(x.clients, c)
	}
	for _, c := range x.clients {
		bustest.Await(t, "the Sentinels to know one another", func() bool {
			said, err := c.Master(t.Context(), masterName).Result()
			return err == nil && said["num-other-sentinels"] == "2" && said["num-slaves"] == "1" && said["flags"] == "master"
		})
	}
	return x
}

// replicas returns how many replicas are in touch with a master.
func (x *trio) replicas(t testing.TB, c *redis.Client) int {
	t.Helper()
	info, _ := c.Info(t.Context(), "replication").Result() // it may be away
	return strings.Count(info, "state=online")
}

// startSentinel starts a Sentinel over the master at a port.
func startSentinel(master string, more ...string) (*server, error) {
	name, err := program()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sentinel")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %s 2\n"+
		"sentinel down-after-milliseconds %s 2000\nsentinel failover-timeout %s 6000\n", port, dir, masterName, master, masterName, masterName) +
		strings.Join(more, "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &server{dir: dir, port: port}
	return s, s.run("+monitor master", name, file, "--sentinel")
}

// url is the address of the trio.
func (x *trio) url() string {
	var hosts []string
	for _, s := range x.sentinels {
		hosts = append(hosts, "127.0.0.1:"+s.port)
	}
	return "redis+sentinel://" + strings.Join(hosts, ",") + "/" + masterName
}

// master is the node that the first Sentinel names.
func (x *trio) master(t testing.TB) *server {
	t.Helper()
	said, err := x.clients[0].GetMasterAddrByName(t.Context(), masterName).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.nodes {
		if s.port == said[1] {
			return s
		}
	}
	t.Fatalf("the master is at %v", said)
	return nil
}

// awaitMaster waits until the Sentinels name another master than this.
func (x *trio) awaitMaster(t testing.TB, than *server) {
	t.Helper()
	for i := range x.clients {
		bustest.Await(t, "another master", func() bool {
			said, err := x.clients[i].GetMasterAddrByName(t.Context(), masterName).Result()
			return err == nil && said[1] != than.port
		})
	}
}

// awaitReplica waits until the master has its replica.
func (x *trio) awaitReplica(t testing.TB) {
	t.Helper()
	c := connect(t, x.master(t).url())
	bustest.Await(t, "the old master to be the replica", func() bool { return x.replicas(t, c) == 1 })
}

// trioRig is a rig whose buses find their server by Sentinels.
func trioRig(t *testing.T, x *trio, prefix string) *rig {
	t.Helper()
	r := &rig{T: t, network: newNetwork(), log: new(testlog.Buffer), redis: connect(t, x.url())}
	b, err := redisbus.Open(t.Context(), redisbus.Dialed(redisbus.Config{
		URL: x.url(), Prefix: prefix, Lease: testLease, Log: slog.New(slog.NewTextHandler(r.log, nil)),
	}, r.network.dial))
	r.ok("open", err)
	r.Bus = b
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// With Sentinels the bus keeps all its promises.
func TestSentinels(t *testing.T) {
	t.Parallel()
	x := startTrio(t)
	os.Setenv(sentinelEnv, x.url()) // the suite's child processes need it
	h := harness()
	h.NewPlace = func(t testing.TB) string { return testPrefix(t, behindSentinels) }
	bustest.Run(t, h)
}

// When the master is replaced in the middle of traffic, nothing that was accepted is lost, and
// nothing that was settled comes again.
func TestMasterIsReplaced(t *testing.T) {
	t.Parallel()
	x := startTrio(t)
	r := trioRig(t, x, "parley")
	traffic := newTraffic(r)
	began := time.Now()
	traffic.during(func() {
		for _, replace := range []func(old *server){
			func(*server) { r.ok("failover", x.clients[0].Failover(t.Context(), masterName).Err()) },
			func(old *server) { r.ok("kill", old.kill()) },
		} {
			traffic.more(400)
			old := x.master(t)
			start := time.Now()
			replace(old)
			x.awaitMaster(t, old)
			promoted := time.Since(start)
			traffic.more(400)
			t.Logf("another master after %v, and 400 more messages after %v", promoted, time.Since(start))
			if old.cmd.ProcessState != nil {
				r.ok("start", old.start())
			}
			x.awaitReplica(t)
		}
		traffic.more(400)
	})
	t.Logf("%d messages in %v, with two failovers", traffic.count(), time.Since(began))
	r.idle()
}

// A master that has lost its last replica goes on alone, also as another process, and waits for a replica again
// once it has one.
func TestMasterGoesOnAlone(t *testing.T) {
	t.Parallel()
	x := startTrio(t)
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
	r.ok("kill the replica", x.nodes[1].kill())
	accepts("alone")
	logged("redis has no replica in touch", 1)
	r.ok("kill the master", x.nodes[0].kill())
	r.ok("start it", x.nodes[0].start())
	accepts("as another process")
	r.ok("start the replica", x.nodes[1].start())
	x.awaitReplica(t)
	logged("redis has a replica again", 1)
	accepts("with a replica again")
	r.finish(r.claim("k"), "with a replica", "alone", "as another process", "with a replica again")
}

// isLate reports whether a server has not answered in time, as may happen on a busy machine.
func isLate(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "deadline exceeded") || strings.Contains(err.Error(), "i/o timeout"))
}

// What is wrong with the address of Sentinels is said in words.
func TestSentinelsRefuse(t *testing.T) {
	t.Parallel()
	node := ownServer(t, "--requirepass", "of-redis")
	start := func(more ...string) string {
		s, err := startSentinel(node.port, more...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.remove(); err != nil {
				t.Error(err)
			}
		})
		return "127.0.0.1:" + s.port
	}
	at, locked, wrongPort := start(), start("requirepass of-sentinel"), "127.0.0.1:"+ownServer(t).port
	var opening sync.WaitGroup
	for address, says := range map[string]string{
		"redis+sentinel://" + at + "/other":                                      at + `: it knows no master "other"`,
		"redis+sentinel://" + wrongPort + "/mail":                                wrongPort + ": this isn't a Sentinel",
		"redis+sentinel://127.0.0.1:1/mail":                                      "127.0.0.1:1: dial tcp 127.0.0.1:1",
		"redis+sentinel://" + at + "/mail":                                       "NOAUTH",
		"redis+sentinel://:no@" + at + "/mail":                                   "WRONGPASS",
		"redis://" + at:                                                          "redis+sentinel://",
		"redis+sentinel://:of-redis@" + at + "?db=1":                             "the name that they use for the master",
		"redis+cluster://:of-redis@" + at:                                        "Redis Cluster isn't supported",
		"redis+sentinel://" + at + "/mail?no_such=1":                             "no_such",
		"redis+sentinel://:of-redis@" + locked + "/mail":                         "this Sentinel needs a password, which isn't the one for Redis",
		"redis+sentinel://:of-redis@" + locked + "/mail?sentinel_password=wrong": "this Sentinel doesn't accept",
	} {
		opening.Go(func() { // each takes as long as a dial may
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

// A node of a Redis Cluster is refused.
func TestClusterIsRefused(t *testing.T) {
	t.Parallel()
	s := ownServer(t, "--cluster-enabled", "yes")
	if _, err := redisbus.Open(t.Context(), redisbus.Config{URL: s.url()}); !errors.Is(err, redisbus.ErrUnfit) || !strings.Contains(err.Error(), "cluster-enabled no") {
		t.Errorf("open: %v", err)
	}
	if h, err := redisbus.Probe(t.Context(), s.url()); err != nil || h.Mode != "cluster" {
		t.Errorf("probe: %+v, %v", h, err)
	}
}
