package sqldb_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/sessions/sqldb"
)

// envKilledFile is the environment variable with the path of the file to which TestKilledChild writes.
const envKilledFile = "PARLEY_TEST_KILLED_FILE"

// A process that is killed, even while it moves the log to the file, loses no write that was reported as
// durable, and leaves no half of any other.
func TestKilledWritersLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	told := map[int]bool{}
	for round := range 5 {
		// Each write takes 100 KB, so a log is full after 40 and moved for certain after 80.
		killWriter(t, path, len(told)+60+rand.IntN(60), told)
		if err := sqldb.Examine(t.Context(), path); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		db := openFile(t, path, schema)
		var rows, sum int
		if err := db.Read.QueryRowContext(t.Context(), "SELECT count(*), sum(n) FROM t").Scan(&rows, &sum); err != nil {
			t.Fatal(err)
		}
		if rows%2 != 0 || sum != 0 {
			t.Errorf("round %d: %d rows with the sum %d, want pairs of n and -n", round, rows, sum)
		}
		for n := range told {
			var length int
			if err := db.Read.QueryRowContext(t.Context(), "SELECT length(s) FROM t WHERE n = ?", n).Scan(&length); err != nil || length != 50_000 {
				t.Errorf("round %d: the write %d was durable and has %d bytes: %v", round, n, length, err)
			}
		}
		closeDB(t, db)
	}
}

// killWriter runs TestKilledChild until it has reported a total number of writes as durable, and kills it. It
// adds these writes to told.
func killWriter(t *testing.T, path string, until int, told map[int]bool) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledChild$", "-test.v")
	child.Env = append(os.Environ(), envKilledFile+"="+path)
	said, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var other []string
	for lines := bufio.NewScanner(said); lines.Scan(); {
		var n int
		if _, err := fmt.Sscanf(lines.Text(), "durable %d.", &n); err != nil {
			other = append(other, lines.Text())
			continue
		}
		if told[n] = true; len(told) == until {
			_ = child.Process.Kill() // what the child reports before it dies is read too
		}
	}
	if err := child.Wait(); err == nil || len(told) < until {
		t.Fatalf("the child ended by itself after %d of %d writes: %v\n%s", len(told), until, err, strings.Join(other, "\n"))
	}
}

// TestKilledChild writes forever, for TestKilledWritersLoseNothing. Each write consists of two rows.
func TestKilledChild(t *testing.T) {
	path := os.Getenv(envKilledFile)
	if path == "" {
		t.Skip("only TestKilledWritersLoseNothing runs it")
	}
	db := openFile(t, path, schema)
	var last atomic.Int64
	var start int64
	if err := db.Read.QueryRowContext(t.Context(), "SELECT coalesce(max(n), 0) FROM t").Scan(&start); err != nil {
		t.Fatal(err)
	}
	last.Store(start)
	text := strings.Repeat("x", 50_000)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for {
				n := last.Add(1)
				err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
					for _, n := range []int64{n, -n} {
						if _, err := tx.Exec("INSERT INTO t (n, s) VALUES (?, ?)", n, text); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Printf("durable %d.\n", n) // one write to the pipe, so lines stay whole
			}
		})
	}
	writers.Wait()
}
