package bill_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

// A turnRig is a turn that reserves tokens and money in one store, and what other processes do with its
// reservations.
type turnRig struct {
	t     *testing.T
	store *sqlstore.Store
	db    *sqldb.DB // the same database
	at    time.Time
	caps  []bill.Cap
}

func newTurnRig(t *testing.T, place string, s *sqlstore.Store) *turnRig {
	t.Helper()
	raw, err := sqldb.OpenAt(t.Context(), place, sqlstore.Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	return &turnRig{t, s, raw, time.Now(), []bill.Cap{newCap(bill.Person("p"), perDay, 1000), newCap("", perDay, 1000), newCap("", perMonth, 1000)}}
}

func (r *turnRig) tokens(id string, all, used, sent int64) sessions.Reservation {
	return sessions.Reservation{ID: id, Session: "main:c:1", Person: "p", Tokens: all, Used: used, SentTokens: sent, Cap: 1000, At: r.at}
}

func (r *turnRig) money(id string, all, used, sent int64) bill.Reservation {
	return bill.Reservation{ID: id, Session: "main:c:1", Cost: all, Used: used, SentCost: sent, Caps: r.caps, At: r.at}
}

func (r *turnRig) reserve(id string, all, used, sent int64) {
	r.t.Helper()
	if err := errors.Join(r.store.Reserve(r.t.Context(), r.tokens(id, all, used, sent)), r.store.Money().Reserve(r.t.Context(), r.money(id, all, used, sent))); err != nil {
		r.t.Error(err)
	}
}

func (r *turnRig) settle(id string, used int64) {
	r.t.Helper()
	if err := errors.Join(r.store.Settle(r.t.Context(), r.tokens(id, 0, 0, 0), used), r.store.Money().Settle(r.t.Context(), r.money(id, 0, 0, 0), used)); err != nil {
		r.t.Error(err)
	}
}

// takeOver takes over the reservations of turn t, and fails the test unless this much is left.
func (r *turnRig) takeOver(id string, left int64, found bool) {
	r.t.Helper()
	tokens, ok, err := r.store.TakeOver(r.t.Context(), r.tokens(id, 0, 0, 0), "t")
	if tokens != left || ok != found || err != nil {
		r.t.Errorf("%d tokens are taken over, %v, %v, want %d", tokens, ok, err, left)
	}
	micro, ok, err := r.store.Money().TakeOver(r.t.Context(), r.money(id, 0, 0, 0), "t")
	if micro != left || ok != found || err != nil {
		r.t.Errorf("%d micro-dollars are taken over, %v, %v, want %d", micro, ok, err, left)
	}
}

// wantSums fails the test unless these amounts are spent and reserved.
func (r *turnRig) wantSums(spent, aside int64) {
	r.t.Helper()
	for _, c := range r.caps {
		if s, a, err := r.store.Money().State(r.t.Context(), c, r.at); s != spent || a != aside || err != nil {
			r.t.Errorf("%+v: %d are spent and %d set aside, %v, want %d and %d", c, s, a, err, spent, aside)
		}
	}
	both, err := r.store.Spent(r.t.Context(), "p", r.at)
	reserved, err2 := r.store.Reserved(r.t.Context(), "p", r.at)
	if both-reserved != spent || reserved != aside || err != nil || err2 != nil {
		r.t.Errorf("%d tokens are spent and %d reserved, %v, %v, want %d and %d", both-reserved, reserved, err, err2, spent, aside)
	}
}

// execSQL changes the database directly, for example as if time had passed.
func (r *turnRig) execSQL(statements ...string) {
	r.t.Helper()
	err := r.db.Write(r.t.Context(), func(tx *sqldb.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *turnRig) ageOneMinute() {
	r.execSQL("UPDATE charges SET until = 1 WHERE until > 0", "UPDATE reservations SET until = 1 WHERE until > 0")
}

func (r *turnRig) settleAbandoned(want int) {
	r.t.Helper()
	if n, err := r.store.SettleAbandoned(r.t.Context()); n != want || err != nil {
		r.t.Errorf("%d abandoned reservations were settled, %v, want %d", n, err, want)
	}
}

// A process that resumes a turn takes over what its predecessor has reserved, without the used part.
func TestAResumedTurnTakesOverItsReservations(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, other *sqlstore.Store) {
		first, next := newTurnRig(t, at, one), newTurnRig(t, at, other)
		first.reserve("t#7.1.0", 600, 100, 200)
		first.reserve("t#x#7.1.0", 50, 0, 50) // belongs to another turn
		first.wantSums(100, 550)
		next.takeOver("t#8.1.0", 500, true)
		next.takeOver("t#8.1.0", 500, true) // repeated, because the answer was lost
		next.wantSums(100, 550)
		first.settle("t#7.1.0", 600) // the predecessor comes back, but its reservation is gone
		next.wantSums(100, 550)
		known, err := one.Money().Renew(t.Context(), first.money("t#7.1.0", 1, 0, 0))
		if known || err != nil {
			t.Errorf("what another has is renewed: %v, %v", known, err)
		}
		next.settle("t#8.1.0", 30)
		next.wantSums(130, 50)
		next.takeOver("t#9.1.0", 0, false)
	})
}

// A reservation follows the turn's calls, within the caps, in a write of its own and with an append.
func TestAReservationIsRenewed(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, other *sqlstore.Store) {
		r := newTurnRig(t, at, one)
		r.reserve("t#1.1.0", 600, 0, 200)
		newTurnRig(t, at, other).reserve("u#2.1.0", 300, 0, 300)
		renew := func(all, used int64, over bool) {
			t.Helper()
			known, err := one.Renew(t.Context(), r.tokens("t#1.1.0", all, used, 1))
			if !known || errors.Is(err, sessions.ErrOverBudget) != over || !over && err != nil {
				t.Errorf("renewed to %d tokens: %v, %v", all, known, err)
			}
			known, err = one.Money().Renew(t.Context(), r.money("t#1.1.0", all, used, 1))
			if is := errors.As(err, new(*bill.OverError)); !known || is != over || !over && err != nil {
				t.Errorf("renewed to %d micro-dollars: %v, %v", all, known, err)
			}
		}
		renew(700, 50, false)
		r.wantSums(50, 950)
		renew(701, 60, true)
		r.wantSums(50, 950)
		renew(400, 60, false)
		renew(400, 60, false)
		r.wantSums(60, 640)

		l := openLog(t, one, "main:c:1", 1)
		with := func(all, used int64, done bool) {
			t.Helper()
			tokens, money := r.tokens("t#1.1.0", all, used, 1), r.money("t#1.1.0", all, used, 1)
			got, err := l.AppendWith(t.Context(), l.Next(), bill.Change{IsRenewal: true, Tokens: &tokens, Money: &money}, newEntry(""))
			if want := (bill.Changed{Tokens: done, Money: done}); got != want || err != nil {
				t.Errorf("changed %+v, %v, want %+v", got, err, want)
			}
		}
		with(700, 70, true)
		r.wantSums(70, 930)
		with(701, 80, false)
		with(100, 80, true)
		r.wantSums(80, 320)
		r.settle("t#1.1.0", 90)
		with(100, 90, false)
		r.wantSums(90, 300)
	})
}

