package redisbus

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"time"

	"parley/bus"
	"parley/bus/redisbus/cluster"
)

// These values replace the zero values of a Config.
const (
	DefaultPrefix  = "parley"
	DefaultTag     = "0"
	DefaultLease   = 5 * time.Second
	DefaultMaxHold = 35 * time.Minute // longer than the longest turn
)

// A Config says which server the bus uses, and sets its limits.
type Config struct {
	// URL is the address of the server; see server.Options.
	URL string
	// Prefix begins every key and channel; DefaultPrefix if empty. Processes with the same
	// prefix in the same database share one bus.
	Prefix string
	// Tag is the hash tag in the name of each key; DefaultTag if empty. It says which node of a Cluster has
	// the keys.
	Tag string
	// Caps bounds the mailboxes; zero means no bound.
	Caps bus.Caps
	// Lease is how long a process may give no sign of life before others take over its mailboxes;
	// DefaultLease if zero. All processes have to use the same.
	Lease time.Duration
	// MaxHold bounds how long a lease may be held; DefaultMaxHold if zero.
	MaxHold time.Duration
	// Log gets what operators should know; if it is nil, nothing is logged.
	Log *slog.Logger

	// Dial dials in place of the net package; nil otherwise.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	self    string           // this process's name; a new one if empty
	cluster *cluster.Cluster // the Cluster of the server, if several buses share it; nil otherwise
	shards  int              // number of shards of the whole bus; 0 if this bus is all of it
	hungUp  chan struct{}    // closed when nothing may be dialed anymore; may be nil
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Tag == "" {
		c.Tag = DefaultTag
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.MaxHold == 0 {
		c.MaxHold = DefaultMaxHold
	}
	if c.self == "" {
		c.self = rand.Text()[:boxOwner]
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
