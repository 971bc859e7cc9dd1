package pacing

import (
	"errors"
	"time"

	"parley/bus"
	"parley/channels"
)

// A pause that a platform asks for applies to everything that goes to that chat, or through that account: messages,
// edits, drafts, typing, reactions and the gate's replies. Gateway and Dispatcher may run in two processes; each
// announces a pause to the other with an event, which can get lost: a process that misses it will be told by the
// platform itself.

// NoteLimit records a pause if err says that the platform's rate limit was exceeded: nothing goes to the chat, or
// to any of the account's chats, before the pause is over. It returns the length of the pause; 0 if err is
// something else.
func (p *Pacer) NoteLimit(chat string, err error) time.Duration {
	fault, ok := errors.AsType[*channels.SendError](err)
	if !ok || !fault.RateLimited {
		return 0
	}
	pause := max(fault.RetryAfter, minPause)
	if fault.AccountWide {
		chat = ""
	}
	p.pause(chat, time.Now().Add(pause))
	if p.emit != nil {
		p.emit(bus.Event{Type: bus.Limited, Route: bus.Address{Channel: p.name, Chat: chat}, Call: p.id, Delta: pause.String()})
	}
	return pause
}

// Heard implements bus.Listener: it applies a pause that the platform has asked another process for.
func (p *Pacer) Heard(e bus.Event) {
	if e.Type != bus.Limited || e.Call == p.id {
		return
	}
	if pause, err := time.ParseDuration(e.Delta); err == nil {
		p.pause(e.Route.Chat, time.Now().Add(min(pause, longestPause)))
	}
}

// Missed implements bus.Listener. It does nothing: if the event that announced a pause was lost, this process will
// learn of the pause from the platform.
func (p *Pacer) Missed() {}

// minPause is the length of the shortest pause, which is also used if the platform does not say how long.
const minPause = time.Second

// longestPause limits a pause that another process announces.
const longestPause = 24 * time.Hour

// pause lets nothing through to a chat, or to any chat if chat is "", before `until`. Messages that have waited are
// then sent at the usual pace, not in a burst.
func (p *Pacer) pause(chat string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, pace := &p.account, p.limits.Account
	if chat != "" {
		pace = p.paceOf(chat)
		if b = p.chats[chat]; b == nil {
			b = p.addChat(chat, time.Now())
		}
	}
	if !until.After(b.blockedUntil) {
		return
	}
	b.blockedUntil = until
	if empty := until.Add(time.Duration(max(pace.Burst, 1)-1) * pace.Every); empty.After(b.evenUntil) {
		b.evenUntil = empty
	}
}

// PausedUntil returns when the pause of a chat, or of the whole account, is over; a time in the past if there is no
// pause now.
func (p *Pacer) PausedUntil(chat string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.account.blockedUntil
	if b := p.chats[chat]; b != nil && b.blockedUntil.After(until) {
		until = b.blockedUntil
	}
	return until
}
