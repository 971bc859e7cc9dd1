package sqldb_test

import (
	"net/url"
	"sync"
	"testing"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// Two processes want more connections than the server allows. Each continues with the connections that it has,
// and no write fails.
func TestFewerConnectionsThanWanted(t *testing.T) {
	t.Parallel()
	owner := sqldbtest.Start(t).URL()
	sqldbtest.Query(t, "pgx", owner, "CREATE ROLE app LOGIN CONNECTION LIMIT 4")
	sqldbtest.Query(t, "pgx", owner, "GRANT CREATE ON SCHEMA public TO app")
	u, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("app")
	processes := []*sqldb.DB{openAt(t, u.String(), schemaOf(schema...)), openAt(t, u.String(), schemaOf(schema...))}
	var wg sync.WaitGroup
	for i, db := range processes {
		for j := range 40 {
			wg.Go(func() {
				for k := range 5 {
					n := 1000*i + 10*j + k
					var err error
					if k%2 == 0 {
						err = db.Write(t.Context(), insert(n))
					} else {
						_, err = db.Group(t.Context(), "INSERT INTO t (n, s) VALUES (?, '')", []any{n})
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if got := countAll(t, processes[0]); got != 400 {
		t.Errorf("%d rows, want 400", got)
	}
}
