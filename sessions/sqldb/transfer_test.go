package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// twinSchema describes tables with columns of several types.
func twinSchema() sqldb.Schema {
	const lists = `CREATE TABLE flags (name TEXT PRIMARY KEY, raised BOOLEAN NOT NULL, small INTEGER NOT NULL, note TEXT)`
	return sqldb.Schema{
		Name:     "twins",
		SQLite:   []string{`CREATE TABLE lines (id INTEGER PRIMARY KEY, text TEXT NOT NULL);` + lists},
		Postgres: []string{`CREATE TABLE lines (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text TEXT NOT NULL);` + lists},
	}
}

// openTwins opens a SQLite database with some rows, and a PostgreSQL database with the same tables, all empty.
func openTwins(t *testing.T, rows int) (from, to *sqldb.DB, url string) {
	t.Helper()
	url = sqldbtest.New(t)
	open := func(place string) *sqldb.DB {
		db, err := sqldb.OpenAt(t.Context(), place, twinSchema())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return db
	}
	from, to = open(filepath.Join(t.TempDir(), "twins.db")), open(url)
	err := from.Write(t.Context(), func(tx *sqldb.Tx) error {
		for i := range rows {
			if _, err := tx.Exec(`INSERT INTO lines (id, text) VALUES (?, ?)`, 7+i, fmt.Sprint("line ", i, " ☃ ' \\")); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO flags VALUES ('up', TRUE, -3, NULL), ('down', FALSE, 3, '')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return from, to, url
}

func noWrite(*sqldb.Tx) error { return nil }

func TestTransferCopiesEverything(t *testing.T) {
	t.Parallel()
	from, to, url := openTwins(t, 5000)
	if err := sqldb.CheckEmpty(t.Context(), twinSchema(), to); err != nil {
		t.Fatalf("before: %v", err)
	}
	rows, err := sqldb.Transfer(t.Context(), twinSchema(), from, to, noWrite)
	if err != nil {
		t.Fatal(err)
	}
	if rows["lines"] != 5000 || rows["flags"] != 2 || len(rows) != 2 {
		t.Errorf("took %v", rows)
	}
	got := sqldbtest.Query(t, "pgx", url, "SELECT name, raised, small, note IS NULL FROM flags ORDER BY name")
	if strings.Join(got, ", ") != "down false 3 false, up true -3 true" {
		t.Errorf("flags are %v", got)
	}
	got = sqldbtest.Query(t, "pgx", url, "INSERT INTO lines (text) VALUES ('next') RETURNING id")
	if strings.Join(got, "") != "5007" {
		t.Errorf("the next line is %v, want 5007", got)
	}
	var filled *sqldb.NotEmptyError
	if err := sqldb.CheckEmpty(t.Context(), twinSchema(), to); !errors.As(err, &filled) {
		t.Errorf("after: %v, want a FilledError", err)
	}
	if _, err := sqldb.Transfer(t.Context(), twinSchema(), from, to, noWrite); !errors.As(err, &filled) {
		t.Errorf("a second time: %v, want a FilledError", err)
	}
}

func TestTransferIsAllOrNothing(t *testing.T) {
	t.Parallel()
	from, to, url := openTwins(t, 10)
	failed := errors.New("no")
	if _, err := sqldb.Transfer(t.Context(), twinSchema(), from, to, func(*sqldb.Tx) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("it ends with %v", err)
	}
	// Transfer notices a row that is changed on the way.
	sqldbtest.Query(t, "pgx", url, `CREATE FUNCTION louder() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN NEW.text := upper(NEW.text); RETURN NEW; END $$`)
	sqldbtest.Query(t, "pgx", url, `CREATE TRIGGER louder BEFORE INSERT ON lines FOR EACH ROW EXECUTE FUNCTION louder()`)
	if _, err := sqldb.Transfer(t.Context(), twinSchema(), from, to, noWrite); err == nil || !strings.Contains(err.Error(), "lines") {
		t.Errorf("with a trigger that changes rows: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqldb.Transfer(ctx, twinSchema(), from, to, noWrite); err == nil {
		t.Error("it does not end with its context")
	}
	if got := sqldbtest.Query(t, "pgx", url, "SELECT (SELECT count(*) FROM lines) + (SELECT count(*) FROM flags)"); got[0] != "0" {
		t.Errorf("%s rows stand there", got[0])
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	_, _, url := openTwins(t, 1)
	h, err := sqldb.Probe(t.Context(), url+"&pool_max_conns=3")
	if err != nil {
		t.Fatal(err)
	}
	if h.Version < 140000 || h.ReadOnly || h.Fsync != "on" || h.SynchronousCommit != "on" || h.FullPageWrites != "on" || h.ConnsPerProcess != 3 || h.MaxConns < 10 {
		t.Errorf("it says %+v", h)
	}
	if h.ClockSkew.Abs().Seconds() > 1 {
		t.Errorf("its clock is %v ahead of itself", h.ClockSkew)
	}
	if h.Versions["twins"] != 1 || len(h.Versions) != 1 {
		t.Errorf("versions are %v", h.Versions)
	}
	h, err = sqldb.Probe(t.Context(), url+"&synchronous_commit=off&default_transaction_read_only=on")
	if err != nil || h.SynchronousCommit != "off" || !h.ReadOnly {
		t.Errorf("with settings in the URL: %+v, %v", h, err)
	}
	if _, err := sqldb.Probe(t.Context(), "postgres://u:hunter2@127.0.0.1:1/d"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("where nobody listens: %v", err)
	}
	if h, err := sqldb.Probe(t.Context(), sqldbtest.New(t)); err != nil || len(h.Versions) != 0 {
		t.Errorf("an empty database: %v, %v", h.Versions, err)
	}
}
