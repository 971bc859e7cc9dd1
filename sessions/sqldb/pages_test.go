package sqldb_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions/sqldb"
)

// readPragma returns the value of a PRAGMA on a connection of the pool or, if w is true, on the writer's.
func readPragma(t *testing.T, db *sqldb.DB, pragma string, w bool) (value string) {
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
			if got := readPragma(t, db, pragma, w); got != want {
				t.Errorf("%s is %s, want %s (the writer's: %v)", pragma, got, want, w)
			}
		}
	}
}

// writeRows writes rows with 100 KB in total, and checks that they are there.
func writeRows(t *testing.T, db *sqldb.DB, from int) {
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
	db := openFile(t, path, schema)
	checkSettings(t, db, 1024)
	writeRows(t, db, 0)
	closeDB(t, db)
	checkSettings(t, openFile(t, path, schema), 1024)
}

// makeOldFile makes a file as earlier releases made it.
func makeOldFile(t *testing.T, path string) {
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

// A file keeps its page size, even when it is rewritten or copied, or when files with different page sizes are
// combined.
func TestAFileKeepsItsPages(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "old.db")
	makeOldFile(t, path)
	component := sqldb.Schema{Name: "test", SQLite: schema}
	copied, fresh := filepath.Join(dir, "copy.db"), filepath.Join(dir, "new.db")
	db := openFile(t, path, schema)
	checkSettings(t, db, 4096)
	writeRows(t, db, 0)
	if err := db.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeRows(t, db, 10)
	checkSettings(t, db, 4096)
	if err := sqldb.Snapshot(t.Context(), sqldb.Copy{From: path, To: copied}); err != nil {
		t.Fatal(err)
	}
	closeDB(t, db)

	db = openFile(t, copied, schema)
	checkSettings(t, db, 4096)
	writeRows(t, db, 20)
	closeDB(t, db)

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
	writeRows(t, db, 30)
	checkSettings(t, db, 1024)
	if n := countAll(t, db); n != 40 {
		t.Errorf("there are %d rows, want 40", n)
	}
	again := filepath.Join(dir, "copy of new.db")
	if err := sqldb.Snapshot(t.Context(), sqldb.Copy{From: fresh, To: again}); err != nil {
		t.Fatal(err)
	}
	closeDB(t, db)
	if db, err = sqldb.OpenFile(t.Context(), again, component); err != nil {
		t.Fatal(err)
	}
	checkSettings(t, db, 1024)
	closeDB(t, db)
}

// megabytes returns the size of a file.
func megabytes(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size() >> 20
}

// writeLong writes n rows of 100 KB, each with its own commit. In a synctest bubble, no time passes meanwhile.
func writeLong(t *testing.T, db *sqldb.DB, n int) {
	t.Helper()
	text := strings.Repeat("x", 100_000)
	for range n {
		if _, err := db.Exec(t.Context(), "INSERT INTO t (s) VALUES (?)", text); err != nil {
			t.Fatal(err)
		}
	}
}

// The log is moved to the file from time to time, with either page size, even if writes never stop.
func TestTheLogStaysSmall(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, string){"new": func(*testing.T, string) {}, "old": makeOldFile} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.db")
			prepare(t, path)
			synctest.Test(t, func(t *testing.T) {
				db := openFile(t, path, schema)
				writeLong(t, db, 300)
				if size := megabytes(t, path+"-wal"); size < 7 || size > 9 {
					t.Errorf("the log has %d MB after 30 MB were written, want about 8", size)
				}
				if size := megabytes(t, path); size < 20 {
					t.Errorf("the file has %d MB after 30 MB were written, want all but about 8", size)
				}
			})
		})
	}
}

// If there is a pause between writes, no commit has to wait until the log is moved.
func TestTheLogIsMovedDuringAPause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	synctest.Test(t, func(t *testing.T) {
		db := openFile(t, path, schema)
		writeLong(t, db, 60)
		if size := megabytes(t, path); size != 0 {
			t.Errorf("the file has %d MB while writes follow one another, want none", size)
		}
		// An open transaction delays the move, but only until it ends.
		if err := db.Soon(t.Context(), time.Minute, insert(1000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if size := megabytes(t, path); size != 0 {
			t.Errorf("the file has %d MB while a transaction is open, want none", size)
		}
		db.Flush()
		time.Sleep(time.Second)
		synctest.Wait()
		if size := megabytes(t, path); size < 5 {
			t.Errorf("the file has %d MB a second after 6 MB were written, want 6", size)
		}
		writeLong(t, db, 60) // the log starts from its beginning: writing these rows doesn't make it longer
		if size := megabytes(t, path+"-wal"); size > 7 {
			t.Errorf("the log has %d MB, want 6, as it was moved in between", size)
		}
	})
}

// A long read of an earlier state keeps the log from being moved. It is moved once the read ends.
func TestTheLogIsMovedOnceItsReadersAreDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	synctest.Test(t, func(t *testing.T) {
		db := openFile(t, path, schema)
		reader, err := db.Read.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		rows := func() (n int) {
			t.Helper()
			if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := rows()
		writeLong(t, db, 100)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := rows(); n != before {
			t.Errorf("the reader sees %d rows after it saw %d", n, before)
		}
		if size := megabytes(t, path); size != 0 {
			t.Errorf("the file has %d MB that the reader must not see, want none", size)
		}
		if err := reader.Rollback(); err != nil {
			t.Fatal(err)
		}
		writeLong(t, db, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		if size := megabytes(t, path); size < 9 {
			t.Errorf("the file has %d MB after 10 MB were written and read, want all", size)
		}
		writeLong(t, db, 60)
		if size := megabytes(t, path+"-wal"); size > 12 {
			t.Errorf("the log has %d MB, want 10 as before: it begins anew", size)
		}
	})
}
