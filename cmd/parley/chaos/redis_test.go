package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/redisbus/cluster"
	"parley/bus/redisbus/redistest"
	"parley/bus/redisbus/shards"
)

var chaosBus = flag.String("chaos.bus", "", "on what the bus is: sentinel, or cluster; one Redis otherwise")

// shardCount is the default number of the bus's shards on a Redis Cluster.
const shardCount = 16

// redisServers is the Redis, or the group of Redis servers, of a fleet's bus.
type redisServers interface {
	URL() string
	// Clients returns connections to all masters.
	Clients() []*redis.Client
	// Break breaks the server, or one of the group, in a random way. It returns what it did, and a function that
	// repairs the server.
	Break(random *rand.Rand) (what string, mend func() error)
}

// startRedis starts one Redis or, if over is sentinel or cluster, such a group of servers.
func startRedis(t *testing.T, over string) redisServers {
	t.Helper()
	switch over {
	case "":
		return &oneRedis{redistest.New(t), t}
	case "sentinel":
		return &trio{redistest.NewTrio(t), t}
	case "cluster":
		return &sextet{redistest.NewCluster(t), t}
	}
	t.Fatalf("-chaos.bus is %q: it has to be sentinel or cluster, or empty", over)
	return nil
}

// openBus opens another connection to the fleet's bus.
func (f *fleet) openBus() interface {
	bus.Bus
	bus.Inspector
	bus.DeadLetters
	bus.Forgetter
	Close() error
} {
	f.T.Helper()
	c := redisbus.Config{URL: f.redis.URL(), Prefix: fleetPrefix}
	if _, ok := f.redis.(*sextet); ok {
		b, err := shards.Open(f.T.Context(), c, shardCount)
		if err != nil {
			f.T.Fatal(err)
		}
		return b
	}
	b, err := redisbus.Open(f.T.Context(), c)
	if err != nil {
		f.T.Fatal(err)
	}
	return b
}

// A redisKey is a key of the bus.
type redisKey struct {
	client *redis.Client // connected to the server that has the key
	name   string
}

// short returns the key without the prefix that its shard shares.
func (k redisKey) short() string {
	_, short, _ := strings.Cut(k.name, "}:")
	return short
}

// busKeys returns all keys of the bus.
func (f *fleet) busKeys() (keys []redisKey) {
	f.T.Helper()
	for _, c := range f.redis.Clients() {
		scan := c.Scan(context.Background(), 0, fleetPrefix+":*", 1000).Iterator()
		for scan.Next(context.Background()) {
			keys = append(keys, redisKey{c, scan.Val()})
		}
		if err := scan.Err(); err != nil {
			f.T.Fatal(err)
		}
	}
	return keys
}

// keys returns the bus's keys in Redis, without the prefixes.
func (f *fleet) keys() (keys []string) {
	f.T.Helper()
	for _, k := range f.busKeys() {
		keys = append(keys, k.short())
	}
	return keys
}

// breakServer kills a server, or pauses it for longer than a lease. The function that it returns repairs the server.
func breakServer(t testing.TB, s *redistest.Server, random *rand.Rand) (what string, mend func() error) {
	away := time.Duration(random.Int64N(int64(3 * time.Second)))
	if random.IntN(2) == 0 {
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
		return "killed", func() error { <-time.After(away); return s.Restart() }
	}
	s.Signal(t, syscall.SIGSTOP)
	return "stopped", func() error {
		<-time.After(pauseLength(random))
		s.Signal(t, syscall.SIGCONT)
		return nil
	}
}

// oneRedis is a single Redis server.
type oneRedis struct {
	*redistest.Server
	t *testing.T
}

func (o *oneRedis) Clients() []*redis.Client { return []*redis.Client{o.Client(o.t)} }

func (o *oneRedis) Break(random *rand.Rand) (string, func() error) {
	what, mend := breakServer(o.t, o.Server, random)
	return what + " Redis", mend
}

// A trio is a group with Sentinels. It breaks its master, or makes the Sentinels replace the master. Only one server is
// away at a time, because a group of two data servers survives no more.
type trio struct {
	*redistest.Trio
	t *testing.T
}

func (x *trio) Clients() []*redis.Client { return []*redis.Client{x.Master(x.t).Client(x.t)} }

func (x *trio) Break(random *rand.Rand) (string, func() error) {
	if random.IntN(3) == 0 {
		// The Sentinel refuses if an earlier failover is not over.
		_ = x.Trio.Clients[0].Failover(x.t.Context(), redistest.MasterName).Err()
		return "had a master of Redis replaced", x.awaitWhole
	}
	what, mend := breakServer(x.t, x.Master(x.t), random)
	return what + " the master of Redis", func() error {
		err := mend()
		if err == nil {
			err = x.awaitWhole()
		}
		return err
	}
}

func (x *trio) awaitWhole() error {
	x.AwaitReplica(x.t)
	return nil
}

// A sextet is a Redis Cluster. It breaks one of its masters, makes a replica replace a master, or moves a slot of a
// shard.
type sextet struct {
	*redistest.Cluster
	t *testing.T
}

func (x *sextet) Clients() []*redis.Client { return x.Masters(x.t) }

func (x *sextet) Break(random *rand.Rand) (string, func() error) {
	tags := cluster.Tags(shardCount)
	slot := cluster.Slot(tags[random.IntN(len(tags))])
	master := x.Owner(x.t, slot)
	whole := func() error { x.AwaitReplicas(x.t); return nil }
	switch random.IntN(4) {
	case 0:
		_ = x.Cluster.Clients[x.Replica(x.t, master)].ClusterFailover(x.t.Context()).Err() // refused while it is not ready
		return "had a master of the Cluster replaced", whole
	case 1:
		for _, to := range x.owners() {
			if to != master {
				x.Move(x.t, slot, master, to)
				return "moved a shard in the Cluster", whole
			}
		}
	}
	what, mend := breakServer(x.t, x.Nodes[master], random)
	return what + " a master of the Cluster", func() error {
		err := mend()
		if err == nil {
			err = whole()
		}
		return err
	}
}

// owners returns the nodes that are masters.
func (x *sextet) owners() (masters []int) {
	for _, slot := range []int{0, 5461, 10923} {
		masters = append(masters, x.Owner(x.t, slot))
	}
	return masters
}

// A fleet whose bus is on a Redis Cluster loses no message and does nothing twice while masters are killed, paused and
// replaced, and shards move.
func TestFleetOverACluster(t *testing.T) {
	t.Parallel()
	s := newStorm(fullFleetOver(t, "cluster"), stormSeed, 12, 4, 4*time.Second)
	s.run(5*time.Minute, breakMembers, breakServers)
	a := s.audit()
	t.Logf("%s", a)
	for _, wrong := range a.violations {
		t.Error(wrong)
	}
	for _, how := range s.unexpected { // such as starts while PostgreSQL was away
		t.Logf("ended by itself: %s", how)
	}
}
