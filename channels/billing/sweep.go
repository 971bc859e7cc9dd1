package billing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
)

// sweepInterval is how often abandoned reservations are looked for. Together with the time for which a reservation
// counts as being worked on, it is less than a minute.
const sweepInterval = 10 * time.Second

// A Sweeper settles the reservations of turns that nobody works on anymore because their process was killed. In a
// fleet, only one process does so at a time.
type Sweeper struct {
	Bus bus.Holder
	// Settle settles the reservations of such turns once, and returns how many there were.
	Settle func(ctx context.Context) (int, error)
	Log    *slog.Logger
}

// Run settles the reservations of turns that nobody works on anymore, until ctx is done.
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
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		n, err := s.Settle(held)
		if n > 0 {
			s.Log.Info("settled what was set aside for calls that nobody works on anymore", slog.Int("reservations", n))
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
