package bustest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
)

// These constants are how many goroutines each side of the throughput benchmark has, and how long a message's body
// is.
const (
	benchProducers = 8
	benchWorkers   = 32
	benchBody      = 512
)

// Bench measures how many messages a bus carries at saturation, and how long one message
// takes at 500 a second.
func Bench(b *testing.B, h Harness) {
	b.Run("publish", func(b *testing.B) { benchPublish(b, h) })
	b.Run("paced", func(b *testing.B) { benchLatency(b, h) })
	for _, keys := range []int{1, 100, 10000} {
		b.Run("through/keys="+strconv.Itoa(keys), func(b *testing.B) { benchThroughput(b, h, keys) })
	}
}

// benchOpen opens a bus over a new place until the benchmark ends.
func benchOpen(b *testing.B, h Harness) Bus {
	b.Helper()
	x, err := h.Open(b.Context(), h.NewPlace(b), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := x.Close(); err != nil {
			b.Error(err)
		}
	})
	return x
}

// benchMessage returns the message with number i, which goes to one of that many mailboxes.
func benchMessage(i, keys int) bus.Message {
	return bus.Message{ID: "id-" + strconv.Itoa(i), Key: "main:telegram:" + strconv.Itoa(i%keys), Body: make([]byte, benchBody)}
}

// report reports the median and the 99th percentile of the times in took, in milliseconds. It sorts took.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*q/100])/1e6, fmt.Sprintf("p%d-ms", q))
	}
}

// benchPublish publishes one message after another.
func benchPublish(b *testing.B, h Harness) {
	x := benchOpen(b, h)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := x.Publish(b.Context(), inbound, benchMessage(len(took), 100)); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}

// workUntil claims mailboxes, reads and settles their mail until ctx ends, and calls got with each
// message and its lease.
func workUntil(ctx context.Context, x Bus, got func(bus.Lease, bus.Message)) error {
	for {
		l, err := x.Claim(ctx, inbound)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		mail, err := l.Mail(ctx, 0)
		if err != nil {
			return err
		}
		for _, m := range mail {
			got(l, m)
		}
		if err := l.Settle(context.WithoutCancel(ctx), bus.End{Done: mail[len(mail)-1].Seq}); err != nil {
			return err
		}
	}
}

// benchLatency publishes 500 messages a second, and measures the time from before each call of
// Publish until a worker has the message.
func benchLatency(b *testing.B, h Harness) {
	x := benchOpen(b, h)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	started := make(chan time.Time, 1)
	took := make(chan time.Duration, 1)
	var wg sync.WaitGroup
	for range benchWorkers {
		wg.Go(func() {
			if err := workUntil(ctx, x, func(bus.Lease, bus.Message) { took <- time.Since(<-started) }); err != nil {
				b.Error(err)
			}
		})
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var all []time.Duration
	for b.Loop() {
		<-tick.C
		started <- time.Now()
		if err := x.Publish(ctx, inbound, benchMessage(len(all), 100)); err != nil {
			b.Fatal(err)
		}
		all = append(all, <-took)
	}
	cancel()
	wg.Wait()
	report(b, all)
}

// benchThroughput measures how many messages a second several producers can send to several
// workers, over that many mailboxes (keys).
func benchThroughput(b *testing.B, h Harness, keys int) {
	x := benchOpen(b, h)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var workers, producers sync.WaitGroup
	var next, done atomic.Int64
	b.ResetTimer()
	for range benchWorkers {
		workers.Go(func() {
			err := workUntil(ctx, x, func(bus.Lease, bus.Message) {
				if done.Add(1) == int64(b.N) {
					cancel()
				}
			})
			if err != nil {
				b.Error(err)
				cancel()
			}
		})
	}
	for range benchProducers {
		producers.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := x.Publish(b.Context(), inbound, benchMessage(int(i), keys)); err != nil {
					b.Error(err)
					cancel()
				}
			}
		})
	}
	producers.Wait()
	<-ctx.Done()
	workers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
