package slack

import (
	"context"
	"time"

	"parley/bus"
)

// Quicken has dead sockets found, and the cursor saved, sooner.
func (c *Channel) Quicken(ping, silence, save time.Duration) {
	c.pulse.ping, c.pulse.silence, c.pulse.save = ping, silence, save
}

// Hurry has what cannot be read put off at once, and tried again soon.
func (c *Channel) Hurry() { c.pulse.patience, c.pulse.again = time.Nanosecond, 20*time.Millisecond }

// Narrow leaves room for that many messages that wait to be published.
func (c *Channel) Narrow(room int) { c.room = room }

// HeardAfter tells whether something counts as missed when a sign of life comes
// so long after the one before.
func (c *Channel) HeardAfter(silence time.Duration) bool {
	g := newGaps(&receiver{channel: c})
	g.open, g.alive = 1, wallClock().Add(-silence)
	g.heard()
	return g.current() != nil
}

// Hand has a message that names nobody published, as a socket's is.
func (c *Channel) Hand(ctx context.Context, text string, publish func(context.Context, bus.Inbound) error) bool {
	r := &receiver{channel: c, publish: publish, lanes: map[string]*lane{}, handed: newCache[struct{}](time.Hour), lately: newCache[struct{}](time.Hour)}
	return r.hand(ctx, &message{Type: "message", Channel: "C1", ChannelType: "channel", User: "U1", Text: text, TS: "1700000000.000100"}, nothing)
}

// Rooms are what a sweep waits for before it reads a chat, and what lets a chat be
// read in which something is said.
func (c *Channel) Rooms() (sweep func(context.Context) bool, live func() bool) {
	g := newGaps(&receiver{channel: c})
	return g.room, g.limiter.Allow
}
