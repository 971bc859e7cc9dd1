package sessionstest

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions"
)

func budgetTests() []test {
	return []test{
		{"a reservation counts, and one over the cap does not", testReserve},
		{"an id reserves once, settled or not", testReserveOnce},
		{"settling replaces the reservation, once", testSettle},
		{"a day is UTC's, and a person's own", testBudgetPerDay},
		{"what was reserved outlives a restart", testBudgetRestart},
		{"sums cannot overflow", testBudgetOverflow},
		{"people who spend at once never go over the cap", testBudgetAtOnce},
	}
}

// noonOfToday returns today's noon in UTC, so that a test does not run over midnight.
func noonOfToday() time.Time { return time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour) }

// reservation returns a reservation of tokens for a person whose cap for the day is most.
func reservation(id, person string, tokens, most int64) sessions.Reservation {
	return sessions.Reservation{ID: id, Person: person, Tokens: tokens, Cap: most, At: noonOfToday()}
}

// wantSpent checks how many tokens a person has spent today, reservations included.
func wantSpent(t *testing.T, s sessions.Budget, person string, want int64) {
	t.Helper()
	got, err := s.Spent(t.Context(), person, noonOfToday())
	if err != nil || got != want {
		t.Errorf("%s has spent %d, %v, want %d", person, got, err, want)
	}
}

func mustReserve(t *testing.T, s sessions.Budget, r sessions.Reservation) {
	t.Helper()
	if err := s.Reserve(t.Context(), r); err != nil {
		t.Errorf("reserve %d of %d: %v", r.Tokens, r.Cap, err)
	}
}

// mustRefuse fails the test unless a reservation is refused.
func mustRefuse(t *testing.T, s sessions.Budget, r sessions.Reservation) {
	t.Helper()
	if err := s.Reserve(t.Context(), r); !errors.Is(err, sessions.ErrOverBudget) {
		t.Errorf("reserve %d of %d: %v, want it over budget", r.Tokens, r.Cap, err)
	}
}

func testReserve(t *testing.T, p place) {
	s := p.open()
	wantSpent(t, s, "a", 0)
	mustRefuse(t, s, reservation("0", "a", 101, 100))
	wantSpent(t, s, "a", 0)
	mustReserve(t, s, reservation("1", "a", 60, 100))
	mustRefuse(t, s, reservation("2", "a", 41, 100))
	wantSpent(t, s, "a", 60)
	mustReserve(t, s, reservation("3", "a", 40, 100))
	wantSpent(t, s, "a", 100)
	mustRefuse(t, s, reservation("4", "a", 1, 100))
	mustRefuse(t, s, reservation("5", "a", 0, 99)) // a cap that has been lowered in the meantime
	mustReserve(t, s, reservation("2", "a", 41, 141))
	wantSpent(t, s, "a", 141)
	mustRefuse(t, s, reservation("6", "b", 0, -1))
	if err := s.Reserve(t.Context(), reservation("7", "a", -50, 1000)); err == nil {
		t.Error("less than nothing was reserved")
	}
	wantSpent(t, s, "a", 141)
}

func testReserveOnce(t *testing.T, p place) {
	s := p.open()
	for range 3 {
		mustReserve(t, s, reservation("1", "a", 60, 100))
		wantSpent(t, s, "a", 60)
	}
	if err := s.Settle(t.Context(), reservation("1", "a", 0, 0), 30); err != nil {
		t.Fatal(err)
	}
	mustReserve(t, s, reservation("1", "a", 60, 100))
	wantSpent(t, s, "a", 30)
	if err := s.Settle(t.Context(), reservation("1", "a", 0, 0), 50); err != nil {
		t.Fatal(err)
	}
	wantSpent(t, s, "a", 30)

	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { mustReserve(t, s, reservation("same", "b", 10, 100)) })
	}
	wg.Wait()
	wantSpent(t, s, "b", 10)
}

