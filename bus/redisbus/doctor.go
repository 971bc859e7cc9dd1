package redisbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Health is what Probe finds out beside what Inspect does.
type Health struct {
	Server
	// Fsync is appendfsync: always, everysec or no; "" where the server tells nobody.
	Fsync    string
	AOFFails bool  // it could not write its append-only file when it last tried
	Replica  bool  // it follows another server
	Memory   int64 // bytes in use
	Most     int64 // maxmemory; 0 is all there is
}

// Probe asks a server about itself, and changes nothing.
func Probe(ctx context.Context, address string) (h Health, err error) {
	options, err := parse(Config{URL: address})
	if err != nil {
		return h, err
	}
	client := redis.NewClient(options)
	defer func() { err = errors.Join(err, client.Close()) }()
	if h.Server, err = inspect(ctx, client); err != nil {
		return h, err
	}
	info, err := client.Info(ctx).Result()
	if err != nil {
		return h, fmt.Errorf("ask redis about itself: %w", err)
	}
	h.read(info)
	// Who rents a server may not be allowed to ask.
	answer, err := client.ConfigGet(ctx, "appendfsync").Result()
	if err != nil && !refused(err) {
		return h, fmt.Errorf("ask redis how it writes: %w", err)
	}
	h.Fsync = answer["appendfsync"]
	return h, nil
}

func (h *Health) read(info string) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "role":
			h.Replica = value != "master"
		case "aof_last_write_status":
			h.AOFFails = value != "ok"
		case "used_memory":
			h.Memory, _ = strconv.ParseInt(value, 10, 64) // 0 says nothing
		case "maxmemory":
			h.Most, _ = strconv.ParseInt(value, 10, 64)
		}
	}
}
