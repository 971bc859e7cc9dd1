package sqlstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"parley/sessions/sessionstest"
	"parley/sessions/sqlstore"
)

func harness() sessionstest.Harness {
	return sessionstest.Harness{
		New: func(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") },
		Open: func(ctx context.Context, place string) (sessionstest.Store, error) {
			return sqlstore.Open(ctx, place)
		},
	}
}

func TestStore(t *testing.T) { sessionstest.Run(t, harness()) }

func BenchmarkStore(b *testing.B) { sessionstest.Benchmark(b, harness()) }