// If nobody works on a turn anymore, its reservations are settled at the known cost of its calls. A holder that
// comes back corrects that, or takes the reservation over.
func TestAbandonedReservationsAreSettled(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, other *sqlstore.Store) {
		r := newTurnRig(t, at, one)
		sweeper := newTurnRig(t, at, other)
		r.reserve("t#1.1.0", 600, 100, 200)
		sweeper.settleAbandoned(0)
		r.wantSums(100, 500)
		r.ageOneMinute()
		if err := errors.Join(one.Extend(t.Context(), []string{"t#1.1.0"}), one.Money().Extend(t.Context(), []string{"t#1.1.0"})); err != nil {
			t.Fatal(err)
		}
		sweeper.settleAbandoned(0)
		r.wantSums(100, 500)
		r.ageOneMinute()
		sweeper.settleAbandoned(2)
		r.wantSums(300, 0)
		sweeper.settleAbandoned(0)
		r.settle("t#1.1.0", 150) // its process was paused
		r.wantSums(150, 0)
		r.settle("t#1.1.0", 150)
		r.wantSums(150, 0)

		r.reserve("t#2.1.0", 600, 50, 200)
		r.ageOneMinute()
		sweeper.settleAbandoned(2)
		r.wantSums(400, 0)
		sweeper.takeOver("t#3.1.0", 200, true)
		r.wantSums(200, 200)
		sweeper.settle("t#3.1.0", 10)
		r.wantSums(210, 0)

		r.reserve("t#4.1.0", 600, 50, 40)
		r.ageOneMinute()
		sweeper.settleAbandoned(2)
		r.ageOneMinute() // after an hour, nobody has come back
		sweeper.settleAbandoned(0)
		r.settle("t#4.1.0", 600)
		r.wantSums(300, 0)
	})
}

