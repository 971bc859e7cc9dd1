package slack

import (
	"context"
	"time"

	"parley/bus"
)

// Quicken has dead sockets found, and the cursor saved, sooner.
func (c *Channel) Quicken(ping, silence, save time.Duration) {
	c.timing.ping, c.timing.silence, c.timing.save = ping, silence, save
}

// Hurry has what cannot be read put off at once, and tried again soon.
func (c *Channel) Hurry() {
	c.timing.patience, c.timing.retryAfter = time.Nanosecond, 20*time.Millisecond
}

// Narrow leaves room for that many messages that wait to be published.
func (c *Channel) Narrow(room int) { c.maxQueued = room }

// HeardAfter tells whether something counts as missed when a sign of life comes
// so long after the one before.
func (c *Channel) HeardAfter(silence time.Duration) bool {
	o := newOutages(c, nil)
	o.greetedSockets, o.lastHeard = 1, wallClock().Add(-silence)
	o.noteHeard()
	return o.currentGap() != nil
}

// Deliver publishes a message that names nobody, as one that a socket brought.
func (c *Channel) Deliver(ctx context.Context, text string, publish func(context.Context, bus.Inbound) error) bool {
	p := newPublisher(c, Account{}, newLanes(c.maxQueued, nil), publish)
	return p.deliver(ctx, &message{Type: "message", Channel: "C1", ChannelType: "channel", User: "U1", Text: text, TS: "1700000000.000100"}, noAck)
}

// Rooms returns what a sweep waits for before it reads a chat, and what lets a chat
// be read in which something is said.
func (c *Channel) Rooms() (sweep func(context.Context) bool, live func() bool) {
	u := newCatchUp(c, newPublisher(c, Account{}, nil, nil), newOutages(c, nil))
	return u.awaitCapacity, u.limiter.Allow
}
