package redisbus

import "parley/bus"

// LeasesInMemory is how many leases the bus keeps in memory.
func (b *Bus) LeasesInMemory() int {
	b.leases.mu.Lock()
	defer b.leases.mu.Unlock()
	return len(b.leases.held)
}

// Senders is how many calls are sent side by side.
const Senders = senderCount

// Unsent is how many events wait in memory for the next batch.
func (b *Bus) Unsent() int { return b.buffer.Len() }

// A Topic names keys of a topic.
type Topic struct{ State, Heads, Due, Leased, Wake string }

// TopicKeys names the keys of a topic.
func TopicKeys(prefix string, name bus.Topic) Topic {
	k := newKeys(prefix, DefaultTag, 0).topic(name)
	return Topic{k.state, k.heads, k.due, k.leased, k.wake}
}