// Reservations of the previous release, for four calls at once and without their counters, are taken over too,
// and otherwise settled by age.
func TestReservationsOfThePreviousRelease(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, other *sqlstore.Store) {
		r := newTurnRig(t, at, one)
		day, month := r.at.UTC().Format(time.DateOnly), r.at.UTC().Format("2006-01")
		old := func(id string) {
			t.Helper()
			r.execSQL("INSERT INTO charges (id, day, shard, micro) VALUES ('"+id+"', '"+day+"', 7, 400)",
				"INSERT INTO reservations (id, person, day, tokens, settled) VALUES ('"+id+"', 'p', '"+day+"', 400, FALSE)",
				"INSERT INTO spending (person, day, tokens) VALUES ('p', '"+day+"', 400) ON CONFLICT (person, day) DO UPDATE SET tokens = spending.tokens + 400")
			for _, c := range [][2]string{{day, "person:p"}, {day, ""}, {month, ""}} {
				r.execSQL("INSERT INTO counters (period, subject, shard, micro) VALUES ('" + c[0] + "', '" + c[1] + "', 7, 400) ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + 400")
			}
		}
		old("t#5.1.0")
		newTurnRig(t, at, other).takeOver("t#6.1.0", 300, true)
		r.wantSums(100, 300)
		r.settle("t#6.1.0", 20)
		r.wantSums(120, 0)

		old("u#5.1.0")
		r.settleAbandoned(0)
		r.ageOneMinute()
		r.settleAbandoned(2)
		if s, _, err := one.Money().State(t.Context(), r.caps[1], r.at); s != 220 || err != nil {
			t.Errorf("of all are %d spent, %v, want one call of four", s, err)
		}
		if n, err := one.Spent(t.Context(), "p", r.at); n != 220 || err != nil {
			t.Errorf("%d tokens are spent, %v, want one call of four", n, err)
		}
	})
}

