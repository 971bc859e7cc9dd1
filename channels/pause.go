package channels

import (
	"crypto/rand"
	"errors"
	"time"

	"parley/bus"
)

// What a platform asks for holds for everything that goes to that chat, or
// through that account: messages, edits, drafts, typing, reactions and what the
// gate says. Gateway and Dispatcher may run in two processes; each tells the
// other by an event, which is news and no more: who misses it is told by the
// platform.

// sharedPacer is a pacer of a channel whose others are told of pauses.
func sharedPacer(name string, limits Limits, events bus.Events) *pacer {
	p := newPacer(limits)
	p.name, p.id = name, rand.Text()
	if events != nil {
		p.tell = events.Emit
	}
	return p
}

// limited takes note of an error by which the platform asks for patience, if it
// is one: nothing goes to the chat, or anywhere, before that is over. It returns
// how long that is.
func (p *pacer) limited(chat string, err error) time.Duration {
	fault, ok := errors.AsType[*SendError](err)
	if !ok || !fault.Limited {
		return 0
	}
	pause := max(fault.RetryAfter, firstBackoff)
	if fault.Account {
		chat = ""
	}
	p.pause(chat, time.Now().Add(pause))
	if p.tell != nil {
		p.tell(bus.Event{Type: bus.Limited, Route: bus.Address{Channel: p.name, Chat: chat}, Call: p.id, Delta: pause.String()})
	}
	return pause
}

// heard takes note of what another process was told.
func (p *pacer) heard(e bus.Event) {
	if e.Type != bus.Limited || e.Call == p.id {
		return
	}
	if pause, err := time.ParseDuration(e.Delta); err == nil {
		p.pause(e.Route.Chat, time.Now().Add(min(pause, longestPause)))
	}
}

func (p *pacer) missed() {}

// longestPause bounds what is believed of another process.
const longestPause = 24 * time.Hour

// pause lets nothing through to a chat, "" being all of them, before then. What
// waited goes on at the usual pace, not with a burst.
func (p *pacer) pause(chat string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, pace := &p.account, p.limits.Account
	if chat != "" {
		pace = p.of(chat)
		if b = p.chats[chat]; b == nil {
			b = p.add(chat, time.Now())
		}
	}
	if !until.After(b.blocked) {
		return
	}
	b.blocked = until
	if empty := until.Add(time.Duration(max(pace.Burst, 1)-1) * pace.Every); empty.After(b.even) {
		b.even = empty
	}
}

// until is when the pause of a chat, or of all of them, is over.
func (p *pacer) until(chat string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.account.blocked
	if b := p.chats[chat]; b != nil && b.blocked.After(until) {
		until = b.blocked
	}
	return until
}
