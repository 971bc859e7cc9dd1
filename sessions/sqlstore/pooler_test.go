package sqlstore

import (
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
)

// Logs, budgets and recall work through a connection pool that gives each transaction another connection. The
// whole suite of stores passes with it too, but takes minutes.
func TestThroughPgBouncer(t *testing.T) {
	t.Parallel()
	s := openStore(t, sqldbtest.StartPooler(t).New(t))
	appendTexts(t, s, indexedKey, "one fig", "two figs")
	fillAll(t, s)
	wantHits(t, "filled", s, "figs", 2, indexedKey)
	for n, id := range []string{"a", "b", "a"} {
		r := sessions.Reservation{ID: id, Person: "telegram:7", Tokens: 5, Cap: 12, At: time.Now()}
		if err := s.Reserve(t.Context(), r); err != nil {
			t.Errorf("reservation %d: %v", n, err)
		}
	}
	found := 0
	for _, err := range s.Read(t.Context(), indexedKey, 1) {
		if err != nil {
			t.Fatal(err)
		}
		found++
	}
	if found != 2 {
		t.Errorf("the log has %d entries, want 2", found)
	}
}
