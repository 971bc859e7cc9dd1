package sqldb_test

import (
	"errors"
	"sync"
	"testing"

	"parley/sessions/sqldb/sqldbtest"
)

// After a failover, a connection may still reach the old server, which accepts no writes, while a new
// connection reaches the new one.
func TestReadOnlyConnectionsAreReplaced(t *testing.T) {
	db := openAt(t, sqldbtest.New(t)+"&pool_max_conns=1", schemaOf(schema...))
	for i, write := range []func(n int) error{
		func(n int) error { return db.Write(t.Context(), insert(n)) },
		func(n int) error {
			_, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (?, '')", n)
			return err
		},
		func(n int) error {
			var s string
			return db.Get(t.Context(), "INSERT INTO t (n, s) VALUES (?, '') RETURNING s", []any{n}, &s)
		},
		func(n int) error {
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for j := range errs {
				wg.Go(func() { _, errs[j] = db.Group(t.Context(), "INSERT INTO t (n, s) VALUES (?, '')", []any{n + j}) })
			}
			wg.Wait()
			return errors.Join(errs...)
		},
	} {
		if _, err := db.Read.Exec("SET default_transaction_read_only = on"); err != nil { // as on a standby
			t.Fatal(err)
		}
		// The statements of a refused group run one by one, over the next connection.
		if err := write(100 * i); err == nil && i < 3 {
			t.Errorf("write %d passed on a server that takes none", i)
		}
		if err := write(100*i + 50); err != nil {
			t.Errorf("write %d, on the next connection: %v", i, err)
		}
	}
}
