package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"parley/sessions/sqldb"
)

// A query answers as if its statement were made anew: within its own rows, after a change
// of the schema, after it was broken off, and beside many others.
func TestAQueryThatIsAskedAgain(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), schema)
	for n := range 5 {
		if err := db.Write(t.Context(), insert(n)); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := db.Read.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const query = "SELECT n FROM t WHERE n >= ? ORDER BY n"
	read := func(ctx context.Context, from, most int, each func()) (found []int, err error) {
		rows, err := conn.QueryContext(ctx, query, from)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for len(found) < most && rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				return nil, err
			}
			found = append(found, n)
			each()
		}
		return found, rows.Err()
	}
	nothing := func() {}
	is := func(want string, found []int, err error) {
		t.Helper()
		if err != nil || fmt.Sprint(found) != want {
			t.Errorf("it found %v, %v, want %s", found, err, want)
		}
	}
	check := func(want string, from, most int, each func()) {
		t.Helper()
		found, err := read(t.Context(), from, most, each)
		is(want, found, err)
	}
	check("[0 1 2 3 4]", 0, 9, func() { check("[3 4]", 3, 9, nothing) })
	check("[0]", 0, 1, nothing)
	check("[]", 9, 9, nothing)
	check("[1 2 3 4]", 1, 9, nothing)

	ctx, cancel := context.WithCancel(t.Context())
	if found, err := read(ctx, 0, 9, cancel); !errors.Is(err, context.Canceled) && len(found) < 5 {
		t.Errorf("what was broken off found %v, %v", found, err)
	}
	// Package sql closes a connection on which a query was broken off, or goes on with it.
	check("[4]", 4, 9, nothing)

	if _, err := db.Exec(t.Context(), "ALTER TABLE t ADD COLUMN more INTEGER NOT NULL DEFAULT 7"); err != nil {
		t.Fatal(err)
	}
	check("[2 3 4]", 2, 9, nothing)
	for n := range 200 {
		var found int
		if err := conn.QueryRowContext(t.Context(), fmt.Sprintf("SELECT more + %d FROM t WHERE n = ?", n), 1).Scan(&found); err != nil || found != n+7 {
			t.Fatalf("query %d found %d, %v", n, found, err)
		}
	}
	check("[0 1 2 3 4]", 0, 9, nothing)
}

func TestManyAskTheSameAtOnce(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), schema)
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			for n := range 50 {
				id := who*1000 + n
				if err := db.Write(t.Context(), insert(id)); err != nil {
					t.Error(err)
					return
				}
				var found int
				if err := db.Read.QueryRowContext(t.Context(), "SELECT n FROM t WHERE n = ?", id).Scan(&found); err != nil || found != id {
					t.Errorf("%d: it found %d, %v", id, found, err)
				}
			}
		})
	}
	all.Wait()
}

// What looking up one row costs.
func BenchmarkLookUp(b *testing.B) {
	db, err := sqldb.Open(b.Context(), filepath.Join(b.TempDir(), "a.db"), schema)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if err := db.Write(b.Context(), insert(1)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var found int
		if err := db.Read.QueryRowContext(b.Context(), "SELECT n FROM t WHERE n = ? OR (s = 'agent' AND n = coalesce((SELECT n FROM t WHERE n = ?), ?))", 1, 2, 3).Scan(&found); err != nil {
			b.Fatal(err)
		}
	}
}
