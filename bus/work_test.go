package bus_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
)

// flaky is a real lease whose first Settle fails as if the disk were full.
type flaky struct {
	bus.Lease
	failures int
}

func (f *flaky) Settle(ctx context.Context, end bus.End) error {
	if f.failures > 0 {
		f.failures--
		return errors.New("disk full")
	}
	return f.Lease.Settle(ctx, end)
}

func openBus(t *testing.T) *sqlitebus.Bus {
	t.Helper()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestClaimEachBoundsWhatRunsAtOnceAndWaitsForIt(t *testing.T) {
	const mailboxes, atOnce = 6, 2
	b := openBus(t)
	for i := range mailboxes {
		key := fmt.Sprintf("k%d", i)
		if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: key, Key: key, Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running, most, settled atomic.Int32
	full := make(chan struct{})
	wait, err := bus.ClaimEach(ctx, b, bus.InboundTopic, atOnce, func(lease bus.Lease) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if n == atOnce {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		<-full // the first waits until the maximum number of them runs
		bus.RetrySettle(context.WithoutCancel(ctx), &flaky{Lease: lease, failures: 1}, bus.End{Done: 1 << 60}, time.Minute, func(error) {})
		if settled.Add(1) == mailboxes {
			stop()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	wait()
	if most.Load() != atOnce || settled.Load() != mailboxes || running.Load() != 0 {
		t.Errorf("at most %d ran at once, %d settled, %d still run", most.Load(), settled.Load(), running.Load())
	}
}

func TestRetrySettleEndsWhenTheLeaseIsOver(t *testing.T) {
	b := openBus(t)
	if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "1", Key: "k", Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	lease, err := b.Claim(t.Context(), bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	fails := func(error) { tries++ }
	bus.RetrySettle(t.Context(), &flaky{Lease: lease, failures: 2}, bus.End{Done: 1 << 60}, time.Minute, fails)
	if tries != 2 {
		t.Errorf("failed %d times, want 2", tries)
	}
	// The lease is settled: the first answer of the bus ends the retries, whatever failed before.
	bus.RetrySettle(t.Context(), &flaky{Lease: lease, failures: 1}, bus.End{}, time.Minute, fails)
	if tries != 3 {
		t.Errorf("failed %d times, want 3", tries)
	}
}

// losing is a real bus whose first lease is lost at once.
type losing struct {
	bus.Holder
	lost bool
}

func (l *losing) Hold(ctx context.Context, name string) (context.Context, func(), error) {
	held, release, err := l.Holder.Hold(ctx, name)
	if err == nil && !l.lost {
		l.lost = true
		lost, lose := context.WithCancelCause(held)
		lose(bus.ErrFenced)
		held = lost
	}
	return held, release, err
}

func TestWhileHeldWorksAgainAfterALossAndGivesTheNameBack(t *testing.T) {
	b := openBus(t)
	ctx, stop := context.WithCancel(t.Context())
	works := 0
	err := bus.WhileHeld(ctx, &losing{Holder: b}, "name", func(held context.Context) error {
		if works++; works == 2 {
			stop()
		}
		<-held.Done()
		return nil
	})
	if err != nil || works != 2 {
		t.Errorf("it worked %d times and gave %v", works, err)
	}
	failed := errors.New("it went wrong")
	if err := bus.WhileHeld(t.Context(), b, "name", func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want the work's error", err)
	}
	b.Close()
	if err := bus.WhileHeld(t.Context(), b, "name", func(context.Context) error { return nil }); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("got %v of a closed bus", err)
	}
}

func TestCause(t *testing.T) {
	for id, want := range map[string]string{bus.ReplyID("a:1"): "a:1", bus.DerivedID("a:1", "#told"): "a:1", bus.ReplyID("a:1") + "/0": "a:1"} {
		if cause, derived := bus.Cause(id); cause != want || !derived {
			t.Errorf("Cause(%q) = %q, %v", id, cause, derived)
		}
	}
	if cause, derived := bus.Cause("a:1"); cause != "a:1" || derived {
		t.Errorf("of an id of its own: %q, %v", cause, derived)
	}
}
