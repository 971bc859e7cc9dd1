package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions/sqldb"
)

// A reused prepared statement behaves like a new one: inside of its own rows, after a schema change, after it
// was interrupted, and with many others.
func TestAPreparedQueryIsReused(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"), schema)
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
	// After an interrupted query, database/sql closes the connection or continues to use it.
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

func TestConcurrentUseOfOnePreparedQuery(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"), schema)
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

// A write stores exactly its arguments, even if they are long or not valid UTF-8, and whether or not a script
// runs it.
func TestAWriteStoresItsArgumentsUnchanged(t *testing.T) {
	type word string
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"), []string{"CREATE TABLE v (n INTEGER PRIMARY KEY, x, y)"})
	long := strings.Repeat("long ", 8000)
	store := func(n int, value any) error {
		_, err := db.Exec(t.Context(), "INSERT INTO v VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET x = excluded.x", n, value, "")
		return err
	}
	values := []any{nil, "text", "", "a\x00b", "\xff", long, long + long, int64(-7), 7, uint8(7), true, false, 1.5, []byte("7"), []byte("a\x00b"), []byte{}, []byte(nil),
		[]byte(long), []byte(long + long), word("word"), sql.NullString{}, sql.NullInt64{Int64: 7, Valid: true}, time.Unix(0, 0).UTC(), struct{}{}}
	for n, value := range values {
		for range 2 { // the second time, the statement is prepared already
			var want, found string
			wrong := db.Read.QueryRowContext(t.Context(), "SELECT typeof(?1) || ' ' || quote(?1)", value).Scan(&want)
			err := store(n, value)
			if (err == nil) != (wrong == nil) {
				t.Fatalf("%T %v: %v, want %v", value, value, err, wrong)
			}
			if err != nil {
				continue
			}
			if err := db.Read.QueryRowContext(t.Context(), "SELECT typeof(x) || ' ' || quote(x) FROM v WHERE n = ?", n).Scan(&found); err != nil || found != want {
				t.Errorf("%T %.20v: %.40s, %v, want %.40s", value, value, found, err, want)
			}
		}
	}
	if _, err := db.Exec(t.Context(), "INSERT INTO v VALUES (?1, ?2, ''); INSERT INTO v VALUES (?1 + 1, ?2, '')", 100, "script"); err != nil {
		t.Error(err)
	}
	if _, err := db.Exec(t.Context(), "ALTER TABLE v ADD COLUMN z NOT NULL DEFAULT 'z'"); err != nil {
		t.Fatal(err)
	}
	if err := store(102, "script"); err == nil {
		t.Error("a row of three columns was stored in a table of four")
	}
	n, err := db.Exec(t.Context(), "UPDATE v SET y = z WHERE x = ?", "script")
	if err != nil || n != 2 {
		t.Errorf("%d rows are changed, %v", n, err)
	}
}

// A wrong statement does not prevent the next one of the same write.
func TestAWriteContinuesAfterAWrongStatement(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"), schema)
	var n, m int
	for name, wrong := range map[string]func(*sqldb.Tx) error{
		"no statement":          func(tx *sqldb.Tx) error { _, err := tx.Exec("INSERT INTO nowhere"); return err },
		"too few arguments":     func(tx *sqldb.Tx) error { return tx.Get("SELECT n FROM t WHERE n = ?", nil, &n) },
		"too few places":        func(tx *sqldb.Tx) error { return tx.Get("SELECT n, s FROM t", nil, &n) },
		"too many places":       func(tx *sqldb.Tx) error { return tx.Get("SELECT n FROM t", nil, &n, &m) },
		"a place of no use":     func(tx *sqldb.Tx) error { return tx.Get("SELECT s FROM t", nil, &n) },
		"a row that is there":   insert(0),
		"an argument of no use": func(tx *sqldb.Tx) error { _, err := tx.Exec("INSERT INTO t VALUES (?, ?)", 1, t); return err },
	} {
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			if _, err := tx.Exec("INSERT INTO t VALUES (?, ?) ON CONFLICT DO NOTHING", 0, "x"); err != nil {
				t.Errorf("%s: before: %v", name, err)
			}
			if err := wrong(tx); err == nil {
				t.Errorf("%s is no error", name)
			}
			var s string
			return tx.Get("SELECT n, s FROM t WHERE n = ?", []any{0}, &n, &s)
		})
		if err != nil {
			t.Errorf("%s: after: %v", name, err)
		}
	}
	err := db.Get(t.Context(), "SELECT n FROM t WHERE n = ?", []any{9}, &n)
	if rows := countAll(t, db); rows != 1 || !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("there are %d rows, %v", rows, err)
	}
}

// BenchmarkLookUp measures the lookup of one row.
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
