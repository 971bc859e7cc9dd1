package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"parley/bus/redisbus/master"
)

// Health is what Probe finds out about a server, in addition to what Inspect does.
type Health struct {
	Info
	// Fsync is appendfsync: always, everysec or no; "" if the server does not tell.
	Fsync      string
	AOFFails   bool   // whether its last write of the append-only file failed
	Replica    bool   // whether it is a replica of another server
	UsedMemory int64  // bytes in use
	MaxMemory  int64  // maxmemory; 0 means no limit
	Group      *Group // nil if the server is not known to have replicas
}

// A Group is a master and its replicas.
type Group struct {
	master.View
	Online int // how many replicas are connected to the master
}

// Probe reads the description and the health of a server; on a Cluster, of the one with the keys that have that hash
// tag. It changes nothing.
func Probe(ctx context.Context, address, tag string) (h Health, err error) {
	d, err := NewDialer(Options{URL: address, Tag: tag})
	if err != nil {
		return h, err
	}
	client := redis.NewClient(d.Options)
	defer func() { err = errors.Join(err, client.Close(), d.Close()) }()
	if h.Info, err = d.Inspect(ctx, client); err != nil {
		return h, err
	}
	info, err := client.Info(ctx).Result()
	if err != nil {
		return h, fmt.Errorf("ask redis about itself: %w", err)
	}
	h.read(info)
	if d.Finder != nil {
		view, err := d.Finder.View(ctx)
		if err != nil {
			return h, fmt.Errorf("ask who is the master: %w", err)
		}
		h.Group = &Group{View: view, Online: CountReplicas(info)}
	}
	// A rented server may refuse CONFIG.
	answer, err := client.ConfigGet(ctx, "appendfsync").Result()
	if err != nil && !IsAnswer(err) {
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

// CountReplicas returns how many replicas are connected to a master, from its answer to INFO. A replica
// that is still copying all data does not count.
func CountReplicas(info string) (online int) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(line, ":")
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			online++
		}
	}
	return online
}
