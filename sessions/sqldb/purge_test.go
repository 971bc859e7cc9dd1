package sqldb_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// countInFiles counts how often a text occurs in the files of a folder.
func countInFiles(t *testing.T, dir, text string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(raw, []byte(text))
	}
	return n
}

func TestPurgeLeavesNoTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b%.db")
	db := openFile(t, path, schema)
	const secret = "a word that nobody else says"
	for n := range 300 {
		text := strings.Repeat(fmt.Sprint("something else ", n), 1+n%40)
		if n%3 == 0 {
			text = strings.Repeat(secret, 1+n%300)
		}
		if _, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (?, ?)", (n*7919)%10_007, text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(t.Context(), "DELETE FROM t WHERE s LIKE ?", secret+"%"); err != nil {
		t.Fatal(err)
	}
	if countInFiles(t, filepath.Dir(path), secret) == 0 {
		t.Fatal("what was deleted is gone before the purge: the test cannot fail")
	}
	// Writers and readers continue in the meantime, and none of them fails.
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for w := range 4 {
		others.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := db.Exec(context.Background(), "INSERT INTO t (n, s) VALUES (?, 'later')", 100_000*(w+1)+n); err != nil {
					t.Error(err)
					return
				}
				_ = countAll(t, db)
			}
		})
	}
	err := db.Purge(t.Context(), "t")
	stop()
	others.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if n := countInFiles(t, filepath.Dir(path), secret); n != 0 {
		t.Errorf("%d traces after the purge", n)
	}
	if countInFiles(t, filepath.Dir(path), "something else") == 0 {
		t.Error("the purge took what was not deleted")
	}
}

