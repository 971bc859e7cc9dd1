package channels

import (
	"context"
	"sync"
	"time"

	"parley/bus"
)

// A pacer keeps to the paces of a platform. It remembers only chats to which
// something was sent so lately that it still matters.
type pacer struct {
	limits Limits

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

func newPacer(limits Limits) *pacer {
	return &pacer{limits: limits, chats: map[string]*bucket{}}
}

// take lets one through in wait from now; beyond most it takes nothing.
func (b *bucket) take(p Pace, now time.Time, most time.Duration) (wait time.Duration) {
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

// of is the pace of a chat.
func (p *pacer) of(chat string) Pace {
	if p.limits.Group != (Pace{}) && p.limits.IsGroup != nil && p.limits.IsGroup(chat) {
		return p.limits.Group
	}
	return p.limits.Chat
}

// wait waits until the chat and then the account may be sent to. If either would
// take longer than a mailbox may be held, it returns how long instead. What the
// platform asks for meanwhile is waited for as well.
func (p *pacer) wait(ctx context.Context, lost <-chan struct{}, chat string) (later time.Duration, err error) {
	for again := true; again; again = p.until(chat).After(time.Now()) {
		for _, take := range []func(time.Time) time.Duration{
			func(now time.Time) time.Duration { return p.takeChat(chat, now) },
			p.takeAccount,
		} {
			wait := take(time.Now())
			if wait > longestHold {
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

func (p *pacer) takeAccount(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.account.take(p.limits.Account, now, longestHold)
}

func (p *pacer) takeChat(chat string, now time.Time) time.Duration {
	pace := p.of(chat)
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.chats[chat]
	if b == nil {
		if pace == (Pace{}) {
			return 0
		}
		b = p.add(chat, now)
	}
	return b.take(pace, now, longestHold)
}

// add makes room by forgetting the idle whenever the number has doubled.
func (p *pacer) add(chat string, now time.Time) *bucket {
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

// spare lets through what is of no consequence, if that keeps nobody waiting who
// has something to say: half of each burst is left to them.
func (p *pacer) spare(chat string, now time.Time) bool {
	pace := p.of(chat)
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.chats[chat]
	if b == nil {
		if b = (&bucket{}); pace != (Pace{}) {
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
func (b *bucket) spares(p Pace, now time.Time) bool {
	if b.blocked.After(now) {
		return false
	}
	if p.Every <= 0 {
		return true
	}
	burst := max(p.Burst, 1)
	return max(b.even.Sub(now), 0)+p.Every <= time.Duration(burst-max(burst/2, 1))*p.Every
}
