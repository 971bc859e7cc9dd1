package sqldb_test

import (
	"net/url"
	"strings"
	"testing"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// A user who may not create tables gets an error that says which right is missing. The user can work on tables
// that another user has created.
func TestAUserWhoMayNotCreateTables(t *testing.T) {
	t.Parallel()
	owner := sqldbtest.Start(t).URL()
	sqldbtest.Query(t, "pgx", owner, "REVOKE CREATE ON SCHEMA public FROM public") // the default since PostgreSQL 15
	sqldbtest.Query(t, "pgx", owner, "CREATE ROLE runner LOGIN")
	u, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("runner")
	runner := u.String()
	health := func() sqldb.Health {
		t.Helper()
		h, err := sqldb.Probe(t.Context(), runner)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	s := schemaOf(schema...)
	if _, err := sqldb.OpenAt(t.Context(), runner, s); err == nil || !strings.Contains(err.Error(), "GRANT CREATE ON SCHEMA") {
		t.Errorf("an empty database: %v", err)
	}
	if h := health(); h.MayCreateTables || len(h.Versions) > 0 {
		t.Errorf("doctor hears %+v", h)
	}
	openAt(t, owner, s)
	sqldbtest.Query(t, "pgx", owner, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO runner")
	db := openAt(t, runner, s)
	if err := db.Write(t.Context(), insert(1)); err != nil {
		t.Error(err)
	}
	next := schemaOf(append(schema, "CREATE TABLE more (n INTEGER)")...)
	if _, err := sqldb.OpenAt(t.Context(), runner, next); err == nil || !strings.Contains(err.Error(), "GRANT CREATE ON SCHEMA") {
		t.Errorf("the next release: %v", err)
	}
	sqldbtest.Query(t, "pgx", owner, "GRANT CREATE ON SCHEMA public TO runner")
	if h := health(); !h.MayCreateTables {
		t.Errorf("doctor hears %+v", h)
	}
	openAt(t, runner, next)
}
