package purse_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agent/llm"
	"parley/agent/purse"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqlstore"
)

func open(t *testing.T) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newPurse(s *sqlstore.Store) *purse.Purse {
	return &purse.Purse{Tokens: s, Money: s.Money(), Log: slog.New(slog.DiscardHandler)}
}

func take(t *testing.T, p *purse.Purse, name string, a purse.Amount, b purse.Bounds) {
	t.Helper()
	if err := p.Take(t.Context(), name, a, b); err != nil {
		t.Errorf("take %+v: %v", a, err)
	}
}

func refuse(t *testing.T, p *purse.Purse, name string, a purse.Amount, b purse.Bounds) *purse.OverError {
	t.Helper()
	err := p.Take(t.Context(), name, a, b)
	over, ok := errors.AsType[*purse.OverError](err)
	if !ok {
		t.Fatalf("take %+v: %v", a, err)
	}
	return over
}

func check(t *testing.T, s *sqlstore.Store, what string, tokens, micro int64) {
	t.Helper()
	gotTokens, err := s.Spent(t.Context(), "a", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	gotMicro, err := s.Money().Spent(t.Context(), bill.Cap{}, time.Now())
	if err != nil || gotTokens != tokens || gotMicro != micro {
		t.Errorf("%s: %d tokens and %d micro-dollars, %v, want %d and %d", what, gotTokens, gotMicro, err, tokens, micro)
	}
}

// A turn sets aside for several calls at once, and what it has not spent is given back.
func TestATurnSetsAsideForSeveralCalls(t *testing.T) {
	s := open(t)
	p := newPurse(s)
	bounds := purse.Bounds{Person: "a", TokensDay: 1000, Caps: []bill.Cap{{Most: 10_000}}}
	call := purse.Amount{Tokens: 100, Micro: 1000}
	for range 4 {
		take(t, p, "t1#1.1", call, bounds)
		check(t, s, "set aside", 400, 4000)
		p.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
	}
	take(t, p, "t1#1.1", call, bounds)
	check(t, s, "the fifth call", 120+400, 1200+4000)
	p.Settle(t.Context())
	p.Settle(t.Context())
	check(t, s, "at the end", 120, 1200)
}

// Where there is not enough for several calls, there may be for one; where there is not,
// nothing is set aside, of tokens as of money.
func TestTheLastOfABudget(t *testing.T) {
	s := open(t)
	bounds := purse.Bounds{Person: "a", TokensDay: 1000, Caps: []bill.Cap{{Of: bill.Person("a"), Most: 5_000}, {Most: 1_500}}}
	first, second := newPurse(s), newPurse(s)
	call := purse.Amount{Tokens: 100, Micro: 1000}
	take(t, first, "t1#1.1", call, bounds)
	check(t, s, "one call", 100, 1000)
	if over := refuse(t, second, "t2#1.1", call, bounds); over.Cap == nil || over.Cap.Of != "" {
		t.Errorf("over %+v", over)
	}
	check(t, s, "and none", 100, 1000)
	first.Settle(t.Context())
	check(t, s, "none was made", 0, 0)
	if over := refuse(t, second, "t2#1.2", purse.Amount{Tokens: 1001, Micro: 1}, bounds); over.Cap != nil || over.Tokens != 1000 {
		t.Errorf("over %+v", over)
	}
	take(t, second, "t2#1.3", purse.Amount{Tokens: 1 << 40, Micro: 1 << 50}, purse.Bounds{Person: "a"})
	check(t, s, "nothing bounds it", 0, 0)
}

// What goes along with an append is what Take and Settle would do; what does not is left to
// them.
func TestReservingAndSettlingWithAnAppend(t *testing.T) {
	write := func(s *sqlstore.Store, c bill.Change) bill.Done {
		t.Helper()
		opened, err := s.Open(t.Context(), "main:c:1", 1)
		if err != nil {
			t.Fatal(err)
		}
		log := opened.(bill.Log) //nolint:forcetypeassert // a panic says as much
		done, err := log.AppendWith(t.Context(), log.Next(), c, sessions.Entry{Turn: "t", Kind: sessions.KindText})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	call := purse.Amount{Tokens: 100, Micro: 1000}
	for i, turn := range []struct {
		tokensDay, most    int64
		reserved, ofTokens int64 // with the append, of money and of tokens
	}{
		{1000, 10_000, 4000, 400},
		{1000, 3_000, 0, 400}, // too little for four calls
		{300, 10_000, 4000, 0},
		{300, 3_000, 0, 0},
		{0, 10_000, 4000, 0}, // nothing bounds tokens
	} {
		s := open(t)
		p, name := newPurse(s), string(rune('a'+i))
		bounds := purse.Bounds{Person: "a", TokensDay: turn.tokensDay, Caps: []bill.Cap{{Most: turn.most}}}
		bounded := call
		if turn.tokensDay == 0 {
			bounded.Tokens = 0
		}
		c := p.ReservationAhead(name, call, bounds)
		p.Keep(c, write(s, c))
		check(t, s, "set aside ahead", turn.ofTokens, turn.reserved)
		take(t, p, name, call, bounds)
		if i == 0 || i == 4 {
			check(t, s, "taken from it", 4*bounded.Tokens, 4*bounded.Micro)
		} else {
			check(t, s, "set aside anew", bounded.Tokens, bounded.Micro)
		}
		p.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
		p.Settled(write(s, p.Settlement()))
		tokens := min(bounded.Tokens, 30)
		check(t, s, "settled", tokens, 300)
		p.Settle(t.Context())
		check(t, s, "settled twice", tokens, 300)
	}
}

// A lossy store does what it is asked to and, that many times, does not come to say so.
type lossy struct {
	*sqlstore.Store
	*bill.Budget
	lose int
	cut  func() // called with each lost answer
}

var errLost = errors.New("the connection broke")

func (l *lossy) answer(err error) error {
	if err != nil || l.lose == 0 {
		return err
	}
	l.lose--
	l.cut()
	return errLost
}

type lossyTokens struct{ *lossy }

func (l lossyTokens) Reserve(ctx context.Context, r sessions.Reservation) error {
	return l.answer(l.Store.Reserve(ctx, r))
}

func (l lossyTokens) Settle(ctx context.Context, r sessions.Reservation, tokens int64) error {
	return l.answer(l.Store.Settle(ctx, r, tokens))
}

func (l lossyTokens) Spent(ctx context.Context, person string, at time.Time) (int64, error) {
	return l.Store.Spent(ctx, person, at)
}

type lossyMoney struct{ *lossy }

func (l lossyMoney) Reserve(ctx context.Context, r bill.Reservation) error {
	return l.answer(l.Budget.Reserve(ctx, r))
}

func (l lossyMoney) Settle(ctx context.Context, r bill.Reservation, cost int64) error {
	return l.answer(l.Budget.Settle(ctx, r, cost))
}

// An answer of the store that is lost sets nothing aside twice, or for good.
func TestWhatIsSetAsideWithoutAnAnswerIsGivenBack(t *testing.T) {
	bounds := purse.Bounds{Person: "a", TokensDay: 1000, Caps: []bill.Cap{{Most: 10_000}}}
	call := purse.Amount{Tokens: 100, Micro: 1000}
	for _, tc := range []struct {
		name          string
		tokens, money int // answers that are lost
		cut           bool
	}{{"once", 1, 1, false}, {"twice", 2, 2, false}, {"of tokens, and the turn ends", 1, 0, true}, {"of money, and the turn ends", 0, 1, true}} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cut := func() {
				if tc.cut {
					cancel()
				}
			}
			p := newPurse(s)
			p.Tokens = lossyTokens{&lossy{Store: s, Budget: s.Money(), lose: tc.tokens, cut: cut}}
			p.Money = lossyMoney{&lossy{Store: s, Budget: s.Money(), lose: tc.money, cut: cut}}
			err := p.Take(ctx, "t1#1.1", call, bounds)
			if tc.cut {
				if !errors.Is(err, errLost) || !errors.Is(err, context.Canceled) {
					t.Errorf("taken: %v", err)
				}
				check(t, s, "given back", 0, 0)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, s, "set aside", 400, 4000)
			p.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
			p.Tokens = lossyTokens{&lossy{Store: s, Budget: s.Money(), lose: tc.tokens, cut: cut}}
			p.Money = lossyMoney{&lossy{Store: s, Budget: s.Money(), lose: tc.money, cut: cut}}
			p.Settle(ctx)
			check(t, s, "settled", 30, 300)
		})
	}
}