// After a person is forgotten, no reservation contains the name, and the possible cost stays counted in the
// totals.
func TestForgettingDetachesReservations(t *testing.T) {
	for name, forget := range map[string]func(context.Context, *sqlstore.Store) error{
		"a session": func(ctx context.Context, s *sqlstore.Store) error {
			_, err := s.EraseSession(ctx, "main:c:1")
			return err
		},
		"a person": func(ctx context.Context, s *sqlstore.Store) error { _, err := s.ErasePerson(ctx, "p"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			sqlstoretest.Each(t, func(t *testing.T, at string, one, other *sqlstore.Store) {
				r := newTurnRig(t, at, one)
				openLog(t, one, "main:c:1", 1)
				r.reserve("t#1.1.0", 600, 100, 200)
				if err := forget(t.Context(), other); err != nil {
					t.Fatal(err)
				}
				newTurnRig(t, at, other).takeOver("t#2.1.0", 0, false)
				if spent, aside, err := one.Money().State(t.Context(), r.caps[1], r.at); spent != 100 || aside != 500 || err != nil {
					t.Errorf("%d are spent and %d set aside, %v", spent, aside, err)
				}
				r.ageOneMinute()
				r.settleAbandoned(2)
				if spent, aside, err := one.Money().State(t.Context(), r.caps[1], r.at); spent != 300 || aside != 0 || err != nil {
					t.Errorf("%d are spent and %d set aside, %v", spent, aside, err)
				}
				var rows int
				if err := r.db.Read.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM charges) + (SELECT count(*) FROM reservations WHERE session <> '')").Scan(&rows); err != nil || rows != 0 {
					t.Errorf("%d rows are left, %v", rows, err)
				}
			})
		})
	}
}

// Forgetting a person or session changes only their own reservations, whatever characters their ids contain.
func TestForgettingKeepsOthersReservations(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, _ *sqlstore.Store) {
		r := newTurnRig(t, at, one)
		people := []string{"c:<1>&\"é", "c:<1>&\"è", "c:1", "c:11", "%", "_"}
		for n, person := range people {
			session := fmt.Sprint("main:", person)
			reservation := bill.Reservation{ID: fmt.Sprint("t", n, "#1"), Session: session, Cost: 10, At: r.at, Caps: []bill.Cap{
				newCap(bill.Person(person), perDay, 1000), newCap(bill.Session(session), perDay, 1000), newCap("", perDay, 1000),
			}}
			if err := one.Money().Reserve(t.Context(), reservation); err != nil {
				t.Fatal(err)
			}
		}
		want := func(of string, want int64) {
			t.Helper()
			if _, aside, err := one.Money().State(t.Context(), newCap(of, perDay, 1000), r.at); aside != want || err != nil {
				t.Errorf("for %s %d are set aside, %v, want %d", of, aside, err, want)
			}
		}
		for n, person := range people {
			session := fmt.Sprint("main:", person)
			want(bill.Person(person), 10)
			want(bill.Session(session), 10)
			err := r.db.Write(t.Context(), func(tx *sqldb.Tx) error {
				return errors.Join(bill.Detach(tx, session, bill.Session(session)), bill.Detach(tx, "", bill.Person(person)))
			})
			if err != nil {
				t.Fatal(err)
			}
			want(bill.Person(person), 0)
			want(bill.Session(session), 0)
			for _, other := range people[n+1:] {
				want(bill.Person(other), 10)
			}
			var owned int
			if err := r.db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM charges WHERE session <> ''").Scan(&owned); err != nil || owned != len(people)-n-1 {
				t.Errorf("%d rows are owned after %d people were forgotten, %v", owned, n+1, err)
			}
		}
		want("", int64(10*len(people)))
	})
}

// BenchmarkDisown forgets sessions without reservations while many other turns are running.
func BenchmarkDisown(b *testing.B) {
	const underWay = 500
	db, err := sqldb.OpenAt(b.Context(), filepath.Join(b.TempDir(), "store.db"), sqlstore.Schema())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	money := bill.NewBudget(db)
	for n := range underWay {
		person, session := fmt.Sprint("telegram:", n), fmt.Sprint("main:telegram:", n)
		r := bill.Reservation{ID: fmt.Sprint("t", n, "#1"), Session: session, Cost: 10, At: time.Now(), Caps: []bill.Cap{
			newCap(bill.Person(person), perDay, 1000), newCap(bill.Session(session), perDay, 1000), newCap("", perDay, 1<<40), newCap("", perMonth, 1<<40),
		}}
		if err := money.Reserve(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	err = db.Write(b.Context(), func(tx *sqldb.Tx) error {
		for n := 0; b.Loop(); n++ {
			session := fmt.Sprint("main:telegram:x", n)
			if err := bill.Detach(tx, session, bill.Session(session)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
}
