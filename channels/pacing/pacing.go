// Package pacing keeps within a platform's rate limits, and observes the pauses that the platform asks for.
//
// pacing.go counts what is sent against channels.Limits; pause.go applies the additional pauses that a platform
// asks for, and exchanges them with other processes. alarm.go lets a goroutine that shows something from time to
// time sleep in between.
package pacing

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// LongestWait is the longest time that a sender may wait while it holds a mailbox.
const LongestWait = 30 * time.Second

// A Pacer makes senders wait as long as the platform's limits require. It remembers only chats to which something
// was sent so recently that the limits still depend on it.
type Pacer struct {
	limits channels.Limits

	mu          sync.Mutex
	chats       map[string]*bucket
	account     bucket
	drafts      bucket
	keptAtSweep int // the number of chats that were left when addChat last forgot idle ones

	// emit tells other processes that send through the same account about pauses; it is nil if there are none. name
	// is the channel's name; id lets this process distinguish its own events from theirs.
	name, id string
	emit     func(bus.Event)
}

// A bucket is the state of one rate limit. evenUntil is the time until which everything that has been let through
// would have lasted if it had been spread evenly; nothing is let through before blockedUntil.
type bucket struct {
	evenUntil    time.Time
	blockedUntil time.Time
}

// New returns the pacer for the channel with that name. If events is set, the pacer announces each pause that the
// platform asks for there, for others who send through the same account. To learn of their pauses, make the pacer a
// listener to the channel's events.
func New(name string, limits channels.Limits, events bus.Events) *Pacer {
	p := &Pacer{limits: limits, chats: map[string]*bucket{}, name: name, id: rand.Text()}
	if events != nil {
		p.emit = events.Emit
	}
	return p
}

// reserve counts one send against the rate limit and returns how long to wait before it. If that would be longer
// than `most`, it counts nothing.
func (b *bucket) reserve(p channels.Pace, now time.Time, most time.Duration) (wait time.Duration) {
	even := b.evenUntil
	if even.Before(now) {
		even = now
	}
	wait = max(0, b.blockedUntil.Sub(now))
	if p.Every > 0 {
		wait = max(wait, even.Sub(now)-time.Duration(max(p.Burst, 1)-1)*p.Every)
	}
	if wait > most {
		return wait
	}
	b.evenUntil = even.Add(p.Every)
	return wait
}

// isIdle reports whether forgetting the bucket would make no difference.
func (b *bucket) isIdle(now time.Time) bool {
	return !b.evenUntil.After(now) && !b.blockedUntil.After(now)
}

// paceOf returns the pace that applies to a chat.
func (p *Pacer) paceOf(chat string) channels.Pace {
	if p.limits.Group != (channels.Pace{}) && p.limits.IsGroup != nil && p.limits.IsGroup(chat) {
		return p.limits.Group
	}
	return p.limits.Chat
}

// Wait waits until the limits of the chat and of the account let one message through. If that would take longer
// than LongestWait, it immediately returns after what time to try again. It also waits out pauses that the platform
// asks for in the meantime. It fails when ctx ends or, with bus.ErrFenced, when lost is closed.
func (p *Pacer) Wait(ctx context.Context, lost <-chan struct{}, chat string) (later time.Duration, err error) {
	for again := true; again; again = p.PausedUntil(chat).After(time.Now()) {
		for _, take := range []func(time.Time) time.Duration{
			func(now time.Time) time.Duration { return p.reserveChat(chat, now) },
			p.reserveAccount,
		} {
			wait := take(time.Now())
			if wait > LongestWait {
				return wait, nil
			}
			if err := sleep(ctx, lost, wait); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

// sleep waits, and fails if ctx ends or the lease is lost first.
func sleep(ctx context.Context, lost <-chan struct{}, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-lost:
		return bus.ErrFenced
	}
}

// reserveAccount counts one send against the account's limit, and returns how long to wait before it. If that is
// longer than LongestWait, it counts nothing.
func (p *Pacer) reserveAccount(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.account.reserve(p.limits.Account, now, LongestWait)
}

// reserveChat counts one send against the chat's limit, and returns how long to wait before it. If that is longer
// than LongestWait, it counts nothing.
func (p *Pacer) reserveChat(chat string, now time.Time) time.Duration {
	pace := p.paceOf(chat)
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.chats[chat]
	if b == nil {
		if pace == (channels.Pace{}) {
			return 0
		}
		b = p.addChat(chat, now)
	}
	return b.reserve(pace, now, LongestWait)
}

// addChat returns a new bucket for the chat. Whenever the number of chats has doubled, it first forgets the idle
// ones.
func (p *Pacer) addChat(chat string, now time.Time) *bucket {
	if len(p.chats) >= max(1024, 2*p.keptAtSweep) {
		for name, b := range p.chats {
			if b.isIdle(now) {
				delete(p.chats, name)
			}
		}
		p.keptAtSweep = len(p.chats)
	}
	b := &bucket{}
	p.chats[chat] = b
	return b
}

// TakeIfSpare reports whether something unimportant may be sent now, and if so, counts it as sent. It leaves half
// of each burst for important messages, so that these never wait for it.
func (p *Pacer) TakeIfSpare(chat string, now time.Time) bool {
	pace := p.paceOf(chat)
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.chats[chat]
	if b == nil {
		if b = (&bucket{}); pace != (channels.Pace{}) {
			b = p.addChat(chat, now)
		}
	}
	if !b.leavesHalf(pace, now) || !p.account.leavesHalf(p.limits.Account, now) || p.drafts.reserve(p.limits.Drafts, now, 0) > 0 {
		return false
	}
	b.reserve(pace, now, 0)
	p.account.reserve(p.limits.Account, now, 0)
	return true
}

// leavesHalf reports whether half of the burst remains after one more send.
func (b *bucket) leavesHalf(p channels.Pace, now time.Time) bool {
	if b.blockedUntil.After(now) {
		return false
	}
	if p.Every <= 0 {
		return true
	}
	burst := max(p.Burst, 1)
	return max(b.evenUntil.Sub(now), 0)+p.Every <= time.Duration(burst-max(burst/2, 1))*p.Every
}
