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

// A purse is what one turn sets aside, with the sums that it changes.
type purse struct {
	t     *testing.T
	store *sqlstore.Store
	at    time.Time
}

func (p purse) reserve(id string, tokens, tokensCap, micro, microCap int64) bill.Change {
	return bill.Change{
		Tokens: &sessions.Reservation{ID: id, Person: "c:1", Tokens: tokens, Cap: tokensCap, At: p.at},
		Money:  &bill.Reservation{ID: id, Cost: micro, Caps: []bill.Cap{{Of: bill.Person("c:1"), Most: microCap}, {Month: true, Most: 1 << 40}}, At: p.at},
	}
}

// wants fails the test unless so much is spent and set aside.
func (p purse) wants(tokens, micro int64) {
	p.t.Helper()
	if got, err := p.store.Spent(p.t.Context(), "c:1", p.at); got != tokens || err != nil {
		p.t.Errorf("%d tokens, %v, want %d", got, err, tokens)
	}
	for _, c := range []bill.Cap{{Of: bill.Person("c:1")}, {Month: true}} {
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

func entry(cause string) sessions.Entry {
	return sessions.Entry{Turn: "t", Kind: sessions.KindText, Cause: cause}
}

func TestBudgetsAreChangedWithAnAppend(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		p := purse{t, one, time.Now()}
		l := openLog(t, one, "main:c:1", 1)
		with := func(c bill.Change, want bill.Done) {
			t.Helper()
			next := l.Next()
			if done, err := l.AppendWith(t.Context(), next, c, entry("")); done != want || err != nil {
				t.Fatalf("changed %+v, %v, want %+v", done, err, want)
			}
			if l.Next() != next+1 {
				t.Errorf("the next entry is %d, want %d", l.Next(), next+1)
			}
		}
		all := bill.Done{Tokens: true, Money: true}
		with(p.reserve("1", 60, 100, 6, 10), all)
		p.wants(60, 6)
		with(p.reserve("2", 41, 100, 4, 10), bill.Done{Money: true})
		with(p.reserve("3", 40, 100, 1, 10), bill.Done{Tokens: true})
		with(p.reserve("4", 1, 0, 1, 0), bill.Done{})
		p.wants(100, 10)
		settle := p.reserve("1", 60, 100, 6, 10)
		settle.Settle, settle.Used, settle.Cost = true, 10, 1
		with(settle, all)
		p.wants(50, 5)
		with(settle, all) // it is settled already
		with(bill.Change{Tokens: settle.Tokens, Settle: true, Used: 7}, bill.Done{Tokens: true})
		with(bill.Change{Money: settle.Money, Settle: true, Cost: 7}, bill.Done{Money: true})
		p.wants(50, 5)
		with(bill.Change{Tokens: p.reserve("5", 1, 100, 1, 10).Tokens}, bill.Done{Tokens: true})
		with(bill.Change{Money: p.reserve("6", 1, 100, 1, 10).Money}, bill.Done{Money: true})
		p.wants(51, 6)

		// The same again, as after an answer that was lost, changes nothing more.
		at := l.Next()
		for range 2 {
			if _, err := l.AppendWith(t.Context(), at, p.reserve("7", 1, 100, 1, 10), entry("m7")); err != nil {
				t.Fatal(err)
			}
			p.wants(52, 7)
		}
		// What is refused changes no budget.
		if _, err := l.AppendWith(t.Context(), l.Next(), p.reserve("8", 1, 100, 1, 10), entry("m7")); !errors.As(err, new(*sessions.SeenError)) {
			t.Errorf("appended a known cause: %v", err)
		}
		openLog(t, other, "main:c:1", 2)
		if _, err := l.AppendWith(t.Context(), l.Next(), p.reserve("9", 1, 100, 1, 10), entry("")); !errors.Is(err, sessions.ErrFenced) {
			t.Errorf("appended under an old fence: %v", err)
		}
		p.wants(52, 7)
	})
}

// Many sessions of one person, in two processes, reserve and settle at once.
func TestChangesOfManyAtOnceAddUp(t *testing.T) {
	each(t, func(t *testing.T, one, other *sqlstore.Store) {
		p := purse{t, one, time.Now()}
		var turns sync.WaitGroup
		for n := range 20 {
			turns.Go(func() {
				s := []*sqlstore.Store{one, other}[n%2]
				l := openLog(t, s, fmt.Sprintf("main:c:%d", n), 1)
				for m := range 10 {
					c := p.reserve(fmt.Sprint(n, "-", m), 100, 1<<40, 50, 1<<40)
					for _, settle := range []bool{false, true} {
						c.Settle, c.Used, c.Cost = settle, 3, 2
						if done, err := l.AppendWith(t.Context(), l.Next(), c, entry("")); !done.Tokens || !done.Money || err != nil {
							t.Errorf("changed %+v, %v", done, err)
						}
					}
				}
			})
		}
		turns.Wait()
		p.wants(600, 400)
	})
}
