package bus

import (
	"context"
	"time"
)

// A Listener is told of the events of a channel. Neither method may take long:
// the events behind wait meanwhile.
type Listener interface {
	Heard(e Event)
	// Missed says that events were lost.
	Missed()
}

const subscribeAgain = time.Second // wait after a subscription that failed

// Follow tells all listeners of a channel's events until ctx is done. It
// subscribes again whenever the subscription ends, and each time says that events
// were lost in between.
func Follow(ctx context.Context, events Events, channel string, listeners ...Listener) {
	missed := func() {
		for _, l := range listeners {
			l.Missed()
		}
	}
	for ctx.Err() == nil {
		feed, err := events.Subscribe(ctx, ChannelFeed(channel), 0)
		if err != nil {
			select {
			case <-time.After(subscribeAgain):
				continue
			case <-ctx.Done():
				return
			}
		}
		for e, err := range feed {
			if err != nil {
				missed()
				continue
			}
			for _, l := range listeners {
				l.Heard(e)
			}
		}
		missed()
	}
}
