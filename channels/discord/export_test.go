package discord

import "time"

// SaveEvery sets how often the cursor is saved.
func (c *Channel) SaveEvery(d time.Duration) { c.timing.save = d }

// SetRoom sets how much may wait to be published.
func (c *Channel) SetRoom(n int) { c.maxQueued = n }

// SetHello sets how long the gateway may take to greet.
func (c *Channel) SetHello(d time.Duration) { c.timing.hello = d }

// SetAnswer sets how long what somebody did may take before Discord is told to wait.
func (c *Channel) SetAnswer(d time.Duration) { c.timing.answerWithin = d }

// SetOverlap sets how much is read again before a gap.
func (c *Channel) SetOverlap(d time.Duration) { c.timing.overlap = d }
