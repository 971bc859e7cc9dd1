package slack

import "time"

// Quicken has dead sockets found, and the cursor saved, sooner.
func (c *Channel) Quicken(ping, silence, save time.Duration) {
	c.pulse.ping, c.pulse.silence, c.pulse.save = ping, silence, save
}

// Hurry has what cannot be read put off at once, and tried again soon.
func (c *Channel) Hurry() { c.pulse.patience, c.pulse.again = time.Nanosecond, 20*time.Millisecond }

// Narrow leaves room for that many messages that wait to be published.
func (c *Channel) Narrow(room int) { c.room = room }
