// Package sqlstoretest opens stores for tests on a database of each kind.
package sqlstoretest

import (
	"path/filepath"
	"testing"

	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// Each runs a test on SQLite and on PostgreSQL, with two stores over one
// database. at is the place of that database.
func Each(t *testing.T, test func(t *testing.T, at string, one, other *sqlstore.Store)) {
	for name, place := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") },
		"postgres": sqldbtest.New,
	} {
		t.Run(name, func(t *testing.T) {
			at := place(t)
			var stores []*sqlstore.Store
			for range 2 {
				s, err := sqlstore.Open(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				stores = append(stores, s)
			}
			test(t, at, stores[0], stores[1])
		})
	}
}
