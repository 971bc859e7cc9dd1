package connections_test

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/channels/connections"
)

// Each change is emitted once. A process that learns the state of a channel emits it again.
func TestEachChangeIsEmittedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus.db")
	synctest.Test(t, func(t *testing.T) {
		b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		news := bustest.News(t, b)
		var known, up atomic.Bool
		w := connections.Watch{Events: b, Channels: []connections.Channel{{Name: "slack", Known: known.Load, Up: up.Load}}}
		var running sync.WaitGroup
		running.Go(func() {
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
		for _, now := range []struct{ known, up bool }{{false, true}, {true, true}, {true, false}, {false, true}, {true, true}} {
			known.Store(now.known)
			up.Store(now.up)
			time.Sleep(5 * time.Second)
		}
		const told = "channel session= turn= id=slack kind= state="
		if got, want := news(), []string{told + "up", told + "down", told + "up"}; !slices.Equal(got, want) {
			t.Errorf("told are %q, want %q", got, want)
		}
		t.Cleanup(running.Wait)
	})
}
