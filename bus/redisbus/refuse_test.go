package redisbus_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/bus"
)

// The bus survives a server that refuses to store, and logs that as it logs a server that is away.
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

// Messages that never reached a server without connections don't count as stored, however many are published at once.
func TestServerRefusesConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Second, "--requirepass", "first")
	r.publish("k", "before")
	r.ok("another password", r.redis.ConfigSet(t.Context(), "requirepass", "second").Err())
	r.ok("cut all others", r.redis.Do(t.Context(), "client", "kill", "type", "normal").Err())
	var publishing sync.WaitGroup
	for i := range 300 {
		publishing.Go(func() {
			if r.Publish(t.Context(), inbound, bus.Message{ID: fmt.Sprint("refused", i), Key: "k"}) == nil {
				t.Errorf("refused%d is taken for stored", i)
			}
		})
	}
	publishing.Wait()
	r.ok("the first password", r.redis.ConfigSet(t.Context(), "requirepass", "first").Err())
	r.publish("k", "after")
	r.finish(r.claim("k"), "before", "after")
}
