package sqlitebus_test

import (
	"context"
	"testing"

	"parley/bus/bustest"
	"parley/bus/sqlitebus"
)

func harness() bustest.Harness {
	return bustest.Harness{
		Place: bustest.FilePlace,
		Open: func(ctx context.Context, place string, o bustest.Options) (bustest.Bus, error) {
			return sqlitebus.Open(ctx, sqlitebus.Config{Path: place, Caps: o.Caps, MaxHold: o.MaxHold})
		},
		Residue: func(t testing.TB, _ string, b bustest.Bus) []string {
			keys, err := b.(*sqlitebus.Bus).Keys()
			if err != nil {
				t.Fatal(err)
			}
			return keys
		},
		Simulated: true,
	}
}

func TestMain(m *testing.M) { bustest.Main(m, harness()) }

func TestBus(t *testing.T) { bustest.Run(t, harness()) }

func BenchmarkBus(b *testing.B) { bustest.Bench(b, harness()) }
