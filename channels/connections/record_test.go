package connections_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus/sqlitebus"
	"parley/channels/connections"
)

// Each change is recorded once for subscribers, no matter how often the database fails in between.
func TestEachChangeIsRecordedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus.db")
	synctest.Test(t, func(t *testing.T) {
		b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		var known, up, broken atomic.Bool
		var mu sync.Mutex
		var recorded []string
		w := connections.Watch{
			Events: b, Channels: []connections.Channel{{Name: "slack", Known: known.Load, Up: up.Load}}, Log: slog.New(slog.DiscardHandler),
			Record: func(_ context.Context, channel, state string) error {
				if broken.Load() {
					return errors.New("it is broken")
				}
				mu.Lock()
				defer mu.Unlock()
				recorded = append(recorded, channel+" "+state)
				return nil
			},
		}
		var running sync.WaitGroup
		running.Go(func() {
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(running.Wait)
		for _, now := range []struct{ known, up, broken bool }{{false, true, false}, {true, true, false}, {true, false, true}, {true, false, false}, {true, true, true}, {true, false, false}, {true, true, false}} {
			known.Store(now.known)
			up.Store(now.up)
			broken.Store(now.broken)
			time.Sleep(5 * time.Second)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"slack up", "slack down", "slack up"}; !slices.Equal(recorded, want) {
			t.Errorf("recorded are %q, want %q", recorded, want)
		}
	})
}
