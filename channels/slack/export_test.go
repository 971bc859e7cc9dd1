package slack

import (
	"context"
	"time"

	"parley/bus"
)

// ShortenTimeouts makes the Channel find dead sockets, and save the cursor, sooner.
func (c *Channel) ShortenTimeouts(ping, silence, save time.Duration) {
	c.timing.pingInterval, c.timing.maxSilence, c.timing.saveInterval = ping, silence, save
}

// PostponeFailedReads makes the Channel postpone a chat as soon as reading it fails, and try again soon.
func (c *Channel) PostponeFailedReads() {
	c.timing.readTimeout, c.timing.retryAfter = time.Nanosecond, 20*time.Millisecond
}

// LimitQueue limits how many messages may wait to be published.
func (c *Channel) LimitQueue(room int) { c.maxQueued = room }

// DetectsGapAfter reports whether the Channel records a gap when Slack gives a sign of life after such a
// silence.
func (c *Channel) DetectsGapAfter(silence time.Duration) bool {
	o := newOutages(c, nil)
	o.greetedSockets, o.lastHeard = 1, wallClock().Add(-silence)
	o.noteHeard()
	return o.currentGap() != nil
}

// Deliver publishes a message without a mention, as if it had arrived over a socket.
func (c *Channel) Deliver(ctx context.Context, text string, publish func(context.Context, bus.Inbound) error) bool {
	p := newPublisher(c, Account{}, newLanes(c.maxQueued, nil), publish)
	return p.deliver(ctx, &message{Type: "message", Channel: "C1", ChannelType: "channel", User: "U1", Text: text, TS: "1700000000.000100"}, noAck)
}

// HistoryReadChecks returns what the sweep calls before it reads a chat, and what is called before a chat with
// new messages is read.
func (c *Channel) HistoryReadChecks() (sweep func(context.Context) bool, live func() bool) {
	u := newCatchUp(c, newPublisher(c, Account{}, nil, nil), newOutages(c, nil))
	return u.awaitCapacity, u.limiter.Allow
}
