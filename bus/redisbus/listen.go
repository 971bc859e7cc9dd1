package redisbus

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

// silenceMost is for how long nothing may be heard before the connection is tested.
const silenceMost = 2 * time.Second

// listen hears what is published: mail for what this process has leased, names
// that have become free, events.
func (b *Bus) listen(ctx context.Context) {
	s := b.events
	var retry backoff
	tested := false
	for tidied := time.Now(); ; {
		heard, err := b.receive(ctx, tested)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			retry, tested = 0, false
			b.hear(heard)
		case isTimeout(err) && !tested:
			tested = true
			_ = s.pubsub.Ping(ctx) // what is wrong with it is heard next
		default:
			tested = false
			s.interrupted()
			select {
			case <-time.After(retry.next()):
			case <-ctx.Done():
				return
			}
		}
		if time.Since(tidied) > time.Second {
			s.tidy()
			tidied = time.Now()
		}
	}
}

// receive waits for the next message. After a test the client is to take silence
// for a broken connection, which it does where the context has the deadline.
func (b *Bus) receive(ctx context.Context, tested bool) (any, error) {
	if !tested {
		return b.events.pubsub.ReceiveTimeout(ctx, silenceMost)
	}
	ctx, cancel := context.WithTimeout(ctx, silenceMost)
	defer cancel()
	return b.events.pubsub.Receive(ctx)
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func (b *Bus) hear(heard any) {
	switch x := heard.(type) {
	case *redis.Subscription:
		if x.Kind != "subscribe" {
			return
		}
		if x.Channel == b.keys.notes(b.self) {
			b.leases.hurry() // notes that came meanwhile are lost: the next round brings what they said
		}
		b.events.stands(x.Channel)
	case *redis.Message:
		switch x.Channel {
		case b.keys.notes(b.self):
			fence, last, _ := strings.Cut(x.Payload, " ")
			b.leases.note(reply{fence}.number(), reply{last}.number())
		case b.keys.released():
			b.holds.freed(x.Payload)
		case b.keys.forgotten():
			b.forgetHeard(x.Payload)
		default:
			b.events.came(x.Channel, x.Payload)
		}
	}
}

// stands is told that the server has confirmed a subscription.
func (s *events) stands(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[channel]; f != nil && !f.standing {
		f.standing = true
		close(f.stands)
	}
}

// interrupted is told that the connection is broken: what was published since is
// lost to those who watch, and those who begin to have to wait for the next.
func (s *events) interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		if !f.standing {
			continue
		}
		f.standing = false
		f.stands = make(chan struct{})
		for w := range f.watchers {
			s.missed.Add(w.push(bus.Event{}))
		}
	}
}

func (s *events) came(channel, payload string) {
	number, text, _ := strings.Cut(payload, " ")
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return // not from a bus
	}
	e := bus.Event{} // some are missing
	if text != "" {
		if e, err = decodeEvent(id, text); err != nil {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[channel]
	if f == nil {
		return
	}
	for w := range f.watchers {
		s.missed.Add(w.push(e))
	}
}
