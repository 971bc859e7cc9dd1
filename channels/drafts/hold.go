package drafts

import (
	"context"
	"time"

	"parley/channels"
)

// mayHaveLostHold reports whether this process has given up the channel's name, or was paused since then for so
// long that others may be sending through the channel.
func mayHaveLostHold(held context.Context, since time.Time) bool {
	return held.Err() != nil || time.Since(since) > channels.LeasePatience
}

// channelLeaseCheck returns the lease check for drafts: this process may show them until held, its hold on the
// channel's name, ends. After a pause, the timer that ends it fires late, so the check waits.
func channelLeaseCheck(held context.Context, asked time.Time) channels.LeaseCheck {
	return channels.LeaseCheck{CheckedAt: asked, Check: func(context.Context) error {
		select {
		case <-held.Done():
			return context.Cause(held)
		case <-time.After(alarmDelay):
			return nil
		}
	}}
}

// alarmDelay is much longer than it takes a due timer to fire.
const alarmDelay = 100 * time.Millisecond
