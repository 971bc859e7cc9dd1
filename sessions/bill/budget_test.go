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

func capOf(of string, month bool, most int64) bill.Cap {
	return bill.Cap{Of: of, Month: month, Most: most}
}

func reserving(id string, cost int64, at time.Time, caps ...bill.Cap) bill.Reservation {
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
		t.Errorf("%q has spent %d, %v, want %d", c.Of, got, err, want)
	}
}

// A reservation is in all of its caps or in none, whoever has made the others.
func TestReservationsAreAllOrNone(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		at := time.Now()
		mine, yours := capOf(bill.Person("telegram:\x002"), perDay, 100), capOf(bill.Person("telegram:3"), perDay, 100)
		all, month := capOf("", perDay, 150), capOf("", perMonth, 1000)
		mustReserve(t, one, reserving("a", 90, at, mine, all, month))
		mustReserve(t, other, reserving("a", 90, at, mine, all, month)) // the same again
		mustRefuse(t, other, reserving("b", 11, at, mine, all, month), mine)
		mustRefuse(t, other, reserving("c", 61, at, yours, all, month), all)
		for c, want := range map[bill.Cap]int64{mine: 90, yours: 0, all: 90, month: 90} {
			checkSpent(t, one, c, at, want)
		}
		mustReserve(t, other, reserving("d", 60, at, yours, all, month)) // just as much as there is
		mustRefuse(t, one, reserving("e", 1, at, yours, all, month), all)
		mustReserve(t, one, reserving("f", 0, at, yours, all, month))
		checkSpent(t, one, all, at, 150)
		mustReserve(t, one, reserving("g", 5, at)) // bounded by nothing
	})
}

// What was set aside is replaced by what it has cost, once, also where that is more.
func TestReservationsAreSettledOnce(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		at := time.Now()
		all := capOf("", perDay, 100)
		first, second := reserving("a", 60, at, all), reserving("b", 30, at, all)
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
		settle(one, second, 200, 210) // by another process than the one that has made it
		settle(one, reserving("none", 5, at, all), 5, 210)
		mustRefuse(t, one, reserving("c", 0, at, all), all)
		third := reserving("d", 1, at, capOf("", perDay, math.MaxInt64))
		mustReserve(t, one, third)
		if err := one.Money().Settle(t.Context(), third, math.MaxInt64); err != nil {
			t.Error(err)
		}
		mustRefuse(t, one, reserving("e", 1<<40, at, capOf("", perDay, 1<<40)), capOf("", perDay, 1<<40))
		if err := one.Money().Reserve(t.Context(), reserving("f", -1, at)); err == nil {
			t.Error("less than nothing is set aside")
		}
	})
}

// A day and a month are UTC's, and each is counted anew.
func TestPeriodsBeginAnew(t *testing.T) {
	each(t, func(t *testing.T, one, _ *sqlstore.Store) {
		now := time.Now().UTC()
		last := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second) // of this month
		day, month := capOf("", perDay, 10), capOf("", perMonth, 15)
		mustReserve(t, one, reserving("a", 10, last.In(time.FixedZone("east", 14*3600)), day, month))
		mustRefuse(t, one, reserving("b", 1, last, day, month), day)
		mustRefuse(t, one, reserving("c", 6, last.AddDate(0, 0, -1), day, month), month)
		mustReserve(t, one, reserving("d", 10, last.Add(time.Second), day, month))
		next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		if got := month.Opens(last); !got.Equal(next) {
			t.Errorf("the month opens again at %s, want %s", got, next)
		}
		if got := day.Opens(next); !got.Equal(next.AddDate(0, 0, 1)) {
			t.Errorf("the day opens again at %s", got)
		}
	})
}

// However many set aside at once, in how many processes: a sum passes its cap by what is
// set aside in the same moment at most.
func TestCapsHoldForManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		const cost, most, at50, tries = 10, 2_000, 50, 8
		at := time.Now()
		all, month := capOf("", perDay, most), capOf("", perMonth, 10*most)
		var spent, refused atomic.Int64
		var working sync.WaitGroup
		for w := range at50 {
			working.Go(func() {
				s := []*sqlstore.Store{one, other}[w%2]
				for n := range tries {
					r := reserving(fmt.Sprint(w, "-", n), cost, at, capOf(bill.Person(fmt.Sprint(w%20)), perDay, most), all, month)
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

// Who is forgotten leaves the sums of all, and no name.
func TestForgettingKeepsTheSumsOfAll(t *testing.T) {
	each(t, func(t *testing.T, one, _ *sqlstore.Store) {
		fill(t, one)
		at := time.Now()
		person, session, all := capOf(bill.Person("telegram:7"), perDay, 100), capOf(bill.Session("ops:telegram:2"), perDay, 100), capOf("", perDay, 100)
		mustReserve(t, one, reserving("a", 40, at, person, session, all))
		if _, err := one.ErasePerson(t.Context(), "telegram:7"); err != nil {
			t.Fatal(err)
		}
		checkSpent(t, one, person, at, 0)
		checkSpent(t, one, session, at, 0)
		checkSpent(t, one, all, at, 40)
		if err := one.Money().Settle(t.Context(), reserving("a", 40, at, person, session, all), 30); err != nil {
			t.Fatal(err)
		}
		checkSpent(t, one, person, at, 0)
		checkSpent(t, one, all, at, 30)
	})
}
