package slack

import "time"

// Quicken has dead sockets found, and the cursor saved, sooner.
func (c *Channel) Quicken(ping, silence, save time.Duration) { c.pulse = pulse{ping, silence, save} }

// Narrow leaves room for that many messages that wait to be published.
func (c *Channel) Narrow(room int) { c.room = room }
