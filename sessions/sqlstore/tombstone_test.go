package sqlstore_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
)

// A holder whose fence is older than an erasure must not create the session again, with what it still
// remembers, by opening it during the erasure.
func TestOpeningDuringAnErasure(t *testing.T) {
	place := sqldbtest.New(t)
	s := openTestStore(t, place)
	const key = "main:telegram:1"
	if _, err := s.Open(t.Context(), key, 1); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	erasing, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = erasing.Rollback() }() // it has been committed by then
	for _, do := range []string{
		"UPDATE sessions SET fence = fence WHERE key = '" + key + "'",
		"DELETE FROM sessions WHERE key = '" + key + "'",
		"INSERT INTO graves (key, fence) VALUES ('" + key + "', 10)",
	} {
		if _, err := erasing.ExecContext(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	opened := make(chan error, 1)
	go func() {
		_, err := s.Open(t.Context(), key, 2)
		opened <- err
	}()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if len(sqldbtest.Query(t, "pgx", place, "SELECT pid FROM pg_locks WHERE NOT granted AND transactionid IS NOT NULL"+
			" AND pid IN (SELECT pid FROM pg_stat_activity WHERE query LIKE '%INSERT INTO sessions%' AND pid <> pg_backend_pid())")) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for the erasure")
		}
	}
	if err := erasing.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("it was opened: %v", err)
	}
	if left, err := s.List(t.Context(), "", 1); err != nil || len(left) > 0 {
		t.Errorf("it is listed as %+v, %v", left, err)
	}
	if _, err := s.Open(t.Context(), key, 11); err != nil {
		t.Errorf("under a fence of after: %v", err)
	}
}
