package redisbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/redisbus/sentinel"
)

// ErrUnfit says that a Redis server, as it is configured, must not be trusted with mail.
var ErrUnfit = errors.New("this Redis isn't fit to keep mail")

// textCluster says what to do instead of using Redis Cluster.
const textCluster = "Redis Cluster isn't supported: use one Redis (redis://) or one with replicas and Sentinels (redis+sentinel://); set cluster-enabled no in redis.conf"

// A Server describes a Redis server.
type Server struct {
	Version string // the version of Redis, or the one that another server claims to be
	Policy  string // maxmemory-policy
	AOF     bool   // whether it writes an append-only file
	Mode    string // standalone, cluster or sentinel; "" if the server does not tell
	// Skew is about how far the server's clock is ahead of this machine's.
	Skew time.Duration
}

// CheckFit returns nil, or an ErrUnfit that says which setting must be changed.
func (s Server) CheckFit() error {
	switch s.Mode {
	case "cluster":
		return fmt.Errorf("%w: %s", ErrUnfit, textCluster)
	case "sentinel":
		return fmt.Errorf("%w: it's a Sentinel, which stores nothing: write redis+sentinel://HOST:PORT,HOST:PORT/NAME, with all Sentinels and the name that they use for the master", ErrUnfit)
	}
	var major, minor int
	if _, err := fmt.Sscanf(s.Version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("%w: its version is %q; use Redis 6.2 or newer", ErrUnfit, s.Version)
	}
	if major < 6 || major == 6 && minor < 2 {
		return fmt.Errorf("%w: it's version %s; use Redis 6.2 or newer", ErrUnfit, s.Version)
	}
	if s.Policy != "noeviction" {
		return fmt.Errorf("%w: its maxmemory-policy is %s, which throws mail away when memory runs short; set maxmemory-policy to noeviction", ErrUnfit, s.Policy)
	}
	return nil
}

// Inspect reads the description of a server, so that it can be checked before Open does so.
func Inspect(ctx context.Context, address string) (Server, error) {
	d, err := newDialer(Config{URL: address})
	if err != nil {
		return Server{}, err
	}
	client := redis.NewClient(d.options)
	s, err := inspect(ctx, client)
	return s, errors.Join(err, client.Close(), d.close())
}

// inspect reads the description of a server. It waits while the server loads its data.
func inspect(ctx context.Context, client *redis.Client) (s Server, err error) {
	for loading := true; loading; {
		info, err := client.Info(ctx).Result()
		if err != nil {
			return s, fmt.Errorf("ask redis about itself: %w", err)
		}
		if s, loading = readInfo(info); loading {
			select {
			case <-ctx.Done():
				return s, fmt.Errorf("wait for redis to load its data: %w", ctx.Err())
			case <-time.After(jitter(longRetry)):
			}
		}
	}
	if s.Mode == "sentinel" {
		return s, nil // it has no clock to ask for
	}
	start := time.Now()
	now, err := client.Time(ctx).Result()
	if err != nil {
		return s, fmt.Errorf("ask redis for the time: %w", err)
	}
	s.Skew = now.Sub(start.Add(time.Since(start) / 2))
	return s, nil
}

// readInfo reads the server's description from its answer to INFO. loading says that the
// server is still loading its data.
func readInfo(info string) (s Server, loading bool) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			s.Version = value
		case "redis_mode":
			s.Mode = value
		case "cluster_enabled":
			if value == "1" {
				s.Mode = "cluster"
			}
		case "maxmemory_policy":
			s.Policy = value
		case "aof_enabled":
			s.AOF = value == "1"
		case "loading":
			loading = value == "1"
		}
	}
	return s, loading
}

// Timeouts, and the size of the pool of connections.
const (
	dialTimeout = 2 * time.Second
	callTimeout = 3 * time.Second
	dialRetry   = 100 * time.Millisecond
	// After as many failed dials as the pool has places, go-redis dials only once a
	// second. Leases cannot wait for that, so the pool is large. Few of its places
	// are ever used.
	poolSize = 4096
)

// Health is what Probe finds out about a server, in addition to what Inspect does.
type Health struct {
	Server
	// Fsync is appendfsync: always, everysec or no; "" if the server does not tell.
	Fsync      string
	AOFFails   bool   // whether it could not write its append-only file when it last tried
	Replica    bool   // whether it is a replica of another server
	UsedMemory int64  // bytes in use
	MaxMemory  int64  // maxmemory; 0 means no limit
	Group      *Group // nil without Sentinels
}

// A Group is what Sentinels watch: a master and its replicas.
type Group struct {
	sentinel.View
	Online int // how many replicas are connected to the master
}

// Probe reads the description and the health of a server. It changes nothing.
func Probe(ctx context.Context, address string) (h Health, err error) {
	d, err := newDialer(Config{URL: address})
	if err != nil {
		return h, err
	}
	client := redis.NewClient(d.options)
	defer func() { err = errors.Join(err, client.Close(), d.close()) }()
	if h.Server, err = inspect(ctx, client); err != nil {
		return h, err
	}
	info, err := client.Info(ctx).Result()
	if err != nil {
		return h, fmt.Errorf("ask redis about itself: %w", err)
	}
	h.read(info)
	if d.finder != nil {
		view, err := d.finder.View(ctx)
		if err != nil {
			return h, fmt.Errorf("ask the Sentinels: %w", err)
		}
		h.Group = &Group{View: view, Online: countReplicas(info)}
	}
	// A rented server may refuse CONFIG.
	answer, err := client.ConfigGet(ctx, "appendfsync").Result()
	if err != nil && !isServerAnswer(err) {
		return h, fmt.Errorf("ask redis how it writes: %w", err)
	}
	h.Fsync = answer["appendfsync"]
	return h, nil
}

// read fills in the fields of h that readInfo does not, from the server's answer to INFO.
func (h *Health) read(info string) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "role":
			h.Replica = value != "master"
		case "aof_last_write_status":
			h.AOFFails = value != "ok"
		case "used_memory":
			h.UsedMemory, _ = strconv.ParseInt(value, 10, 64) // 0 if it cannot be read
		case "maxmemory":
			h.MaxMemory, _ = strconv.ParseInt(value, 10, 64)
		}
	}
}
