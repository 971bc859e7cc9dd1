package sqldbtest

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/sessions/sqldb"
)

// Statements collects the different statements that SQLite databases run.
type Statements struct {
	mu   sync.Mutex
	seen map[string]bool
}

// Watch returns a context. The statements of databases that are opened with it are collected.
func (s *Statements) Watch(ctx context.Context) context.Context {
	s.seen = map[string]bool{}
	return sqldb.Watch(ctx, func(query string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[query] = true
	})
}

// Forget removes the statements that were collected.
func (s *Statements) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
}

// List returns the statements that read or write tables, sorted.
func (s *Statements) List() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for query := range s.seen {
		if regexp.MustCompile(`^\s*(SELECT|DELETE|UPDATE|INSERT|WITH)`).MatchString(query) {
			list = append(list, query)
		}
	}
	slices.Sort(list)
	return list
}

// WantNoScan fails the test if the database would read a whole table for one of the statements. may
// reports whether a step of a plan may read that table whole.
func WantNoScan(t testing.TB, db *sqldb.DB, queries []string, may func(table, step string) bool) {
	t.Helper()
	scan := regexp.MustCompile(`^SCAN (\w+)`)
	if db.IsPostgres() {
		scan = regexp.MustCompile(`Seq Scan on (\w+)`)
	}
	for _, query := range queries {
		for _, step := range Plan(t, db.Read, db.IsPostgres(), query) {
			if found := scan.FindStringSubmatch(step); found != nil && !may(found[1], step) {
				t.Errorf("%s\n\treads a whole table: %s", query, step)
			}
		}
	}
}

// Plan returns the steps in which a database would carry out a statement, as EXPLAIN reports them. PostgreSQL
// prefers to read short tables whole, as those of tests are; here it does so only if there is no other way.
func Plan(t testing.TB, db *sql.DB, postgres bool, query string) (steps []string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	explain := "EXPLAIN QUERY PLAN "
	if postgres {
		explain = "EXPLAIN "
		if _, err := conn.ExecContext(t.Context(), "SET enable_seqscan = off"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := conn.ExecContext(t.Context(), "RESET enable_seqscan"); err != nil {
				t.Error(err)
			}
		}()
	}
	rows, err := conn.QueryContext(t.Context(), explain+strings.ReplaceAll(query, "?", "'0'"))
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		into := []any{&text}
		if !postgres {
			var id, parent, unused any
			into = []any{&id, &parent, &unused, &text}
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", query, err))
	}
	return steps
}