func TestPurgeWhileServing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, place string) {
		db := openAt(t, place, schemaOf(schema...))
		for n := range 10 {
			if err := db.Write(t.Context(), insert(n)); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Purge(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		if err := db.Write(t.Context(), insert(10)); err != nil || countAll(t, db) != 11 {
			t.Errorf("%d rows after a purge, %v", countAll(t, db), err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Purge(t.Context(), "t"); err == nil {
			t.Error("a closed database was purged")
		}
	})
}

// Purges of a server can be postponed too, and then each is done once.
func TestPurgesOfAServerCanBePostponed(t *testing.T) {
	db := openAt(t, sqldbtest.New(t), schemaOf(schema...))
	if err := db.Write(t.Context(), insert(1)); err != nil {
		t.Fatal(err)
	}
	wantPurged := func(want bool) {
		t.Helper()
		var purged bool
		if err := db.Read.QueryRowContext(t.Context(), "SELECT reltuples > 0 FROM pg_class WHERE oid = 't'::regclass").Scan(&purged); err != nil || purged != want {
			t.Errorf("the table is purged: %t, %v; want %t", purged, err, want)
		}
	}
	var due sqldb.Purges
	then := 0
	for range 2 {
		err := due.Collect(t.Context(), func(ctx context.Context) (bool, error) {
			return true, db.PurgeThen(ctx, func(context.Context) error { then++; return nil }, "t")
		})
		if err != nil || due.IsEmpty() || then > 0 {
			t.Fatalf("it is not put off: %v", err)
		}
	}
	wantPurged(false)
	if err := due.Run(t.Context()); err != nil || !due.IsEmpty() || then != 2 {
		t.Errorf("it is purged with %v, and what comes after that is done %d times", err, then)
	}
	wantPurged(true)
}

// The test writes to two files alternately. If the copies differ by more than one write, they are not of the
// same instant.
func TestASnapshotIsOfOneInstant(t *testing.T) {
	dir := t.TempDir()
	var copies []sqldb.Copy
	var dbs []*sqldb.DB
	for _, name := range []string{"first", "second", "third"} {
		from := filepath.Join(dir, name+".db")
		dbs = append(dbs, openFile(t, from, schema))
		copies = append(copies, sqldb.Copy{From: from})
	}
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			for _, db := range dbs {
				if err := db.Write(context.Background(), insert(n)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	defer writing.Wait()
	defer stop()
	for round := range 20 {
		to := filepath.Join(dir, fmt.Sprint("copy ?%", round))
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range copies {
			copies[i].To = filepath.Join(to, filepath.Base(copies[i].From))
		}
		began := time.Now()
		if err := sqldb.Snapshot(t.Context(), copies...); err != nil {
			t.Fatal(err)
		}
		var counts []int
		for _, c := range copies {
			if info, err := os.Stat(c.To); err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("%v, %v", info.Mode(), err)
			}
			counts = append(counts, countAll(t, openFile(t, c.To, schema)))
		}
		if first, last := counts[0], counts[2]; counts[1] > first || last > counts[1] || first > last+1 {
			t.Fatalf("round %d: the copies have %v rows", round, counts)
		}
		if round == 19 {
			t.Logf("%v rows, the last snapshot took %s", counts, time.Since(began))
			if counts[2] == 0 {
				t.Error("nothing was written meanwhile")
			}
		}
	}
}

func TestSnapshotErrorsNameTheProblem(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "t.db")
	openFile(t, from, schema)
	for name, c := range map[string]sqldb.Copy{
		"no source":       {From: filepath.Join(dir, "missing"), To: filepath.Join(dir, "new")},
		"a target exists": {From: from, To: from},
		"no folder":       {From: from, To: filepath.Join(dir, "missing", "new")},
	} {
		if err := sqldb.Snapshot(t.Context(), c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); err == nil {
		t.Error("a source was made where there was none")
	}
}

func TestCloseLeavesOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	db := openFile(t, path, schema)
	for n := range 5 {
		if err := db.Write(t.Context(), insert(n)); err != nil {
			t.Fatal(err)
		}
		_ = countAll(t, db)
	}
	for range 2 { // twice, as the cleanup of a test does
		if err := db.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("there are %v, %v", files, err)
	}
}

// If several components erase from one file, it is purged once, after all of them. Outside of PurgeOnce, or if
// an erasure fails, it is purged too.
func TestPurgeOnce(t *testing.T) {
	const secret = "a word that nobody else says"
	path := filepath.Join(t.TempDir(), "once.db")
	db := openFile(t, path, schema)
	other := db.Lend()
	say := func() {
		t.Helper()
		for n := range 50 {
			if _, err := db.Exec(t.Context(), "INSERT OR REPLACE INTO t (n, s) VALUES (?, ?)", n, strings.Repeat(secret, 20)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantTraces := func(when string, any bool) {
		t.Helper()
		if n := countInFiles(t, filepath.Dir(path), secret); n > 0 != any {
			t.Errorf("%s there are %d traces", when, n)
		}
	}
	failed := errors.New("in vain")
	for _, outcome := range []error{nil, failed} {
		say()
		err := sqldb.PurgeOnce(t.Context(), func(ctx context.Context) error {
			for _, part := range []struct {
				db   *sqldb.DB
				rows string
			}{{db, "n % 2 = 0"}, {other, "n % 2 = 1"}} {
				if _, err := part.db.Exec(ctx, "DELETE FROM t WHERE "+part.rows); err != nil {
					return err
				}
				if err := sqldb.PurgeOnce(ctx, func(ctx context.Context) error { return part.db.Purge(ctx) }); err != nil {
					return err
				}
				wantTraces("before its end", true)
			}
			return outcome
		})
		if !errors.Is(err, outcome) {
			t.Errorf("it ends with %v, want %v", err, outcome)
		}
		wantTraces("after its end", false)
	}
}

// While somebody reads an earlier state, the log can't be emptied. Writes continue nevertheless, and the purge
// ends once nobody reads that state.
func TestWritesGoOnWhileAPurgeWaitsForAReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "read.db")
	db := openFile(t, path, schema)
	const secret = "a word that nobody else says"
	for n := range 100 {
		if _, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (?, ?)", n, strings.Repeat(secret, 100)); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := db.Read.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback() }() // it may have ended already
	var rows int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&rows); err != nil || rows != 100 {
		t.Fatal(rows, err)
	}
	if _, err := db.Exec(t.Context(), "DELETE FROM t"); err != nil {
		t.Fatal(err)
	}
	free := func() (pages int) {
		if err := db.Read.QueryRowContext(t.Context(), "PRAGMA freelist_count").Scan(&pages); err != nil {
			t.Error(err)
		}
		return pages
	}
	if free() == 0 {
		t.Fatal("nothing is free before the file is rewritten: the test cannot tell when it is")
	}
	purged, written := make(chan error, 1), make(chan error, 1)
	go func() { purged <- db.Purge(t.Context()) }()
	for deadline := time.Now().Add(time.Minute); free() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the file is not rewritten")
		}
	}
	go func() {
		var err error
		for n := range 3 {
			err = errors.Join(err, db.Write(context.Background(), insert(n)))
		}
		written <- err
	}()
	select {
	case err := <-written:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a write waits as long as somebody reads")
	}
	select {
	case err := <-purged:
		t.Errorf("the log was emptied while somebody read it: %v", err)
	default:
	}
	if err := reader.Rollback(); err != nil {
		t.Error(err)
	}
	if err := <-purged; err != nil {
		t.Error(err)
	}
	if n := countInFiles(t, filepath.Dir(path), secret); n > 0 {
		t.Errorf("%d traces after the purge", n)
	}
	if n := countAll(t, db); n != 3 {
		t.Errorf("there are %d rows, want 3", n)
	}
}
