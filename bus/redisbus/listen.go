package redisbus

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// listenForMail makes the one blocking call of this process, a BLPOP on the wake lists of
// all topics with waiters. When mail becomes due, a script pushes one token, and
// Redis gives it to one process of the fleet. The call goes on for a topic whose
// last waiter has left, because ending it for each message would cost two round
// trips; a token that comes then is pushed back for other processes.
func (c *claims) listenForMail(ctx context.Context) {
	var retry backoff
	for ctx.Err() == nil {
		lists, wait := c.planListening()
		if len(lists) == 0 {
			select {
			case <-c.waiterCame:
			case <-ctx.Done():
			}
			continue
		}
		list, token, err := c.blockOn(ctx, lists, wait)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.batcher.outages.record(err)
			select {
			case <-time.After(retry.next()):
			case <-ctx.Done():
			}
			continue
		}
		retry = 0
		c.handleToken(list, token)
	}
}

// planListening returns on which lists the blocking call has to listen, and for how long. For
// each topic in which a mailbox has become due by time it starts a fetch.
func (c *claims) planListening() (lists []string, wait time.Duration) {
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
				c.fetchSoon(q, "")
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
		lists = append(lists, c.keys.nudge(c.self))
	}
	return lists, wait
}

// blockOn makes the blocking call. It returns an empty list name if no token came in time.
func (c *claims) blockOn(ctx context.Context, lists []string, wait time.Duration) (list, token string, err error) {
	args := make([]any, 0, len(lists)+2)
	args = append(args, "blpop")
	for _, list := range lists {
		args = append(args, list)
	}
	// For BLPOP, 0 means that it waits forever.
	args = append(args, strconv.FormatFloat(max(wait, time.Millisecond).Seconds(), 'f', 3, 64))
	got, err := c.client.Do(ctx, args...).Result()
	if err == redis.Nil { //nolint:errorlint // the client returns it without wrapping
		return "", "", nil
	}
	return reply{got}.at(0).text(), reply{got}.at(1).text(), err
}

// handleToken starts a fetch for the topic whose token came. A token on this process's own
// nudge list only ends the call, so that planListening runs again.
func (c *claims) handleToken(list, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list == c.keys.nudge(c.self) {
		return
	}
	for _, q := range c.listening {
		if q.keys.wake != list {
			continue
		}
		if q.waiters.Len() > 0 {
			c.fetchSoon(q, token)
			return
		}
		c.spawn(func() {
			// If this fails, the other processes look by themselves within maxPollInterval.
			_, _ = c.batcher.run(context.Background(), rewakeScript, []string{list}, token)
		})
	}
}
