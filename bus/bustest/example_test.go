package bustest_test

import (
	"context"
	"testing"

	"parley/bus/bustest"
	"parley/bus/sqlitebus"
)

// These two functions are all the tests that a bus needs: each promise of package bus is a subtest of TestBus. The
// suites for a store, a channel and a channel's book are called in the same way: sessionstest.Run,
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
	TestMain := func(m *testing.M) { bustest.Main(m, harness) } // lets the suite start and kill its own processes
	TestBus := func(t *testing.T) { bustest.Run(t, harness) }

	_, _ = TestMain, TestBus
}
