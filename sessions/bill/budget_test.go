package bill_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions/bill"
	"parley/sessions/sqlstore"
)

const perDay, perMonth = false, true

func newCap(of string, month bool, most int64) bill.Cap {
	return bill.Cap{Subject: of, IsMonthly: month, Limit: most}
}

func newReservation(id string, cost int64, at time.Time, caps ...bill.Cap) bill.Reservation {
	return bill.Reservation{ID: id, Cost: cost, Caps: caps, At: at}
}

func mustReserve(t *testing.T, s *sqlstore.Store, r bill.Reservation) {
	t.Helper()
	if err := s.Money().Reserve(t.Context(), r); err != nil {
		t.Errorf("reserve %s: %v", r.ID, err)
	}
}

func mustRefuse(t *testing.T, s *sqlstore.Store, r bill.Reservation, by bill.Cap) {
	t.Helper()
	err := s.Money().Reserve(t.Context(), r)
	if over, ok := errors.AsType[*bill.OverError](err); !ok || over.Cap != by {
		t.Errorf("reserve %s: %v, want it over %+v", r.ID, err, by)
	}
}

func checkSpent(t *testing.T, s *sqlstore.Store, c bill.Cap, at time.Time, want int64) {
	t.Helper()
	if got, err := s.Money().Spent(t.Context(), c, at); err != nil || got != want {
		t.Errorf("%q has spent %d, %v, want %d", c.Subject, got, err, want)
	}
}

// A reservation counts for all of its caps or for none, no matter who has made other reservations.
func TestReservationsCountForAllCapsOrNone(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		at := time.Now()
		mine, yours := newCap(bill.Person("telegram:\x002"), perDay, 100), newCap(bill.Person("telegram:3"), perDay, 100)
		all, month := newCap("", perDay, 150), newCap("", perMonth, 1000)
		mustReserve(t, one, newReservation("a", 90, at, mine, all, month))
		mustReserve(t, other, newReservation("a", 90, at, mine, all, month)) // the same reservation again
		mustRefuse(t, other, newReservation("b", 11, at, mine, all, month), mine)
		mustRefuse(t, other, newReservation("c", 61, at, yours, all, month), all)
		for c, want := range map[bill.Cap]int64{mine: 90, yours: 0, all: 90, month: 90} {
			checkSpent(t, one, c, at, want)
		}
		mustReserve(t, other, newReservation("d", 60, at, yours, all, month)) // exactly the remaining amount
		mustRefuse(t, one, newReservation("e", 1, at, yours, all, month), all)
		mustReserve(t, one, newReservation("f", 0, at, yours, all, month))
		checkSpent(t, one, all, at, 150)
		mustReserve(t, one, newReservation("g", 5, at)) // without any cap
	})
}

// A reservation is replaced once by its actual cost, even if that is higher.
func TestReservationsAreSettledOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		at := time.Now()
		all := newCap("", perDay, 100)
		first, second := newReservation("a", 60, at, all), newReservation("b", 30, at, all)
		mustReserve(t, one, first)
		mustReserve(t, other, second)
		settle := func(s *sqlstore.Store, r bill.Reservation, cost, want int64) {
			t.Helper()
			if err := s.Money().Settle(t.Context(), r, cost); err != nil {
				t.Error(err)
			}
			checkSpent(t, one, all, at, want)
		}
		settle(one, first, 10, 40)
		settle(other, first, 50, 40)
		settle(one, second, 200, 210) // settled by another process than the one that reserved
		settle(one, newReservation("none", 5, at, all), 5, 210)
		mustRefuse(t, one, newReservation("c", 0, at, all), all)
		third := newReservation("d", 1, at, newCap("", perDay, math.MaxInt64))
		mustReserve(t, one, third)
		if err := one.Money().Settle(t.Context(), third, math.MaxInt64); err != nil {
			t.Error(err)
		}
		mustRefuse(t, one, newReservation("e", 1<<40, at, newCap("", perDay, 1<<40)), newCap("", perDay, 1<<40))
		if err := one.Money().Reserve(t.Context(), newReservation("f", -1, at)); err == nil {
			t.Error("less than nothing is set aside")
		}
	})
}

// Days and months are in UTC, and each is counted separately.
func TestEachPeriodIsCountedSeparately(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, _ *sqlstore.Store) {
		now := time.Now().UTC()
		last := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second) // the last second of this month
		day, month := newCap("", perDay, 10), newCap("", perMonth, 15)
		mustReserve(t, one, newReservation("a", 10, last.In(time.FixedZone("east", 14*3600)), day, month))
		mustRefuse(t, one, newReservation("b", 1, last, day, month), day)
		mustRefuse(t, one, newReservation("c", 6, last.AddDate(0, 0, -1), day, month), month)
		mustReserve(t, one, newReservation("d", 10, last.Add(time.Second), day, month))
		next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		if got := month.NextPeriod(last); !got.Equal(next) {
			t.Errorf("the month opens again at %s, want %s", got, next)
		}
		if got := day.NextPeriod(next); !got.Equal(next.AddDate(0, 0, 1)) {
			t.Errorf("the day opens again at %s", got)
		}
	})
}

// However many processes reserve concurrently, a sum exceeds its cap by at most the amounts that are reserved
// at the same moment.
func TestCapsHoldForConcurrentReservations(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		const cost, most, at50, tries = 10, 2_000, 50, 8
		at := time.Now()
		all, month := newCap("", perDay, most), newCap("", perMonth, 10*most)
		var spent, refused atomic.Int64
		var working sync.WaitGroup
		for w := range at50 {
			working.Go(func() {
				s := []*sqlstore.Store{one, other}[w%2]
				for n := range tries {
					r := newReservation(fmt.Sprint(w, "-", n), cost, at, newCap(bill.Person(fmt.Sprint(w%20)), perDay, most), all, month)
					err := s.Money().Reserve(t.Context(), r)
					if _, over := errors.AsType[*bill.OverError](err); over {
						refused.Add(1)
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					if err := s.Money().Settle(t.Context(), r, cost); err != nil {
						t.Error(err)
					}
					spent.Add(cost)
				}
			})
		}
		working.Wait()
		if sum := spent.Load(); sum < most || sum > most+at50*cost {
			t.Errorf("%d were spent of %d, with %d in flight", sum, most, at50*cost)
		}
		if refused.Load() == 0 {
			t.Error("nobody was refused")
		}
		checkSpent(t, one, all, at, spent.Load())
		checkSpent(t, other, month, at, spent.Load())
	})
}

// After a person is forgotten, the totals stay, without the name.
func TestForgettingAPersonKeepsTheTotals(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, _ *sqlstore.Store) {
		writeUsage(t, one)
		at := time.Now()
		person, session, all := newCap(bill.Person("telegram:7"), perDay, 100), newCap(bill.Session("ops:telegram:2"), perDay, 100), newCap("", perDay, 100)
		mustReserve(t, one, newReservation("a", 40, at, person, session, all))
		if _, err := one.ErasePerson(t.Context(), "telegram:7"); err != nil {
			t.Fatal(err)
		}
		checkSpent(t, one, person, at, 0)
		checkSpent(t, one, session, at, 0)
		checkSpent(t, one, all, at, 40)
		if err := one.Money().Settle(t.Context(), newReservation("a", 40, at, person, session, all), 30); err != nil {
			t.Fatal(err)
		}
		checkSpent(t, one, person, at, 0)
		checkSpent(t, one, all, at, 30)
	})
}
