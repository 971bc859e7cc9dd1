package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/agent/metrics"
	"parley/bus"
	"parley/cmd/parley/api"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/data/home"
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

// inFleet reports whether this process is one of a fleet.
func (f *foundation) inFleet() bool { return f.settings.Load().Bus.URL != "" }

// describe tells the other processes what this one is, until ctx is done.
func (f *foundation) describe(ctx context.Context) error {
	home.Describe(ctx, f.home, home.Process{Role: string(f.role), Release: f.version, Host: hostName(), Started: f.started.UTC()}, f.log)
	return nil
}

// processes returns the function that lists the processes of the fleet for the API, or nil if there is no fleet. A
// command that only reads leaves itself out.
func (f *foundation) processes() func(context.Context) (*api.Fleet, error) {
	if !f.inFleet() {
		return nil
	}
	return func(ctx context.Context) (*api.Fleet, error) {
		all, err := home.Processes(ctx, f.home)
		if err != nil {
			return nil, err
		}
		if f.role == Reader {
			all = all[1:]
		}
		fleet := &api.Fleet{Shards: f.settings.Load().Bus.ShardCount(), Processes: []api.FleetProcess{}}
		for _, p := range all {
			fleet.Processes = append(fleet.Processes, api.FleetProcess{
				Name: p.Name, Role: p.Role, Release: p.Release, Host: p.Host, Started: exchange.SomeTime(p.Started), Holds: p.Holds,
			})
		}
		return fleet, nil
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

// subscriptions returns the state of each subscription for the metrics.
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
