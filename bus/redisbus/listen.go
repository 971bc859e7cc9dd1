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

// silenceMost is how long the server may send nothing before the connection is tested.
const silenceMost = 2 * time.Second

// listenForNotes receives everything that is published to this process until ctx is done:
// notes about its leases, names that have become free, requests to forget, and events.
func (b *Bus) listenForNotes(ctx context.Context) {
	s := b.events
	var retry backoff
	tested := false
	for tidied := time.Now(); ; {
		heard, err := b.receiveNote(ctx, tested)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			retry, tested = 0, false
			b.handleMessage(heard)
		case isTimeout(err) && !tested:
			tested = true
			_ = s.pubsub.Ping(ctx) // if the connection is broken, the next call returns the error
		default:
			tested = false
			s.handleBrokenConnection()
			select {
			case <-time.After(retry.next()):
			case <-ctx.Done():
				return
			}
		}
		if time.Since(tidied) > time.Second {
			s.dropIdleFeeds()
			tidied = time.Now()
		}
	}
}

// receiveNote waits for the next message. tested says that a ping was sent: the client then has
// to treat silence as a broken connection and dial again, which it does if the context has a
// deadline, but not with ReceiveTimeout.
func (b *Bus) receiveNote(ctx context.Context, tested bool) (any, error) {
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

// handleMessage handles one message that listenForNotes has received.
func (b *Bus) handleMessage(heard any) {
	switch x := heard.(type) {
	case *redis.Subscription:
		if x.Kind != "subscribe" {
			return
		}
		if x.Channel == b.keys.notes(b.self) {
			b.leases.extendNow() // notes sent before are lost; extending returns the same numbers
		}
		b.events.confirm(x.Channel)
	case *redis.Message:
		switch x.Channel {
		case b.keys.notes(b.self):
			fence, last, _ := strings.Cut(x.Payload, " ")
			b.leases.handleNote(reply{fence}.number(), reply{last}.number())
		case b.keys.released():
			b.holds.wakeWaiters(x.Payload)
		case b.keys.forgotten():
			b.handleForgetRequest(x.Payload)
		default:
			b.events.deliver(x.Channel, x.Payload)
		}
	}
}

// confirm handles the server's confirmation of a subscription.
func (s *events) confirm(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[channel]; f != nil && !f.subscribed {
		f.subscribed = true
		close(f.confirmed)
	}
}

// handleBrokenConnection records that the connection for events is broken. What is published from
// then on is lost, so each watcher gets the sign that events are missing. New subscribers
// have to wait for the confirmation on the next connection.
func (s *events) handleBrokenConnection() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		if !f.subscribed {
			continue
		}
		f.subscribed = false
		f.confirmed = make(chan struct{})
		for w := range f.watchers {
			s.lost.Add(w.push(bus.Event{}))
		}
	}
}

// deliver passes an event from a Redis channel to the watchers of its feed.
func (s *events) deliver(channel, payload string) {
	number, text, _ := strings.Cut(payload, " ")
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return // no bus has sent this
	}
	e := bus.Event{} // the sign that events are missing
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
		s.lost.Add(w.push(e))
	}
}

// listenForMail makes the one blocking call of this process, a BLPOP on the wake lists of
// all topics with waiters. When mail becomes due, a script pushes one token, and
// Redis gives it to one process of the fleet. The call goes on for a topic whose
// last waiter has left, because ending it for each message would cost two round
// trips; a token that comes then is pushed back for other processes.
func (b *Bus) listenForMail(ctx context.Context) {
	var retry backoff
	for ctx.Err() == nil {
		lists, wait := b.planListening()
		if len(lists) == 0 {
			select {
			case <-b.claims.waiterCame:
			case <-ctx.Done():
			}
			continue
		}
		list, token, err := b.blockOn(ctx, lists, wait)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			b.batcher.health.record(err)
			select {
			case <-time.After(retry.next()):
			case <-ctx.Done():
			}
			continue
		}
		retry = 0
		b.handleToken(list, token)
	}
}

// planListening returns on which lists the blocking call has to listen, and for how long. For
// each topic in which a mailbox has become due by time it starts a fetch.
func (b *Bus) planListening() (lists []string, wait time.Duration) {
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
			if !q.nextLook.After(now) {
				b.fetchSoon(q, "")
			} else {
				wait = min(wait, q.nextLook.Sub(now))
			}
		}
		q.watched = true
		c.listening = append(c.listening, q)
		lists = append(lists, q.keys.wake)
	}
	c.listensUntil, c.nudged = time.Time{}, false
	if len(lists) > 0 {
		c.listensUntil = now.Add(wait)
		lists = append(lists, c.keys.nudge(b.self))
	}
	return lists, wait
}

// blockOn makes the blocking call. It returns an empty list name if no token came in time.
func (b *Bus) blockOn(ctx context.Context, lists []string, wait time.Duration) (list, token string, err error) {
	args := make([]any, 0, len(lists)+2)
	args = append(args, "blpop")
	for _, list := range lists {
		args = append(args, list)
	}
	// For BLPOP 0 means without end.
	args = append(args, strconv.FormatFloat(max(wait, time.Millisecond).Seconds(), 'f', 3, 64))
	got, err := b.client.Do(ctx, args...).Result()
	if err == redis.Nil { //nolint:errorlint // the client returns it bare
		return "", "", nil
	}
	return reply{got}.at(0).text(), reply{got}.at(1).text(), err
}

// handleToken starts a fetch for the topic whose token came. A token on this process's own
// nudge list only ends the call, so that planListening runs again.
func (b *Bus) handleToken(list, token string) {
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
			// If this fails, the other processes look by themselves within pollMost.
			_, _ = b.batcher.run(context.Background(), rewakeScript, []string{list}, token)
		})
	}
}

// replan ends the blocking call early, so that planListening runs with the present waiters.
// It pushes a token on this process's own nudge list, to which the call listens too. The
// caller holds claims.mu.
func (b *Bus) replan() {
	c := b.claims
	switch {
	case len(c.listening) == 0:
		select {
		case c.waiterCame <- struct{}{}:
		default: // listenForMail is signalled already
		}
	case !c.nudged:
		c.nudged = true
		b.spawn(func() {
			// If this fails, the call ends by itself within pollMost.
			_, _ = b.batcher.run(context.Background(), nudgeScript, []string{c.keys.nudge(b.self)})
		})
	}
}
