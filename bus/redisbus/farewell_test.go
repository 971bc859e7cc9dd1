package redisbus_test

import (
	"context"
	"testing"

	"parley/bus"
)

// The ends of the last turns are emitted right before the bus is closed.
func TestWhatIsEmittedLastIsSent(t *testing.T) {
	t.Parallel()
	const many = 300 // more than one call takes
	r := newRig(t, testLease)
	other := r.another(testLease, newGate())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen, err := r.Subscribe(ctx, bus.SessionFeed("s"), 0)
	r.ok("subscribe", err)
	for i := range many {
		other.Emit(bus.Event{Type: bus.BlockDelta, Session: "s", Block: i})
	}
	r.ok("close", other.Close())
	next := 0
	for e, err := range seen {
		if err != nil || e.Block != next {
			t.Fatalf("event %d is %+v, %v", next, e, err)
		}
		if next++; next == many {
			return
		}
	}
	t.Errorf("%d of %d events came", next, many)
}
