package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/agent/metrics"
	"parley/bus"
)

// fleetMetricsHold is a name, held on the bus by one process at a time, that determines whose metrics include those
// of the whole fleet.
const fleetMetricsHold = "metrics"

// fleetMetrics makes this process's metrics include those of the whole fleet if no other process's do.
type fleetMetrics struct {
	foundation
	included atomic.Bool
}

// Run makes the metrics include those of the whole fleet while this process holds fleetMetricsHold, which it tries
// to get until ctx is done. Only processes that listen on HTTP call it, because nobody asks the others for metrics.
func (f *fleetMetrics) Run(ctx context.Context) {
	err := bus.WhileHeld(ctx, f.home.Bus, fleetMetricsHold, func(held context.Context) error {
		f.included.Store(true)
		<-held.Done()
		f.included.Store(false)
		return nil
	})
	if err != nil {
		f.log.Warn("this process cannot tell what the fleet shares", slog.Any("error", err))
	}
}

// shared returns the sources of the whole fleet's metrics.
func (f *fleetMetrics) shared() metrics.Fleet {
	return metrics.Fleet{
		Holder: f.included.Load, Bus: f.home.Bus, Book: f.home.Book, Subscriptions: f.subscriptions,
		Reserved: func(ctx context.Context) (int64, error) {
			aside, err := f.home.Store.Money().SetAside(ctx)
			return aside.All, err
		},
	}
}

// subscriptions returns how the programs do that events are posted to.
func (f *fleetMetrics) subscriptions(ctx context.Context) (all []metrics.Subscription, err error) {
	since := func(t time.Time) time.Duration {
		if t.IsZero() {
			return 0
		}
		return max(0, time.Since(t))
	}
	table := f.home.Store.Subscriptions()
	for _, name := range table.Names() {
		s, err := table.State(ctx, name)
		if err != nil {
			return all, err
		}
		all = append(all, metrics.Subscription{Name: name, Waiting: s.Waiting, Oldest: since(s.Oldest), Failing: since(s.Failing), Dropped: s.Dropped})
	}
	return all, nil
}
