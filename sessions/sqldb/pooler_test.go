package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// Through a pool that gives each transaction another connection, everything works as without it, and the URL
// needs no extra parameter.
func TestThroughPgBouncer(t *testing.T) {
	t.Parallel()
	place := sqldbtest.StartPooler(t).New(t)
	const each, writers = 50, 8
	var all sync.WaitGroup
	for p := range 2 { // two processes
		db := openAt(t, place, schemaOf(schema...))
		for w := range writers {
			all.Go(func() {
				for i := range each {
					n := (p*writers+w)*each + i
					err := db.Write(t.Context(), insert(3*n))
					if _, more := db.Group(t.Context(), "INSERT INTO t (n, s) VALUES (?, '')", []any{3*n + 1}); more != nil {
						err = errors.Join(err, more)
					}
					if _, more := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (?, ?)", 3*n+2, fmt.Sprint(n)); more != nil {
						err = errors.Join(err, more)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	for range 3 {
		if h, err := sqldb.Probe(t.Context(), place); err != nil || h.ReadOnly {
			t.Errorf("doctor reads %+v, %v", h, err)
		}
	}
	all.Wait()
	var count int
	if err := openAt(t, place, schemaOf(schema...)).Get(t.Context(), "SELECT count(*) FROM t WHERE n >= ?", []any{0}, &count); err != nil || count != 3*2*writers*each {
		t.Errorf("there are %d rows, want %d: %v", count, 3*2*writers*each, err)
	}
}

// If the primary dies and another server is promoted, writes continue there, and nothing that was acknowledged
// is lost. The URL only lists the servers.
func TestAFailoverToAStandby(t *testing.T) {
	t.Parallel()
	primary := sqldbtest.Start(t)
	standby := primary.Standby()
	place := strings.Replace(primary.URL(), primary.Address(), standby.Address()+","+primary.Address(), 1)
	db := openAt(t, place, schemaOf(schema...))
	written := func(n int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return db.Write(ctx, insert(n))
	}
	for n := range 100 {
		if err := written(n); err != nil {
			t.Fatal(err)
		}
	}
	primary.Kill()
	if err := written(100); err == nil {
		t.Error("a write passes without any primary")
	}
	standby.Promote()
	n, deadline := 101, time.Now().Add(30*time.Second)
	for ; ; n++ {
		if err := written(n); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("nothing can be written: %v", err)
		}
	}
	var kept int
	if err := db.Get(t.Context(), "SELECT count(*) FROM t WHERE n < ? OR n = ?", []any{100, n}, &kept); err != nil || kept != 101 {
		t.Errorf("%d of 101 rows are there: %v", kept, err)
	}
}

// A server that accepts no writes is refused, with an error that says what to do.
func TestAStandbyIsRefused(t *testing.T) {
	t.Parallel()
	primary := sqldbtest.Start(t)
	standby := primary.Standby()
	if err := openAt(t, primary.URL(), schemaOf(schema...)).Write(t.Context(), insert(1)); err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]string{
		"alone":         standby.URL(),
		"among several": strings.Replace(standby.URL(), standby.Address(), standby.Address()+",127.0.0.1:1", 1),
	} {
		if db, err := sqldb.OpenAt(t.Context(), place, schemaOf(schema...)); err == nil {
			db.Close()
			t.Errorf("a standby %s is opened", name)
		} else if !strings.Contains(err.Error(), "name the primary in the URL, or all servers") {
			t.Errorf("a standby %s: %v", name, err)
		}
	}
}
