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
		b.events.confirm(x.Channel)
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

// confirm is told that the server has confirmed a subscription.
func (s *events) confirm(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[channel]; f != nil && !f.subscribed {
		f.subscribed = true
		close(f.confirmed)
	}
}

// interrupted is told that the connection is broken: what was published since is
// lost to those who watch, and those who begin to have to wait for the next.
func (s *events) interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		if !f.subscribed {
			continue
		}
		f.subscribed = false
		f.confirmed = make(chan struct{})
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

// watch makes the one blocking call of this process, a BLPOP on the wake lists of
// all topics with waiters. When mail becomes due, a script pushes one token, and
// Redis gives it to one process of the fleet. The call goes on for a topic whose
// last waiter has left, because ending it for each message would cost two round
// trips; a token that comes then is pushed back for other processes.
func (b *Bus) watch(ctx context.Context) {
	var retry backoff
	for ctx.Err() == nil {
		lists, wait := b.plan()
		if len(lists) == 0 {
			select {
			case <-b.claims.rouse:
			case <-ctx.Done():
			}
			continue
		}
		list, token, err := b.listenFor(ctx, lists, wait)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			b.batcher.health.saw(err)
			select {
			case <-time.After(retry.next()):
			case <-ctx.Done():
			}
			continue
		}
		retry = 0
		b.heard(list, token)
	}
}

// plan returns the lists to listen on and for how long, and starts a fetch for each
// topic in which something is due by time.
func (b *Bus) plan() (lists []string, wait time.Duration) {
	c := b.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, q := range c.listening {
		q.watched = false
	}
	c.listening = c.listening[:0]
	wait = c.poll
	for _, q := range c.queues {
		if q.waiters.Len() == 0 {
			continue
		}
		if !q.fetching {
			if !q.look.After(now) {
				b.fetchSoon(q, "")
			} else {
				wait = min(wait, q.look.Sub(now))
			}
		}
		q.watched = true
		c.listening = append(c.listening, q)
		lists = append(lists, q.keys.wake)
	}
	c.until, c.nudged = time.Time{}, false
	if len(lists) > 0 {
		c.until = now.Add(wait)
		lists = append(lists, c.keys.nudge(b.self))
	}
	return lists, wait
}

// listenFor is the blocking call. list is empty if no token came in time.
func (b *Bus) listenFor(ctx context.Context, lists []string, wait time.Duration) (list, token string, err error) {
	args := make([]any, 0, len(lists)+2)
	args = append(args, "blpop")
	for _, list := range lists {
		args = append(args, list)
	}
	// BLPOP takes 0 for ever.
	args = append(args, strconv.FormatFloat(max(wait, time.Millisecond).Seconds(), 'f', 3, 64))
	got, err := b.client.Do(ctx, args...).Result()
	if err == redis.Nil { //nolint:errorlint // the client returns it bare
		return "", "", nil
	}
	return reply{got}.at(0).text(), reply{got}.at(1).text(), err
}

// heard fetches for the topic whose token came. A token on our own nudge list only
// ends the call, so that plan runs anew.
func (b *Bus) heard(list, token string) {
	c := b.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	if list == c.keys.nudge(b.self) {
		return
	}
	for _, q := range c.listening {
		if q.keys.wake != list {
			continue
		}
		if q.waiters.Len() > 0 {
			b.fetchSoon(q, token)
			return
		}
		b.spawn(func() {
			// If it fails, the other processes look by themselves within pollMost.
			_, _ = b.batcher.run(context.Background(), rewakeScript, []string{list}, token)
		})
	}
}

// replan ends the blocking call early, so that plan runs with the present waiters.
// It pushes a token on this process's own nudge list, on which the call listens
// too. claims.mu is held.
func (b *Bus) replan() {
	c := b.claims
	switch {
	case len(c.listening) == 0:
		select {
		case c.rouse <- struct{}{}:
		default: // watch is about to look already
		}
	case !c.nudged:
		c.nudged = true
		b.spawn(func() {
			// If it fails, the call ends by itself within pollMost.
			_, _ = b.batcher.run(context.Background(), nudgeScript, []string{c.keys.nudge(b.self)})
		})
	}
}
