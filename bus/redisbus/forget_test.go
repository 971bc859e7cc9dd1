package redisbus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/bus"
)

// When one process forgets something, all processes do.
func TestForgetInTheFleet(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	other := r.another(testLease, newNetwork())
	r.publish("k", "keep")
	for i := range 150 {
		r.publish("k", fmt.Sprint("drop", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := other.Claim(ctx, inbound)
	r.ok("claim", err)
	feed := bus.SessionFeed("s")
	watch, stop := context.WithCancel(ctx)
	defer stop()
	seen, err := other.Subscribe(watch, feed, 0)
	r.ok("subscribe", err)
	for i := range 5 {
		r.Emit(bus.Event{Type: bus.BlockDelta, Session: "s", Block: i, Delta: "a secret"})
	}

	drop := func(_ bus.Topic, m bus.Message) bool { return strings.HasPrefix(m.ID, "drop") }
	got, err := r.Forget(ctx, drop, "s")
	r.ok("forget", err)
	if want := (bus.Forgotten{Messages: 150, Leases: 1}); got != want {
		t.Errorf("forgot %+v, want %+v", got, want)
	}
	start := time.Now()
	select {
	case <-l.Lost():
		if took := time.Since(start); took > testLease/3 {
			t.Errorf("the holder learned of it after %v", took)
		}
	case <-ctx.Done():
		t.Fatal("the holder never learned of it")
	}
	next := r.claim("k")
	if took := time.Since(start); took < time.Second {
		t.Errorf("claimed again after %v, while what was under way may go on", took)
	}
	r.finish(next, "keep")

	r.Emit(bus.Event{Type: bus.BlockDelta, Session: "s", Block: 5})
	for e, err := range seen {
		if err != nil && !errors.Is(err, bus.ErrGone) {
			t.Fatal(err)
		}
		if strings.Contains(e.Delta, "secret") {
			t.Errorf("a watcher elsewhere sees %+v", e)
		}
		if e.Block == 5 {
			break
		}
	}
	r.idle()
}

// An answer to Forget ends the forgetting: events emitted afterwards are kept, even if the fleet hears of the request
// twice.
func TestForgetHeardTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen, err := r.Subscribe(ctx, bus.SessionFeed("s"), 0)
	r.ok("subscribe", err)
	const channel = "parley:{0}:forgotten"
	listener := r.redis.Subscribe(ctx, channel)
	_, err = listener.Receive(ctx)
	r.ok("listen", err)
	defer func() { r.ok("stop listening", listener.Close()) }()
	_, err = r.Forget(ctx, func(bus.Topic, bus.Message) bool { return false }, "s")
	r.ok("forget", err)
	heard, err := listener.ReceiveMessage(ctx)
	r.ok("hear", err)

	stream := "parley:{0}:events:session/s"
	r.Emit(bus.Event{Type: bus.BlockDelta, Session: "s", Block: 1})
	r.await("the event to be sent", func() bool { return r.redis.XLen(ctx, stream).Val() == 1 })
	r.ok("say it again", r.redis.Publish(ctx, channel, heard.Payload).Err())
	r.Emit(bus.Event{Type: bus.BlockDelta, Session: "s", Block: 2})
	want := 1
	for e, err := range seen {
		if err != nil || e.Block != want {
			t.Fatalf("the watcher sees %+v, %v, want block %d", e, err, want)
		}
		if want++; want > 2 {
			break
		}
	}
}
