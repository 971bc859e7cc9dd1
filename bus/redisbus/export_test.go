package redisbus

import "parley/bus"

// LeasesInMemory returns how many leases the bus keeps in memory.
func (b *Bus) LeasesInMemory() int {
	b.leases.mu.Lock()
	defer b.leases.mu.Unlock()
	return len(b.leases.held)
}

// Senders is how many calls the bus sends in parallel.
const Senders = senderCount

// Unsent returns how many events wait in memory for the next batch.
func (b *Bus) Unsent() int { return b.buffer.Len() }

// A Topic has the names of some keys of a topic.
type Topic struct{ State, Heads, Due, Leased, Wake string }

// TopicKeys returns the names of a topic's keys.
func TopicKeys(prefix string, name bus.Topic) Topic {
	k := newKeys(prefix, DefaultTag, 0).topic(name)
	return Topic{k.state, k.heads, k.due, k.leased, k.wake}
}
