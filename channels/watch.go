package channels

import (
	"context"
	"time"

	"parley/bus"
)

// A listener keeps up with which turns run. Neither method may take long.
type listener interface {
	heard(e bus.Event)
	// missed says that events were lost.
	missed()
}

// watch follows the events of a channel on behalf of all listeners.
func watch(ctx context.Context, events bus.Events, channel string, listeners []listener) {
	missed := func() {
		for _, l := range listeners {
			l.missed()
		}
	}
	for ctx.Err() == nil {
		feed, err := events.Subscribe(ctx, bus.ChannelFeed(channel), 0)
		if err != nil {
			select {
			case <-time.After(time.Second):
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
				l.heard(e)
			}
		}
		missed()
	}
}
