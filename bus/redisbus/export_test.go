package redisbus

import (
	"context"
	"net"

	"parley/bus"
)

// Dialed is c with connections of the test's own.
func Dialed(c Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) Config {
	c.dial = dial
	return c
}

// Held is how many leases the bus keeps in memory.
func (b *Bus) Held() int {
	b.leases.mu.Lock()
	defer b.leases.mu.Unlock()
	return len(b.leases.held)
}

// TopicKeys names the keys of a topic.
func TopicKeys(prefix, topic, key string) (state, due, leased, mail string) {
	k := newKeys(prefix).topic(bus.Topic(topic))
	return k.state, k.due, k.leased, k.mail(key)
}
