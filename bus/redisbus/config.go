package redisbus

import (
	"context"
	"log/slog"
	"net"
	"time"

	"parley/bus"
)

// The values that replace the zero values of a Config.
const (
	DefaultPrefix  = "parley"
	DefaultLease   = 5 * time.Second
	DefaultMaxHold = 35 * time.Minute // the longest turn and some grace
)

// Config says where the bus lives and what bounds it.
type Config struct {
	// URL is redis://, rediss:// or unix://, as redis-cli takes it, or with Sentinels as
	// sentinel.Address says.
	URL string
	// Prefix begins every key and channel; DefaultPrefix if empty. Processes with the same
	// prefix in the same database share one bus.
	Prefix string
	// Caps bounds the mailboxes; zero means no bound.
	Caps bus.Caps
	// Lease is how long a process may give no sign of life before others take over its mailboxes;
	// DefaultLease if zero. All processes have to use the same.
	Lease time.Duration
	// MaxHold bounds how long a lease may be held; DefaultMaxHold if zero.
	MaxHold time.Duration
	// Log gets what operators should know; nil means that nothing is logged.
	Log *slog.Logger

	dial   func(ctx context.Context, network, address string) (net.Conn, error) // replaces the dialling in tests; nil otherwise
	hungUp chan struct{}                                                        // closed when nothing should be dialled any more; may be nil
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.MaxHold == 0 {
		c.MaxHold = DefaultMaxHold
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
