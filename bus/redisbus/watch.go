package redisbus

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// watch holds the one blocking call of this process. It listens on the lists of
// all topics that somebody waits for: where mail becomes due, a token comes to
// one of those in the fleet who listen. A topic is listened for until the call
// ends even if nobody waits for it any more, so that the call need not be broken
// off with each message; a token that comes then is put back for others.
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
			b.courier.health.saw(err)
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

// plan says what to listen for and for how long, and sees to what is due by time.
func (b *Bus) plan() (lists []string, wait time.Duration) {
	c := b.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, d := range c.listening {
		d.watched = false
	}
	c.listening = c.listening[:0]
	wait = c.poll
	for _, d := range c.desks {
		if d.waiters.Len() == 0 {
			continue
		}
		if !d.fetching {
			if !d.look.After(now) {
				b.fetchSoon(d, "")
			} else {
				wait = min(wait, d.look.Sub(now))
			}
		}
		d.watched = true
		c.listening = append(c.listening, d)
		lists = append(lists, d.keys.wake)
	}
	c.until, c.nudged = time.Time{}, false
	if len(lists) > 0 {
		c.until = now.Add(wait)
		lists = append(lists, c.keys.nudge(b.self))
	}
	return lists, wait
}

// listenFor is the blocking call. The list is empty if no token came.
func (b *Bus) listenFor(ctx context.Context, lists []string, wait time.Duration) (list, token string, err error) {
	args := make([]any, 0, len(lists)+2)
	args = append(args, "blpop")
	for _, list := range lists {
		args = append(args, list)
	}
	// Zero would be for ever.
	args = append(args, strconv.FormatFloat(max(wait, time.Millisecond).Seconds(), 'f', 3, 64))
	got, err := b.client.Do(ctx, args...).Result()
	if err == redis.Nil { //nolint:errorlint // the client returns it bare
		return "", "", nil
	}
	return reply{got}.at(0).text(), reply{got}.at(1).text(), err
}

// heard acts on a token.
func (b *Bus) heard(list, token string) {
	c := b.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	if list == c.keys.nudge(b.self) {
		return
	}
	for _, d := range c.listening {
		if d.keys.wake != list {
			continue
		}
		if d.waiters.Len() > 0 {
			b.fetchSoon(d, token)
			return
		}
		b.spawn(func() {
			// If it fails the others look by themselves before long.
			_, _ = b.courier.run(context.Background(), rewakeScript, []string{list}, token)
		})
	}
}

// replan breaks off the blocking call, so that it listens for what it should.
// It is called with claims.mu held.
func (b *Bus) replan() {
	c := b.claims
	switch {
	case len(c.listening) == 0:
		select {
		case c.rouse <- struct{}{}:
		default: // it is roused already
		}
	case !c.nudged:
		c.nudged = true
		b.spawn(func() {
			// If it fails the call ends by itself before long.
			_, _ = b.courier.run(context.Background(), nudgeScript, []string{c.keys.nudge(b.self)})
		})
	}
}
