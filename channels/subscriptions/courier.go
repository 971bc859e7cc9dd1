package subscriptions

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"parley/bus"
	"parley/channels/backoff"
	"parley/sessions/subscriptions"
)

const (
	eventsPerRead = 20 // how many events are read at once, and removed at once after they were accepted
	// removeDelay is how long accepted events may stay in the queue, so that they are removed in one write. If the
	// process dies meanwhile, they are posted again.
	removeDelay  = 200 * time.Millisecond
	pollInterval = 30 * time.Second // the time between two looks into the queue if nothing rings
	// flushDelay is how long after the bell rang all that it rang for is durable: SQLite lets some writes wait for a
	// flush that they can share.
	flushDelay        = 300 * time.Millisecond
	trimInterval      = time.Minute
	maxRetryWait      = 5 * time.Minute // between two attempts, unless the subscriber asks for more time
	databaseRetryWait = 30 * time.Second
)

// A courier posts the events of one subscription.
type courier struct {
	*Poster
	subscription   subscriptions.Subscription
	log            *slog.Logger
	failing        bool // whether the log says that the subscriber accepts nothing
	lastTrim       time.Time
	rangForNothing bool // whether the bell rang and nothing was found since
}

func newCourier(p *Poster, s subscriptions.Subscription) *courier {
	return &courier{Poster: p, subscription: s, log: p.Log.With(slog.String("subscription", s.Name))}
}

// run posts until ctx is done, whenever no other process does.
func (c *courier) run(ctx context.Context) {
	err := bus.WhileHeld(ctx, c.Bus, "subscription/"+c.subscription.Name, func(held context.Context) error {
		c.serve(held)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		c.log.Warn("events are no longer posted by this process", slog.Any("error", err))
	}
}

// serve posts while this process holds the subscription.
func (c *courier) serve(held context.Context) {
	var broken backoff.Series
	for held.Err() == nil {
		err := c.deliver(held)
		if errors.Is(err, subscriptions.ErrFenced) || held.Err() != nil {
			return
		}
		c.log.Warn("the events to post cannot be read or noted; trying again", slog.Any("error", err))
		sleep(held, broken.Next(databaseRetryWait))
	}
}

// deliver takes the queue and posts what is in it, until held ends or the database fails.
func (c *courier) deliver(held context.Context) error {
	rung, leave := c.bell.listen()
	defer leave()
	q, known, err := c.Table.Take(held, c.subscription.Name)
	if err != nil {
		return err
	}
	c.failing = known.Tries > 0
	tries := known.Tries
	var again time.Time // when the subscriber wants the next attempt
	if known.Place == c.place() {
		again = time.Now().Add(min(time.Until(known.RetryAt), maxRetryAfter)) // whatever a clock says
	}
	for held.Err() == nil {
		next, err := q.Next(held, eventsPerRead)
		if err != nil {
			return err
		}
		if len(next) == 0 {
			if c.failing {
				if err := q.ClearRefusal(held); err != nil {
					return err
				}
				c.failing, tries = false, 0
			}
			c.rest(held, rung)
			continue
		}
		dropped, err := c.trim(held)
		if err != nil {
			return err
		}
		if dropped || time.Now().Before(again) {
			if err := c.pause(held, time.Until(again)); err != nil {
				return err
			}
			continue
		}
		if tries, err = c.postAll(held, q, next, tries); err != nil {
			return err
		}
	}
	return nil
}

// rest waits until there may be something to post, or held ends.
func (c *courier) rest(held context.Context, rung <-chan struct{}) {
	wait := pollInterval
	if c.rangForNothing {
		wait = flushDelay
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	c.rangForNothing = false
	select {
	case <-rung:
		c.rangForNothing = true
	case <-late.C:
	case <-held.Done():
	}
}

// trim drops the oldest events, at most once in trimInterval, if too many wait or if they have waited for too long. It
// returns whether it has dropped any.
func (c *courier) trim(ctx context.Context) (bool, error) {
	now := time.Now()
	if now.Sub(c.lastTrim) < trimInterval {
		return false, nil
	}
	dropped, err := c.Table.Trim(ctx, c.subscription.Name, now)
	if err != nil {
		return false, err
	}
	c.lastTrim = now
	if dropped > 0 {
		c.log.Error("events were dropped, because the subscriber has not accepted them", slog.Int64("events", dropped))
	}
	return dropped > 0, nil
}

// pause waits before the next attempt, until held ends at the latest, and trims the queue meanwhile (see trim).
func (c *courier) pause(held context.Context, wait time.Duration) error {
	for until := time.Now().Add(wait); time.Now().Before(until) && sleep(held, min(time.Until(until), trimInterval)); {
		if _, err := c.trim(held); err != nil {
			return err
		}
	}
	return nil
}

// postAll posts events in their order, up to the first that is not accepted, after which it waits. tries is how often
// the first of them was refused so far; postAll returns the same for the one that is next.
func (c *courier) postAll(held context.Context, q *subscriptions.Queue, next []subscriptions.Waiting, tries int) (int, error) {
	whole := context.WithoutCancel(held) // what was accepted is noted even if the process is told to end
	var accepted []subscriptions.Waiting
	var since time.Time
	for _, e := range next {
		if held.Err() != nil {
			break
		}
		done, refused, err := c.post(held, q, e)
		if err != nil {
			return tries, errors.Join(err, c.remove(whole, q, accepted))
		}
		if !done && refused == nil {
			continue // it was erased, or dropped
		}
		c.Posted(c.subscription.Name, done)
		c.Point("subscription:posted")
		if refused != nil {
			if err := c.remove(whole, q, accepted); err != nil {
				return 0, err
			}
			if len(accepted) > 0 {
				tries = 0
			}
			return tries + 1, c.refuse(held, q, refused, tries+1)
		}
		if accepted = append(accepted, e); len(accepted) == 1 {
			since = time.Now()
		}
		if tries = 0; c.failing || time.Since(since) >= removeDelay {
			if err := c.remove(whole, q, accepted); err != nil {
				return 0, err
			}
			accepted = nil
		}
	}
	return tries, c.remove(whole, q, accepted)
}

// remove removes accepted events from the queue. If there are any, the subscriber no longer counts as failing.
func (c *courier) remove(ctx context.Context, q *subscriptions.Queue, accepted []subscriptions.Waiting) error {
	if len(accepted) == 0 {
		return nil
	}
	if err := q.Remove(ctx, accepted...); err != nil {
		return err
	}
	c.Point("subscription:removed")
	if c.failing {
		c.failing = false
		c.log.Info("the subscriber accepts events again")
	}
	return nil
}

// refuse notes that the first event was not accepted, and waits before the next attempt.
func (c *courier) refuse(held context.Context, q *subscriptions.Queue, why *refusal, tries int) error {
	wait := max(waitAfter(tries), why.retryAfter)
	if err := q.RecordRefusal(context.WithoutCancel(held), why.problem, time.Now().Add(wait), c.place()); err != nil {
		return err
	}
	if !c.failing {
		c.failing = true
		c.log.Warn("the subscriber does not accept an event; trying again", slog.String("problem", why.problem))
	}
	return c.pause(held, wait)
}

// waitAfter returns how long to wait after that many attempts in a row that have failed, at least one: a random time
// between half and all of a length that begins at a second and doubles each time, up to maxRetryWait.
func waitAfter(tries int) time.Duration {
	length := maxRetryWait
	if tries < 10 {
		length = min(time.Second<<(tries-1), maxRetryWait)
	}
	return length/2 + rand.N(length/2)
}
