// Package server connects to a Redis server, wherever its master is at the moment, and checks whether mail is safe
// there.
package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnfit says that a Redis server, as it is configured, must not be trusted with mail.
var ErrUnfit = errors.New("this Redis isn't fit to keep mail")

// An Info is how a Redis server describes itself.
type Info struct {
	Version string // the version of Redis, or the one that another server claims to be
	Policy  string // maxmemory-policy
	AOF     bool   // whether it writes an append-only file
	Mode    string // standalone, cluster or sentinel; "" if the server does not tell
	// Clustered says that it was reached by an address of a Cluster.
	Clustered bool
	// Skew is about how far the server's clock is ahead of this machine's.
	Skew time.Duration
}

// CheckFit returns nil, or an ErrUnfit that says which setting must be changed.
func (s Info) CheckFit() error {
	switch {
	case s.Mode == "cluster" && !s.Clustered:
		return fmt.Errorf("%w: it's a node of a Redis Cluster: write redis+cluster://HOST:PORT,HOST:PORT, with some of the nodes", ErrUnfit)
	case s.Mode == "standalone" && s.Clustered:
		return fmt.Errorf("%w: it isn't part of a Redis Cluster: write redis://HOST:PORT, or set cluster-enabled yes in redis.conf and make a Cluster of it", ErrUnfit)
	case s.Mode == "sentinel":
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

// Inspect reads the description of the server at an address, so that it can be checked before a bus is opened.
func Inspect(ctx context.Context, address string) (Info, error) {
	d, err := NewDialer(Options{URL: address})
	if err != nil {
		return Info{}, err
	}
	client := redis.NewClient(d.Options)
	s, err := d.Inspect(ctx, client)
	return s, errors.Join(err, client.Close(), d.Close())
}

// Inspect reads the description of the server that the dialer reaches. It waits while the server loads its data.
func (d *Dialer) Inspect(ctx context.Context, client *redis.Client) (s Info, err error) {
	for loading := true; loading; {
		info, err := client.Info(ctx).Result()
		if err != nil {
			return s, fmt.Errorf("ask redis about itself: %w", err)
		}
		if s, loading = readInfo(info); loading {
			select {
			case <-ctx.Done():
				return s, fmt.Errorf("wait for redis to load its data: %w", ctx.Err())
			case <-time.After(loadingRetry/2 + rand.N(loadingRetry/2)):
			}
		}
	}
	s.Clustered = d.clustered
	if s.Mode == "sentinel" {
		return s, nil // a Sentinel can't tell its time
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
func readInfo(info string) (s Info, loading bool) {
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

// These are the timeouts, and the size of the pool of connections.
const (
	dialTimeout = 2 * time.Second
	callTimeout = 3 * time.Second
	dialRetry   = 50 * time.Millisecond
	// loadingRetry is the wait between two checks whether the server has loaded its data.
	loadingRetry = 250 * time.Millisecond
	// Once as many dials have failed as the pool can hold connections, go-redis dials only once a second. Leases
	// cannot wait for that, so the pool is large. It never holds many.
	poolSize = 4096
)
