package billing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
)

// sweepEvery is how often what nobody works on is looked for: with the time for which a reservation
// counts as worked on it is less than a minute.
const sweepEvery = 10 * time.Second

// A Sweeper settles what turns have set aside on which nobody works any more, because their process was
// killed. In a fleet one process does so at a time.
type Sweeper struct {
	Bus bus.Holder
	// Settle settles it, and returns how many reservations that were.
	Settle func(ctx context.Context) (int, error)
	Log    *slog.Logger
}

// Run settles what nobody works on until ctx is done.
func (s *Sweeper) Run(ctx context.Context) error {
	err := bus.WhileHeld(ctx, s.Bus, "budgets", func(held context.Context) error {
		s.sweep(held)
		return nil
	})
	if err != nil {
		return fmt.Errorf("settle what nobody works on: %w", err)
	}
	return nil
}

func (s *Sweeper) sweep(held context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		n, err := s.Settle(held)
		if n > 0 {
			s.Log.Info("settled what was set aside for calls that nobody works on any more", slog.Int("reservations", n))
		}
		if err != nil && held.Err() == nil {
			s.Log.Warn("what nobody works on is not settled; trying again", slog.Any("error", err))
		}
		select {
		case <-tick.C:
		case <-held.Done():
			return
		}
	}
}
