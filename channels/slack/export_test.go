package slack

import "time"

// Quicken has dead sockets found sooner.
func (c *Channel) Quicken(ping, silence time.Duration) { c.pulse = pulse{ping, silence} }
