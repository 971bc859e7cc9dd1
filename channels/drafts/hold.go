package drafts

import (
	"context"
	"time"

	"parley/channels"
)

// mayHaveLostHold reports whether, since that time, this process stood still so long that others
// may send through the channel, or has given up the channel's name.
func mayHaveLostHold(held context.Context, since time.Time) bool {
	return held.Err() != nil || time.Since(since) > channels.LeasePatience
}

// channelLeaseCheck returns the lease check for drafts: this process may show them until held, its
// hold of the channel, ends. The timer that ends it fires late after a pause, so the check waits.
func channelLeaseCheck(held context.Context, asked time.Time) channels.LeaseCheck {
	return channels.LeaseCheck{Asked: asked, Ask: func(context.Context) error {
		select {
		case <-held.Done():
			return context.Cause(held)
		case <-time.After(alarmDelay):
			return nil
		}
	}}
}

// alarmDelay is much longer than it takes a timer that is due to fire.
const alarmDelay = 100 * time.Millisecond
