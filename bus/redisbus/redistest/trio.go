package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name of the master in the Sentinels' settings.
const MasterName = "mail"

// A Trio is a group of three Sentinels that watch a master and a replica.
type Trio struct {
	Nodes     []*Server // the first is the first master
	Sentinels []*Server
	Clients   []*redis.SentinelClient
}

// NewTrio starts a Trio, and waits until the Sentinels could replace the master. more are arguments of the nodes.
func NewTrio(t testing.TB, more ...string) *Trio {
	t.Helper()
	args := append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, more...)
	x := &Trio{Nodes: []*Server{New(t, args...)}}
	x.Nodes = append(x.Nodes, New(t, append(args, "--replicaof", "127.0.0.1 "+x.Nodes[0].Port)...))
	master := x.Nodes[0].Client(t)
	await(t, "the replica", func() bool { return x.Replicas(t, master) == 1 })
	for range 3 {
		s := NewSentinel(t, x.Nodes[0].Port)
		x.Sentinels = append(x.Sentinels, s)
		c := redis.NewSentinelClient(&redis.Options{Addr: "127.0.0.1:" + s.Port, Protocol: 2})
		t.Cleanup(func() { _ = c.Close() }) // the Sentinel may be gone
		x.Clients = append(x.Clients, c)
	}
	for _, c := range x.Clients {
		await(t, "the Sentinels to know one another", func() bool {
			said, err := c.Master(t.Context(), MasterName).Result()
			return err == nil && said["num-other-sentinels"] == "2" && said["num-slaves"] == "1" && said["flags"] == "master"
		})
	}
	return x
}

// NewSentinel starts a Sentinel that watches the master at a port. more are lines of its settings.
func NewSentinel(t testing.TB, master string, more ...string) *Server {
	t.Helper()
	s, err := newServer("+monitor master")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %s 2\n"+
		"sentinel down-after-milliseconds %s 2000\nsentinel failover-timeout %s 6000\n", s.Port, s.dir, MasterName, master, MasterName, MasterName) +
		strings.Join(more, "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = []string{file, "--sentinel"}
	return s.removedAfter(t, s.Restart())
}

// Replicas returns how many replicas are connected to a master.
func (x *Trio) Replicas(t testing.TB, c *redis.Client) int {
	t.Helper()
	info, _ := c.Info(t.Context(), "replication").Result() // the master may be away
	return strings.Count(info, "state=online")
}

// URL returns the address of the Trio.
func (x *Trio) URL() string {
	var hosts []string
	for _, s := range x.Sentinels {
		hosts = append(hosts, "127.0.0.1:"+s.Port)
	}
	return "redis+sentinel://" + strings.Join(hosts, ",") + "/" + MasterName
}

// Master returns the node that the first Sentinel names as the master.
func (x *Trio) Master(t testing.TB) *Server {
	t.Helper()
	said, err := x.Clients[0].GetMasterAddrByName(t.Context(), MasterName).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.Nodes {
		if s.Port == said[1] {
			return s
		}
	}
	t.Fatalf("the master is at %v", said)
	return nil
}

// AwaitMaster waits until the Sentinels name another master.
func (x *Trio) AwaitMaster(t testing.TB, than *Server) {
	t.Helper()
	for i := range x.Clients {
		await(t, "another master", func() bool {
			said, err := x.Clients[i].GetMasterAddrByName(t.Context(), MasterName).Result()
			return err == nil && said[1] != than.Port
		})
	}
}

// AwaitReplica waits until the master's replica is connected.
func (x *Trio) AwaitReplica(t testing.TB) {
	t.Helper()
	c := x.Master(t).Client(t)
	await(t, "the old master to be the replica", func() bool { return x.Replicas(t, c) == 1 })
}
