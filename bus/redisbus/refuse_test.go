package redisbus_test

import (
	"fmt"
	"testing"
	"time"

	"parley/bus"
)

// A server that refuses to store is survived, and logged, like one that is away.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	for name, command := range map[string][2][]any{
		"a replica":        {{"replicaof", "127.0.0.1", "1"}, {"replicaof", "no", "one"}},
		"without replicas": {{"config", "set", "min-replicas-to-write", "1"}, {"config", "set", "min-replicas-to-write", "0"}},
		"out of memory":    {{"config", "set", "maxmemory", "1"}, {"config", "set", "maxmemory", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, lease)
			r.publish("held", "a")
			l := r.claim("held")
			x := newTraffic(r)
			x.during(func() {
				x.more(200)
				r.ok("begin", r.redis.Do(t.Context(), command[0]...).Err())
				for i, end := 0, time.Now().Add(2*lease); time.Now().Before(end); i++ {
					if r.Publish(t.Context(), inbound, bus.Message{ID: fmt.Sprint("refused", i), Key: "k"}) == nil {
						t.Error("it takes mail")
					}
					<-time.After(10 * time.Millisecond)
				}
				r.ok("end", r.redis.Do(t.Context(), command[1]...).Err())
				x.more(200)
			})
			r.checkHeld(l)
			r.finish(l, "a")
			r.idle()
			r.oneOutage("redis refuses")
		})
	}
}
