package pacing

import (
	"errors"
	"time"

	"parley/bus"
	"parley/channels"
)

// What a platform asks for holds for everything that goes to that chat, or
// through that account: messages, edits, drafts, typing, reactions and what the
// gate says. Gateway and Dispatcher may run in two processes; each tells the
// other by an event, which is news and no more: who misses it is told by the
// platform.

// Limited takes note of an error by which the platform asks for patience, if it
// is one: nothing goes to the chat, or anywhere, before that is over. It returns
// how long that is.
func (p *Pacer) Limited(chat string, err error) time.Duration {
	fault, ok := errors.AsType[*channels.SendError](err)
	if !ok || !fault.Limited {
		return 0
	}
	pause := max(fault.RetryAfter, leastPause)
	if fault.Account {
		chat = ""
	}
	p.pause(chat, time.Now().Add(pause))
	if p.tell != nil {
		p.tell(bus.Event{Type: bus.Limited, Route: bus.Address{Channel: p.name, Chat: chat}, Call: p.id, Delta: pause.String()})
	}
	return pause
}

// Heard takes note of what another process was told.
func (p *Pacer) Heard(e bus.Event) {
	if e.Type != bus.Limited || e.Call == p.id {
		return
	}
	if pause, err := time.ParseDuration(e.Delta); err == nil {
		p.pause(e.Route.Chat, time.Now().Add(min(pause, longestPause)))
	}
}

// Missed implements bus.Listener: a pause of which it does not hear is told to
// this process by the platform too.
func (p *Pacer) Missed() {}

// leastPause is waited for where the platform does not say how long.
const leastPause = time.Second

// longestPause bounds what is believed of another process.
const longestPause = 24 * time.Hour

// pause lets nothing through to a chat, "" being all of them, before then. What
// waited goes on at the usual pace, not with a burst.
func (p *Pacer) pause(chat string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, pace := &p.account, p.limits.Account
	if chat != "" {
		pace = p.paceOf(chat)
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

// Until is when the pause of a chat, or of all of them, is over.
func (p *Pacer) Until(chat string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.account.blocked
	if b := p.chats[chat]; b != nil && b.blocked.After(until) {
		until = b.blocked
	}
	return until
}
