package bill_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqlstore"
)

// A turnBudget makes the changes of one turn's budgets, and checks the sums.
type turnBudget struct {
	t     *testing.T
	store *sqlstore.Store
	at    time.Time
}

func (p turnBudget) reserve(id string, tokens, tokensCap, micro, microCap int64) bill.Change {
	return bill.Change{
		Tokens: &sessions.Reservation{ID: id, Person: "c:1", Tokens: tokens, Cap: tokensCap, At: p.at},
		Money:  &bill.Reservation{ID: id, Cost: micro, Caps: []bill.Cap{{Subject: bill.Person("c:1"), Limit: microCap}, {IsMonthly: true, Limit: 1 << 40}}, At: p.at},
	}
}

// wantReserved fails the test unless these amounts are spent or reserved.
func (p turnBudget) wantReserved(tokens, micro int64) {
	p.t.Helper()
	if got, err := p.store.Spent(p.t.Context(), "c:1", p.at); got != tokens || err != nil {
		p.t.Errorf("%d tokens, %v, want %d", got, err, tokens)
	}
	for _, c := range []bill.Cap{{Subject: bill.Person("c:1")}, {IsMonthly: true}} {
		if got, err := p.store.Money().Spent(p.t.Context(), c, p.at); got != micro || err != nil {
			p.t.Errorf("%+v: %d micro-dollars, %v, want %d", c, got, err, micro)
		}
	}
}

func openLog(t *testing.T, s *sqlstore.Store, key string, fence int64) bill.Log {
	t.Helper()
	l, err := s.Open(t.Context(), key, fence)
	if err != nil {
		t.Fatal(err)
	}
	return l.(bill.Log) //nolint:forcetypeassert // a panic says as much
}

func newEntry(cause string) sessions.Entry {
	return sessions.Entry{Turn: "t", Kind: sessions.KindText, Cause: cause}
}

func TestBudgetsAreChangedWithAnAppend(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		p := turnBudget{t, one, time.Now()}
		l := openLog(t, one, "main:c:1", 1)
		with := func(c bill.Change, want bill.Changed) {
			t.Helper()
			next := l.Next()
			if done, err := l.AppendWith(t.Context(), next, c, newEntry("")); done != want || err != nil {
				t.Fatalf("changed %+v, %v, want %+v", done, err, want)
			}
			if l.Next() != next+1 {
				t.Errorf("the next entry is %d, want %d", l.Next(), next+1)
			}
		}
		all := bill.Changed{Tokens: true, Money: true}
		with(p.reserve("1", 60, 100, 6, 10), all)
		p.wantReserved(60, 6)
		with(p.reserve("2", 41, 100, 4, 10), bill.Changed{Money: true})
		with(p.reserve("3", 40, 100, 1, 10), bill.Changed{Tokens: true})
		with(p.reserve("4", 1, 0, 1, 0), bill.Changed{})
		p.wantReserved(100, 10)
		settle := p.reserve("1", 60, 100, 6, 10)
		settle.IsSettlement, settle.Used, settle.Cost = true, 10, 1
		with(settle, all)
		p.wantReserved(50, 5)
		with(settle, all) // it was already settled
		with(bill.Change{Tokens: settle.Tokens, IsSettlement: true, Used: 7}, bill.Changed{Tokens: true})
		with(bill.Change{Money: settle.Money, IsSettlement: true, Cost: 7}, bill.Changed{Money: true})
		p.wantReserved(50, 5)
		with(bill.Change{Tokens: p.reserve("5", 1, 100, 1, 10).Tokens}, bill.Changed{Tokens: true})
		with(bill.Change{Money: p.reserve("6", 1, 100, 1, 10).Money}, bill.Changed{Money: true})
		p.wantReserved(51, 6)

		// A repeated append, as after a lost answer, changes nothing more.
		at := l.Next()
		for range 2 {
			if _, err := l.AppendWith(t.Context(), at, p.reserve("7", 1, 100, 1, 10), newEntry("m7")); err != nil {
				t.Fatal(err)
			}
			p.wantReserved(52, 7)
		}
		// A refused append changes no budget.
		if _, err := l.AppendWith(t.Context(), l.Next(), p.reserve("8", 1, 100, 1, 10), newEntry("m7")); !errors.As(err, new(*sessions.SeenError)) {
			t.Errorf("appended a known cause: %v", err)
		}
		openLog(t, other, "main:c:1", 2)
		if _, err := l.AppendWith(t.Context(), l.Next(), p.reserve("9", 1, 100, 1, 10), newEntry("")); !errors.Is(err, sessions.ErrFenced) {
			t.Errorf("appended under an old fence: %v", err)
		}
		p.wantReserved(52, 7)
	})
}

// Many sessions of one person reserve and settle concurrently, in two processes.
func TestConcurrentChangesAddUp(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		p := turnBudget{t, one, time.Now()}
		var turns sync.WaitGroup
		for n := range 20 {
			turns.Go(func() {
				s := []*sqlstore.Store{one, other}[n%2]
				l := openLog(t, s, fmt.Sprintf("main:c:%d", n), 1)
				for m := range 10 {
					c := p.reserve(fmt.Sprint(n, "-", m), 100, 1<<40, 50, 1<<40)
					for _, settle := range []bool{false, true} {
						c.IsSettlement, c.Used, c.Cost = settle, 3, 2
						if done, err := l.AppendWith(t.Context(), l.Next(), c, newEntry("")); !done.Tokens || !done.Money || err != nil {
							t.Errorf("changed %+v, %v", done, err)
						}
					}
				}
			})
		}
		turns.Wait()
		p.wantReserved(600, 400)
	})
}
