package sqldb_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/sqldb"
)

// settingOf returns what a connection of the pool, or the writer's if w is true, says of a PRAGMA.
func settingOf(t *testing.T, db *sqldb.DB, pragma string, w bool) (value string) {
	t.Helper()
	var err error
	if w {
		err = db.Get(t.Context(), "SELECT * FROM pragma_"+pragma, nil, &value)
	} else {
		err = db.Read.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&value)
	}
	if err != nil {
		t.Fatalf("%s: %v", pragma, err)
	}
	return value
}

// checkSettings checks the size of a file's pages, and that commits are durable.
func checkSettings(t *testing.T, db *sqldb.DB, pageSize int) {
	t.Helper()
	for pragma, want := range map[string]string{"page_size": fmt.Sprint(pageSize), "journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		for _, w := range []bool{true, false} {
			if got := settingOf(t, db, pragma, w); got != want {
				t.Errorf("%s is %s, want %s (the writer's: %v)", pragma, got, want, w)
			}
		}
	}
}

// fill writes rows of 100 KB in all, and checks that they are there.
func fill(t *testing.T, db *sqldb.DB, from int) {
	t.Helper()
	for n := from; n < from+10; n++ {
		if _, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (?, ?)", n, strings.Repeat("x", 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	var n, size int
	if err := db.Read.QueryRowContext(t.Context(), "SELECT count(*), sum(length(s)) FROM t").Scan(&n, &size); err != nil || size != n*10_000 {
		t.Errorf("%d rows have %d bytes, %v", n, size, err)
	}
}

func TestANewFileHasSmallPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.db")
	db := open(t, path, schema)
	checkSettings(t, db, 1024)
	fill(t, db, 0)
	closeIt(t, db)
	checkSettings(t, open(t, path, schema), 1024)
}

// makeOld makes a file as the releases before made it.
func makeOld(t *testing.T, path string) {
	t.Helper()
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"PRAGMA page_size = 4096", "PRAGMA journal_mode = WAL", schema[0], "PRAGMA user_version = 1"} {
		if _, err := old.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file keeps its pages, also when it is rewritten or copied, and where files of both sizes are
// joined.
func TestAFileKeepsItsPages(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "old.db")
	makeOld(t, path)
	component := sqldb.Schema{Name: "test", SQLite: schema}
	copied, fresh := filepath.Join(dir, "copy.db"), filepath.Join(dir, "new.db")
	db := open(t, path, schema)
	checkSettings(t, db, 4096)
	fill(t, db, 0)
	if err := db.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, db, 10)
	checkSettings(t, db, 4096)
	if err := sqldb.Snapshot(t.Context(), sqldb.Copy{From: path, To: copied}); err != nil {
		t.Fatal(err)
	}
	closeIt(t, db)

	db = open(t, copied, schema)
	checkSettings(t, db, 4096)
	fill(t, db, 20)
	closeIt(t, db)

	db, err := sqldb.OpenFile(t.Context(), fresh, component)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Adopt(t.Context(), sqldb.Source{Path: copied, Schema: component}); err != nil {
		t.Fatal(err)
	}
	checkSettings(t, db, 1024)
	if err := db.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, db, 30)
	checkSettings(t, db, 1024)
	if n := count(t, db); n != 40 {
		t.Errorf("there are %d rows, want 40", n)
	}
	again := filepath.Join(dir, "copy of new.db")
	if err := sqldb.Snapshot(t.Context(), sqldb.Copy{From: fresh, To: again}); err != nil {
		t.Fatal(err)
	}
	closeIt(t, db)
	if db, err = sqldb.OpenFile(t.Context(), again, component); err != nil {
		t.Fatal(err)
	}
	checkSettings(t, db, 1024)
	closeIt(t, db)
}

// The log beside a file is moved to the file from time to time, whatever the size of its pages.
func TestTheLogStaysSmall(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, string){"new": func(*testing.T, string) {}, "old": makeOld} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.db")
			prepare(t, path)
			db := open(t, path, schema)
			text := strings.Repeat("x", 100_000)
			for n := range 200 {
				if _, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (?, ?)", n, text); err != nil {
					t.Fatal(err)
				}
			}
			info, err := os.Stat(path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			if mega := info.Size() >> 20; mega < 3 || mega > 6 {
				t.Errorf("the log has %d MB after 20 MB were written, want about 4", mega)
			}
		})
	}
}
