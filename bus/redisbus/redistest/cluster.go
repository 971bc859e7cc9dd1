package redistest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A Cluster is a Redis Cluster of three masters and a replica of each.
type Cluster struct {
	Nodes   []*Server // the first three are the first masters
	Clients []*redis.Client
	IDs     []string
}

// NewCluster starts a Cluster, and waits until its nodes are able to replace a master.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	x := &Cluster{}
	for range 6 {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		s := New(t, "--cluster-enabled", "yes", "--cluster-port", port, "--cluster-node-timeout", "4000",
			"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
		c := s.Client(t)
		x.Nodes, x.Clients = append(x.Nodes, s), append(x.Clients, c)
		id, err := c.Do(t.Context(), "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		x.IDs = append(x.IDs, id)
		if err := x.Clients[0].Do(t.Context(), "cluster", "meet", "127.0.0.1", s.Port, port).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, slots := range [][2]int{{0, 5460}, {5461, 10922}, {10923, 16383}} {
		if err := x.Clients[i].ClusterAddSlotsRange(t.Context(), slots[0], slots[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		await(t, "a replica to know its master", func() bool {
			return x.Clients[3+i].ClusterReplicate(t.Context(), x.IDs[i]).Err() == nil
		})
	}
	x.AwaitReplicas(t)
	return x
}

// AwaitReplicas waits until all nodes agree, and each master's replica is connected.
func (x *Cluster) AwaitReplicas(t testing.TB) {
	t.Helper()
	for _, c := range x.Clients {
		await(t, "the Cluster to be whole", func() bool {
			info, err := c.ClusterInfo(t.Context()).Result()
			about, failed := c.Info(t.Context(), "replication").Result()
			nodes, unknown := c.ClusterNodes(t.Context()).Result()
			return err == nil && failed == nil && unknown == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, "cluster_known_nodes:6") && strings.Count(nodes, "slave") == 3 && !strings.Contains(nodes, "fail") &&
				(strings.Contains(about, "state=online") || strings.Contains(about, "master_link_status:up"))
		})
	}
}

// URL returns the address of the Cluster, with two of its nodes.
func (x *Cluster) URL() string {
	return "redis+cluster://127.0.0.1:" + x.Nodes[0].Port + ",127.0.0.1:" + x.Nodes[4].Port
}

// Owner returns the index of the node that is the master of a slot: of the masters that claim the slot, the one with the
// highest epoch. It waits until there is one.
func (x *Cluster) Owner(t testing.TB, slot int) (at int) {
	t.Helper()
	await(t, "a master of the slot", func() bool {
		newest := int64(-1)
		for i, c := range x.Clients {
			all, err := c.ClusterSlots(t.Context()).Result() //nolint:staticcheck // Redis 6.2 does not know CLUSTER SHARDS
			info, unknown := c.ClusterInfo(t.Context()).Result()
			if err != nil || unknown != nil || !slices.ContainsFunc(all, func(s redis.ClusterSlot) bool { return has(s, slot, x.IDs[i]) }) {
				continue
			}
			_, rest, _ := strings.Cut(info, "cluster_my_epoch:")
			var epoch int64
			if _, err := fmt.Sscan(rest, &epoch); err == nil && epoch > newest {
				newest, at = epoch, i
			}
		}
		return newest >= 0
	})
	return at
}

// has reports whether a range of slots contains the slot and is the master's with that id.
func has(s redis.ClusterSlot, slot int, id string) bool {
	return s.Start <= slot && slot <= s.End && s.Nodes[0].ID == id
}

// Replica returns the index of the replica of a master.
func (x *Cluster) Replica(t testing.TB, master int) (at int) {
	t.Helper()
	await(t, "a replica", func() bool {
		for i, c := range x.Clients {
			info, _ := c.Info(t.Context(), "replication").Result() // the node may be away
			if strings.Contains(info, "role:slave") && strings.Contains(info, "master_port:"+x.Nodes[master].Port+"\r") {
				at = i
				return true
			}
		}
		return false
	})
	return at
}

// Move moves a slot with all its keys to another master.
func (x *Cluster) Move(t testing.TB, slot, from, to int) {
	t.Helper()
	ctx := t.Context()
	do := func(node int, args ...any) {
		t.Helper()
		if err := x.Clients[node].Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	do(to, "cluster", "setslot", slot, "importing", x.IDs[from])
	do(from, "cluster", "setslot", slot, "migrating", x.IDs[to])
	for {
		keys, err := x.Clients[from].ClusterGetKeysInSlot(ctx, slot, 10).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", "127.0.0.1", x.Nodes[to].Port, "", 0, 5000, "keys"}
		for _, key := range keys {
			args = append(args, key)
		}
		do(from, args...)
	}
	do(to, "cluster", "setslot", slot, "node", x.IDs[to])
	do(from, "cluster", "setslot", slot, "node", x.IDs[to])
	for i := range 3 {
		await(t, "the nodes to agree on the slot", func() bool {
			all, err := x.Clients[i].ClusterSlots(ctx).Result() //nolint:staticcheck // see Owner
			return err == nil && slices.ContainsFunc(all, func(s redis.ClusterSlot) bool { return has(s, slot, x.IDs[to]) })
		})
	}
}

// Masters returns clients of all nodes that are masters now.
func (x *Cluster) Masters(t testing.TB) (masters []*redis.Client) {
	t.Helper()
	for _, c := range x.Clients {
		if info, err := c.Info(t.Context(), "replication").Result(); err == nil && strings.Contains(info, "role:master") {
			masters = append(masters, c)
		}
	}
	return masters
}
