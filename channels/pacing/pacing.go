// Package pacing keeps to the paces of a platform, and to the pauses that it asks for.
//
// pacing.go counts what is sent, against channels.Limits; pause.go is what a platform
// asks for beyond that, and how other processes hear of it.
package pacing

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// LongestWait is the longest wait for which a mailbox may be held meanwhile.
const LongestWait = 30 * time.Second

// A Pacer keeps to the paces of a platform. It remembers only chats to which
// something was sent so lately that it still matters.
type Pacer struct {
	limits channels.Limits

	mu      sync.Mutex
	chats   map[string]*bucket
	account bucket
	drafts  bucket
	swept   int // chats left by the last sweep

	// How others who send through the same account are told of pauses, and by
	// which name; tell is nil where there are none.
	name, id string
	tell     func(bus.Event)
}

// A bucket is the moment by which everything let through so far would have been
// spread out evenly, and the moment before which nothing is let through.
type bucket struct {
	even    time.Time
	blocked time.Time
}

// New is the pacer of the channel with that name. If events is set, others
// who send through the same account are told there of the pauses that the platform
// asks for; follow the channel's events with it, and it hears of theirs.
func New(name string, limits channels.Limits, events bus.Events) *Pacer {
	p := &Pacer{limits: limits, chats: map[string]*bucket{}, name: name, id: rand.Text()}
	if events != nil {
		p.tell = events.Emit
	}
	return p
}

// take lets one through in wait from now; beyond most it takes nothing.
func (b *bucket) take(p channels.Pace, now time.Time, most time.Duration) (wait time.Duration) {
	even := b.even
	if even.Before(now) {
		even = now
	}
	wait = max(0, b.blocked.Sub(now))
	if p.Every > 0 {
		wait = max(wait, even.Sub(now)-time.Duration(max(p.Burst, 1)-1)*p.Every)
	}
	if wait > most {
		return wait
	}
	b.even = even.Add(p.Every)
	return wait
}

func (b *bucket) idle(now time.Time) bool { return !b.even.After(now) && !b.blocked.After(now) }

// paceOf is the pace of a chat.
func (p *Pacer) paceOf(chat string) channels.Pace {
	if p.limits.Group != (channels.Pace{}) && p.limits.IsGroup != nil && p.limits.IsGroup(chat) {
		return p.limits.Group
	}
	return p.limits.Chat
}

// Wait waits until the chat and then the account may be sent to. If either would
// take longer than a mailbox may be held, it returns how long instead. What the
// platform asks for meanwhile is waited for as well.
func (p *Pacer) Wait(ctx context.Context, lost <-chan struct{}, chat string) (later time.Duration, err error) {
	for again := true; again; again = p.Until(chat).After(time.Now()) {
		for _, take := range []func(time.Time) time.Duration{
			func(now time.Time) time.Duration { return p.takeChat(chat, now) },
			p.takeAccount,
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

func (p *Pacer) takeAccount(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.account.take(p.limits.Account, now, LongestWait)
}

func (p *Pacer) takeChat(chat string, now time.Time) time.Duration {
	pace := p.paceOf(chat)
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.chats[chat]
	if b == nil {
		if pace == (channels.Pace{}) {
			return 0
		}
		b = p.add(chat, now)
	}
	return b.take(pace, now, LongestWait)
}

// add makes room by forgetting the idle whenever the number has doubled.
func (p *Pacer) add(chat string, now time.Time) *bucket {
	if len(p.chats) >= max(1024, 2*p.swept) {
		for name, b := range p.chats {
			if b.idle(now) {
				delete(p.chats, name)
			}
		}
		p.swept = len(p.chats)
	}
	b := &bucket{}
	p.chats[chat] = b
	return b
}

// Spare lets through what is of no consequence, if that keeps nobody waiting who
// has something to say: half of each burst is left to them.
func (p *Pacer) Spare(chat string, now time.Time) bool {
	pace := p.paceOf(chat)
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.chats[chat]
	if b == nil {
		if b = (&bucket{}); pace != (channels.Pace{}) {
			b = p.add(chat, now)
		}
	}
	if !b.spares(pace, now) || !p.account.spares(p.limits.Account, now) || p.drafts.take(p.limits.Drafts, now, 0) > 0 {
		return false
	}
	b.take(pace, now, 0)
	p.account.take(p.limits.Account, now, 0)
	return true
}

// spares tells whether one more leaves half of the burst.
func (b *bucket) spares(p channels.Pace, now time.Time) bool {
	if b.blocked.After(now) {
		return false
	}
	if p.Every <= 0 {
		return true
	}
	burst := max(p.Burst, 1)
	return max(b.even.Sub(now), 0)+p.Every <= time.Duration(burst-max(burst/2, 1))*p.Every
}