func testSettle(t *testing.T, p place) {
	s := p.open()
	mustReserve(t, s, reservation("1", "a", 60, 100))
	mustReserve(t, s, reservation("2", "a", 30, 100))
	for range 2 {
		if err := s.Settle(t.Context(), reservation("1", "a", 0, 0), 10); err != nil {
			t.Fatal(err)
		}
		wantSpent(t, s, "a", 40)
	}
	mustReserve(t, s, reservation("3", "a", 60, 100))
	if err := s.Settle(t.Context(), reservation("2", "a", 0, 0), 70); err != nil { // more than was reserved
		t.Fatal(err)
	}
	wantSpent(t, s, "a", 140)
	mustRefuse(t, s, reservation("4", "a", 1, 100))
	if err := s.Settle(t.Context(), reservation("nobody's", "a", 0, 0), 10); err != nil {
		t.Errorf("settling what is unknown: %v", err)
	}
	wantSpent(t, s, "a", 140)
}

func testBudgetPerDay(t *testing.T, p place) {
	s := p.open()
	midnight := noonOfToday().Add(12 * time.Hour)
	east := time.FixedZone("", 14*3600)
	for i, at := range []time.Time{midnight.Add(-time.Nanosecond).In(east), midnight.In(east)} {
		r := reservation(fmt.Sprint(i), "a", 100, 100)
		r.At = at
		mustReserve(t, s, r)
	}
	wantSpent(t, s, "a", 100)
	wantSpent(t, s, "b", 0)
	wantSpent(t, s, "A", 0)
	mustReserve(t, s, reservation("b", "b", 100, 100))
	// A call is settled on the day of its reservation.
	if err := s.Settle(t.Context(), reservation("1", "a", 0, 0), 7); err != nil {
		t.Fatal(err)
	}
	wantSpent(t, s, "a", 100)
	if got, err := s.Spent(t.Context(), "a", midnight); err != nil || got != 7 {
		t.Errorf("spent %d the day after, %v", got, err)
	}
}

func testBudgetRestart(t *testing.T, p place) {
	s := p.open()
	mustReserve(t, s, reservation("1", "a", 60, 100))
	s = p.reopen(s)
	wantSpent(t, s, "a", 60)
	mustReserve(t, s, reservation("1", "a", 60, 100))
	if err := s.Settle(t.Context(), reservation("1", "a", 0, 0), 20); err != nil {
		t.Fatal(err)
	}
	s = p.reopen(s)
	wantSpent(t, s, "a", 20)
}

func testBudgetOverflow(t *testing.T, p place) {
	s := p.open()
	for i := range 3 {
		mustReserve(t, s, reservation(fmt.Sprint(i), "a", 10, math.MaxInt64))
		if err := s.Settle(t.Context(), reservation(fmt.Sprint(i), "a", 0, 0), math.MaxInt64); err != nil {
			t.Fatal(err)
		}
	}
	mustRefuse(t, s, reservation("4", "a", 10, 1_000_000))
	mustReserve(t, s, reservation("5", "b", math.MaxInt64-5, math.MaxInt64))
	mustRefuse(t, s, reservation("6", "b", 6, math.MaxInt64))
	mustReserve(t, s, reservation("7", "b", 5, math.MaxInt64))
	mustRefuse(t, s, reservation("8", "b", math.MaxInt64, math.MaxInt64))
}

func testBudgetAtOnce(t *testing.T, p place) {
	stores := p.stores()
	const most = 1000
	var wg sync.WaitGroup
	var given atomic.Int64
	for g := range 16 {
		wg.Go(func() {
			s := stores[g%2]
			for i := range 20 {
				r := reservation(fmt.Sprintf("%d-%d", g, i), "a", 7, most)
				switch err := s.Reserve(t.Context(), r); {
				case err == nil:
					given.Add(7)
				case !errors.Is(err, sessions.ErrOverBudget):
					t.Error(err)
				}
				if got, err := s.Spent(t.Context(), "a", r.At); err != nil || got > most {
					t.Errorf("%d of %d are spent, %v", got, most, err)
				}
			}
		})
	}
	wg.Wait()
	if want := int64(most / 7 * 7); given.Load() != want {
		t.Errorf("%d tokens were given, want %d", given.Load(), want)
	}
	wantSpent(t, stores[1], "a", given.Load())
}
