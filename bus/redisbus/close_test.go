package redisbus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
)

// within fails the test if f takes longer than d.
func (r *rig) within(d time.Duration, what string, f func()) {
	r.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
		r.Fatalf("%s takes longer than %v", what, d)
	}
}

// Close doesn't wait for a server that is away, whatever calls are pending.
func TestCloseInAnOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(r *rig) (end func()){
		"refused": func(r *rig) func() {
			r.network.cut()
			return r.network.restore
		},
		"stopped": func(r *rig) func() {
			r.server.Signal(r, syscall.SIGSTOP)
			return func() { r.server.Signal(r, syscall.SIGCONT) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, testLease)
			for i := range 20 {
				r.publish(fmt.Sprint("k", i), fmt.Sprint(i))
				_, err := r.Claim(t.Context(), inbound)
				r.ok("claim", err)
			}
			_, _, err := r.Hold(t.Context(), "name")
			r.ok("hold", err)
			defer outage(r)()
			var under, callers sync.WaitGroup
			call := func(n int, f func(i int) error) {
				for i := range n {
					under.Add(1)
					callers.Go(func() {
						under.Done()
						if f(i) == nil {
							t.Error("a call succeeds on a server that is away")
						}
					})
				}
			}
			ctx := t.Context()
			call(2000, func(i int) error {
				return r.Publish(ctx, inbound, bus.Message{ID: fmt.Sprint("late", i), Key: "k"})
			})
			call(8, func(i int) error { _, err := r.Claim(ctx, bus.Topic(fmt.Sprint("t", i))); return err })
			call(8, func(i int) error { _, err := r.Subscribe(ctx, bus.SessionFeed(fmt.Sprint(i)), 0); return err })
			call(1, func(int) error { _, _, err := r.Hold(ctx, "name"); return err })
			under.Wait()
			r.within(10*time.Second, "close", func() { r.ok("close", r.Close()) })
			r.within(5*time.Second, "to tell all callers", callers.Wait)
		})
	}
}

// A caller who subscribes during an outage may give up, or wait until it is over.
func TestSubscribeInAnOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	r.network.cut()
	var watchers sync.WaitGroup
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for i := range 10 {
		watchers.Go(func() {
			if _, err := r.Subscribe(soon, bus.SessionFeed(fmt.Sprint(i)), 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("subscribe: %v, want its context's error", err)
			}
		})
	}
	r.within(time.Second, "to go", watchers.Wait)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	watchers.Go(func() {
		seen, err := r.Subscribe(ctx, bus.SessionFeed("patient"), 0)
		if err != nil {
			t.Errorf("subscribe: %v", err)
			return
		}
		r.Emit(bus.Event{Type: bus.BlockDelta, Session: "patient"})
		for _, err := range seen {
			if err == nil {
				return
			}
		}
		t.Error("a patient watcher sees nothing")
	})
	r.network.restore()
	watchers.Wait()
}

// Events that are emitted right before Close, such as the ends of the last turns, are sent.
func TestWhatIsEmittedLastIsSent(t *testing.T) {
	t.Parallel()
	const many = 300 // more than one call can carry
	r := newRig(t, testLease)
	other := r.another(testLease, newNetwork())
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

// Close waits for events that have left the buffer but are still queued behind other calls.
func TestCloseSendsEventsThatAreOnTheirWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	way := newNetwork()
	other := r.another(testLease, way)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen, err := r.Subscribe(ctx, bus.SessionFeed("s"), 0)
	r.ok("subscribe", err)
	r.server.Signal(t, syscall.SIGSTOP)
	var calls sync.WaitGroup
	for i := range redisbus.Senders {
		before := way.written()
		calls.Go(func() { _ = other.Publish(ctx, inbound, bus.Message{ID: fmt.Sprint(i), Key: "k"}) })
		r.await("a call to be sent", func() bool { return way.written() > before })
	}
	other.Emit(bus.Event{Type: bus.BlockDelta, Session: "s"})
	r.await("the event to leave the buffer", func() bool { return other.Unsent() == 0 })
	calls.Go(func() { _ = other.Close() })
	if _, err := other.Subscribe(ctx, bus.SessionFeed("other"), 0); !errors.Is(err, bus.ErrClosed) { // it returns when Close has begun
		t.Errorf("subscribe, while the server stands still: %v", err)
	}
	r.server.Signal(t, syscall.SIGCONT)
	for _, err := range seen {
		r.ok("watch", err)
		calls.Wait()
		return
	}
	t.Error("the event has not come")
}

// Consecutive pieces of one block of an answer are sent in one call.
func TestPiecesOfAnAnswerAreSentTogether(t *testing.T) {
	t.Parallel()
	const pieces = 300
	r := newRig(t, testLease)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen, err := r.Subscribe(ctx, bus.ChannelFeed("telegram"), 0)
	r.ok("subscribe", err)
	emit := func(kind, turn string, block int, text string) {
		to := bus.Address{Channel: "telegram", Chat: turn}
		r.Emit(bus.Event{Type: kind, Session: "of " + turn, Route: to, Turn: turn, Block: block, Delta: text})
	}
	want := ""
	for block := range 2 {
		want = ""
		for i := range pieces {
			emit(bus.BlockDelta, "a", block, fmt.Sprint(i, " "))
			emit(bus.BlockDelta, "b", block, fmt.Sprint(i, " "))
			want += fmt.Sprint(i, " ")
		}
		emit(bus.BlockStop, "a", block, "")
		emit(bus.BlockStop, "b", block, "")
	}
	got, events, stops := map[string]string{}, 0, 0
	for e, err := range seen {
		if err != nil || e.Session != "of "+e.Turn || e.Route.Chat != e.Turn {
			t.Fatalf("%+v, %v", e, err)
		}
		part := fmt.Sprint(e.Turn, e.Block)
		events++
		got[part] += e.Delta
		if e.Type == bus.BlockStop {
			if got[part] != want {
				t.Errorf("part %s has %d of %d bytes, or others, before its end", part, len(got[part]), len(want))
			}
			if stops++; stops == 4 {
				break
			}
		}
	}
	if events > 2*pieces {
		t.Errorf("%d events for %d pieces that came at once", events, 4*pieces)
	}
}
