package billing_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus/sqlitebus"
	"parley/channels/billing"
)

// The sweeper looks every ten seconds, also after a failure, and in one process at a time.
func TestTheSweeperSettlesAbandonedReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		var first, second atomic.Int32
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 2)
		for _, looked := range []*atomic.Int32{&first, &second} {
			sweeper := &billing.Sweeper{Bus: b, Log: slog.New(slog.DiscardHandler), Settle: func(context.Context) (int, error) {
				if looked.Add(1) == 2 {
					return 0, errors.New("the store is away")
				}
				return 1, nil
			}}
			go func() { over <- sweeper.Run(ctx) }()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, m := first.Load(), second.Load(); max(n, m) < 6 || max(n, m) > 7 || min(n, m) != 0 {
			t.Errorf("in a minute it was looked %d and %d times", n, m)
		}
		stop()
		for range 2 {
			if err := <-over; err != nil {
				t.Error(err)
			}
		}
	})
}
