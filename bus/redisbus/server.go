package redisbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnfit says that a Redis server must not be trusted with mail as it is set up.
var ErrUnfit = errors.New("redis is not fit to keep mail")

// A Server is what Inspect finds out.
type Server struct {
	Version string // of Redis, or what another server claims to be
	Policy  string // maxmemory-policy
	AOF     bool   // whether it writes an append-only file
	// Skew is how far its clock is ahead of ours, about.
	Skew time.Duration
}

// Fit is nil, or says with ErrUnfit what has to be changed.
func (s Server) Fit() error {
	var major, minor int
	if _, err := fmt.Sscanf(s.Version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("%w: its version is %q; use Redis 6.2 or newer", ErrUnfit, s.Version)
	}
	if major < 6 || major == 6 && minor < 2 {
		return fmt.Errorf("%w: it is version %s; use Redis 6.2 or newer", ErrUnfit, s.Version)
	}
	if s.Policy != "noeviction" {
		return fmt.Errorf("%w: its maxmemory-policy is %s, which throws mail away when memory runs short; set maxmemory-policy to noeviction", ErrUnfit, s.Policy)
	}
	return nil
}

// Inspect asks a server what Open asks it, for those who want to know before.
func Inspect(ctx context.Context, address string) (Server, error) {
	options, err := parse(Config{URL: address})
	if err != nil {
		return Server{}, err
	}
	client := redis.NewClient(options)
	s, err := inspect(ctx, client)
	return s, errors.Join(err, client.Close())
}

// inspect waits while the server reads its data from disk.
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
	start := time.Now()
	now, err := client.Time(ctx).Result()
	if err != nil {
		return s, fmt.Errorf("ask redis for the time: %w", err)
	}
	s.Skew = now.Sub(start.Add(time.Since(start) / 2))
	return s, nil
}

// readInfo reads the answer to INFO.
func readInfo(info string) (s Server, loading bool) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			s.Version = value
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

// Timeouts of one call. A bus retries by itself, and knows better than the
// client what may be sent twice.
const (
	dialTimeout = 2 * time.Second
	callTimeout = 3 * time.Second
	dialRetry   = 100 * time.Millisecond
	// After as many failures to connect as the pool is large the client tries
	// once a second only. That is not soon enough for leases, so it is large;
	// there are few connections all the same.
	poolSize = 4096
)

// parse reads the address; its errors do not repeat what may hold a password.
func parse(c Config) (*redis.Options, error) {
	o, err := redis.ParseURL(c.URL)
	if err != nil {
		if malformed, ok := errors.AsType[*url.Error](err); ok {
			err = malformed.Err
		}
		return nil, fmt.Errorf("address of redis: %w", err)
	}
	o.Protocol = 2
	o.DisableIdentity = true
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout = dialTimeout
	o.ReadTimeout = callTimeout
	o.WriteTimeout = callTimeout
	o.ContextTimeoutEnabled = true
	o.PoolSize = poolSize
	o.PipelinePoolSize = -1 // one pool is enough
	if c.dial == nil {
		c.dial = redis.NewDialer(o)
	}
	o.Dialer = c.dialPatiently
	return o, nil
}

// dialPatiently tries until it succeeds or time is up, so that a server that is
// restarted is found as soon as it is there. Not every caller brings a deadline.
func (c Config) dialPatiently(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var retry backoff
	for {
		conn, err := c.dial(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(min(retry.next(), dialRetry)):
		case <-ctx.Done():
			return nil, err
		case <-c.hungUp:
			return nil, err
		}
	}
}