func TestWhoMeetsALimitIsToldWhenItOpens(t *testing.T) {
	at := time.Date(2026, 11, 23, 21, 30, 0, 0, time.UTC)
	over := func(c bill.Cap) *purse.OverError { return &purse.OverError{Cap: &c, At: at} }
	beats := purse.Owner{Name: "Heartbeats", MoneySetting: "[heartbeat] day", TokensSetting: "[heartbeat] tokens_day"}
	const day = " I go on from 24 November, 00:00 UTC, which is in 2 h 30 min."
	for _, c := range []struct {
		over *purse.OverError
		want string
		set  string
	}{
		{&purse.OverError{Tokens: 5, At: at}, "You have used up the 5 tokens that a person may use in a day." + day, "[limits] user_tokens_day"},
		{over(bill.Cap{Of: bill.Person("x"), Most: 2_000_000}), "You have used up the $2.00 that a person may cost in a day." + day, "[budget] user_day"},
		{over(bill.Cap{Of: bill.Session("x"), Most: 500_000}), "This conversation has used up the $0.50 that one may cost in a day." + day, "[budget] session_day"},
		{over(bill.Cap{Of: bill.Agent("x"), Most: 5_000_000}), "I have used up the $5.00 that I may cost in a day." + day, "[agents.NAME] day"},
		{over(bill.Cap{Most: 20_000_000}), "The $20.00 that all may cost in a day are used up." + day, "[budget] day"},
		{
			&purse.OverError{Cap: &bill.Cap{Of: bill.Person("heartbeat:main"), Most: 500_000}, At: at, Owner: beats},
			"Heartbeats have used up the $0.50 that they may cost in a day." + day + " The setting is `[heartbeat] day`.", "[heartbeat] day",
		},
		{
			&purse.OverError{Tokens: 5, At: at, Owner: beats},
			"Heartbeats have used up the 5 tokens that they may use in a day." + day + " The setting is `[heartbeat] tokens_day`.", "[heartbeat] tokens_day",
		},
		{
			&purse.OverError{Cap: &bill.Cap{Most: 20_000_000}, At: at, Owner: beats},
			"The $20.00 that all may cost in a day are used up." + day, "[budget] day",
		},
		{
			over(bill.Cap{Month: true, Most: 200_000_000}),
			"The $200.00 that all may cost in a month are used up. I go on from 1 December, 00:00 UTC, which is in 7 days.", "[budget] month",
		},
	} {
		if got := c.over.Words(false); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if got := c.over.Words(true); !strings.Contains(got, c.set) {
			t.Errorf("%q does not name %s", got, c.set)
		}
	}
}
