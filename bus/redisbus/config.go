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
	DefaultMaxHold = 35 * time.Minute // longer than the longest turn
)

// A Config says which server the bus uses, and sets its limits.
type Config struct {
	// URL is redis://, rediss:// or unix:// in the form that redis-cli takes, or an address with
	// Sentinels in the form that sentinel.Address describes.
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
	// Log gets what operators should know; if it is nil, nothing is logged.
	Log *slog.Logger

	dial   func(ctx context.Context, network, address string) (net.Conn, error) // dials in place of the net package in tests; nil otherwise
	hungUp chan struct{}                                                        // closed when nothing may be dialed anymore; may be nil
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
