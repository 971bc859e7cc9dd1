package sqlstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

func errorOf(_ int64, err error) error { return err }

// Reservations of the earlier table layout are kept: a repeated one does not reserve again, and each can be
// settled.
func TestReservationsOfTheEarlierLayoutAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	earlier := Schema().SQLite
	earlier = earlier[:slices.Index(earlier, compactReservations)]
	db, err := sqldb.Open(t.Context(), path, earlier)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	reservation := func(n int) sessions.Reservation {
		return sessions.Reservation{ID: fmt.Sprint("r", n), Person: "p", Tokens: 10, Cap: 1000, At: now}
	}
	err = db.Write(t.Context(), func(tx *sqldb.Tx) error { // as releases with that layout wrote them
		for n := range 20 {
			r := reservation(n)
			if _, err := tx.Exec("INSERT INTO reservations (id, person, day, tokens, settled) VALUES (?, ?, ?, ?, FALSE)", r.ID, r.Person, formatDay(now), r.Tokens); err != nil {
				return err
			}
		}
		_, err := tx.Exec("UPDATE reservations SET settled = TRUE, tokens = 3 WHERE id = 'r0'")
		return errors.Join(err, errorOf(tx.Exec("INSERT INTO spending (person, day, tokens) VALUES ('p', ?, 193)", formatDay(now))))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range 20 {
		if err := s.Reserve(t.Context(), reservation(n)); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(t.Context(), reservation(n), 1); err != nil {
			t.Fatal(err)
		}
	}
	if spent, err := s.Spent(t.Context(), "p", now); err != nil || spent != 3+19 {
		t.Errorf("%d tokens are spent, %v, want 22: 3 settled before, and 1 of each other", spent, err)
	}
}
