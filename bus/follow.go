package bus

import (
	"context"
	"time"
)

// A Listener gets the events of a channel from Follow. Neither method may take long, because
// later events wait meanwhile.
type Listener interface {
	// Heard handles one event.
	Heard(e Event)
	// Missed is called when events were lost, so that the listener no longer assumes it has seen
	// all of them.
	Missed()
}

const resubscribeWait = time.Second // the wait after a subscription that failed

// Follow passes a channel's events to all listeners until ctx is done. Whenever the
// subscription ends, it calls Missed and subscribes again.
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
			case <-time.After(resubscribeWait):
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
