package redisbus

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// A connection is what every part of the bus needs to use Redis.
type connection struct {
	keys    keys
	self    string // this process's name in the fleet
	client  *redis.Client
	batcher *scriptBatcher
	log     *slog.Logger
	listens chan struct{} // closed once the server has confirmed that this process gets its notes

	*lifecycle
}

// now returns the time of the clock that the scripts use, in microseconds.
func (c *connection) now(ctx context.Context) (int64, error) {
	pipe := c.client.Pipeline()
	servers, clock := pipe.Time(ctx), pipe.MGet(ctx, c.keys.clock())
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	return max(servers.Val().UnixMicro(), reply{clock.Val()[0]}.number()), nil
}
