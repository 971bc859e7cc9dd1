package redisbus_test

import (
	"context"
	"testing"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/redisbus/redistest"
)

// Two bots can share a server if each uses its own database.
func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	feed := bus.SessionFeed("s")
	next := func(database, says string) (*redisbus.Bus, func() bus.Event) {
		t.Helper()
		b, err := redisbus.Open(ctx, redisbus.Config{URL: s.URL() + database})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
		seen, err := b.Subscribe(ctx, feed, 0)
		if err != nil {
			t.Fatal(err)
		}
		return b, func() bus.Event {
			b.Emit(bus.Event{Type: bus.BlockDelta, Session: "s", Delta: says})
			for e, err := range seen {
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			t.Fatal("nothing is seen")
			return bus.Event{}
		}
	}
	one, sayOne := next("/0", "one")
	_, sayOther := next("/1", "other")
	if _, err := redisbus.NewImporter(ctx, one, "move"); err != nil {
		t.Errorf("it is not alone: %v", err)
	}
	if e := sayOther(); e.Delta != "other" {
		t.Errorf("a watcher of the other sees %+v", e)
	}
	if e := sayOne(); e.Delta != "one" {
		t.Errorf("a watcher of the one sees %+v", e)
	}
}
