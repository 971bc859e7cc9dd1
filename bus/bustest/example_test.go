package bustest_test

import (
	"context"
	"testing"

	"parley/bus/bustest"
	"parley/bus/sqlitebus"
)

// The tests of a bus are these two functions: each promise of package bus is a test below TestBus.
// The suites of a store, of a channel and of its book are called in the same way: sessionstest.Run,
// channelstest.RunChannel and channelstest.RunBook.
func ExampleRun() {
	harness := bustest.Harness{
		NewPlace: bustest.FilePlace,
		Open: func(ctx context.Context, place string, o bustest.Options) (bustest.Bus, error) {
			return sqlitebus.Open(ctx, sqlitebus.Config{Path: place, Caps: o.Caps, MaxHold: o.MaxHold})
		},
		Residue: func(t testing.TB, _ string, b bustest.Bus) []string {
			keys, err := b.(interface{ Keys() ([]string, error) }).Keys() // which the package exports to its tests
			if err != nil {
				t.Fatal(err)
			}
			return keys
		},
		Simulated: true,
	}
	TestMain := func(m *testing.M) { bustest.Main(m, harness) } // lets the suite start and kill processes of its own
	TestBus := func(t *testing.T) { bustest.Run(t, harness) }

	_, _ = TestMain, TestBus
}
