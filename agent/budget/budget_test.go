package budget_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/budget"
	"parley/agent/llm"
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

func newReservations(s *sqlstore.Store) *budget.Reservations {
	return &budget.Reservations{Tokens: s, Money: s.Money(), Log: slog.New(slog.DiscardHandler)}
}

// likelyCall returns a call of which the request is a tenth.
func likelyCall(a budget.Amount) budget.Call {
	return budget.Call{All: a, OnceSent: budget.Amount{Tokens: a.Tokens / 10, Micro: a.Micro / 10}}
}

func take(t *testing.T, p *budget.Reservations, name string, a budget.Amount, b budget.Bounds) {
	t.Helper()
	if err := p.Take(t.Context(), name, likelyCall(a), b); err != nil {
		t.Errorf("take %+v: %v", a, err)
	}
}

func refuse(t *testing.T, p *budget.Reservations, name string, a budget.Amount, b budget.Bounds) *budget.OverError {
	t.Helper()
	err := p.Take(t.Context(), name, likelyCall(a), b)
	over, ok := errors.AsType[*budget.OverError](err)
	if !ok {
		t.Fatalf("take %+v: %v", a, err)
	}
	return over
}

func checkReserved(t *testing.T, s *sqlstore.Store, what string, tokens, micro int64) {
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

// A turn reserves the amount that its calls have used and that the next one may use, and settles the rest.
func TestATurnSetsAsideForItsNextCall(t *testing.T) {
	s := open(t)
	p := newReservations(s)
	bounds := budget.Bounds{Person: "a", TokensDay: 1000, Caps: []bill.Cap{{Limit: 10_000}}}
	call := budget.Amount{Tokens: 100, Micro: 1000}
	for n := range int64(4) {
		take(t, p, "t1#1.1", call, bounds)
		checkReserved(t, s, "set aside", 30*n+100, 300*n+1000)
		p.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
	}
	take(t, p, "t1#1.1", budget.Amount{Tokens: 70, Micro: 700}, bounds) // the reservation is enough for this one
	checkReserved(t, s, "nothing more", 190, 1900)
	p.Settle(t.Context())
	p.Settle(t.Context())
	checkReserved(t, s, "at the end", 120, 1200)
}

// A budget with too little room for several calls may have room for one. If it has too little for one, nothing is
// reserved, neither tokens nor money.
func TestTheLastOfABudget(t *testing.T) {
	s := open(t)
	bounds := budget.Bounds{Person: "a", TokensDay: 1000, Caps: []bill.Cap{{Subject: bill.Person("a"), Limit: 5_000}, {Limit: 1_500}}}
	first, second := newReservations(s), newReservations(s)
	call := budget.Amount{Tokens: 100, Micro: 1000}
	take(t, first, "t1#1.1", call, bounds)
	checkReserved(t, s, "one call", 100, 1000)
	if over := refuse(t, second, "t2#1.1", call, bounds); over.Cap == nil || over.Cap.Subject != "" {
		t.Errorf("over %+v", over)
	}
	checkReserved(t, s, "and none", 100, 1000)
	first.Settle(t.Context())
	checkReserved(t, s, "none was made", 0, 0)
	if over := refuse(t, second, "t2#1.2", budget.Amount{Tokens: 1001, Micro: 1}, bounds); over.Cap != nil || over.Tokens != 1000 {
		t.Errorf("over %+v", over)
	}
	take(t, second, "t2#1.3", budget.Amount{Tokens: 1 << 40, Micro: 1 << 50}, budget.Bounds{Person: "a"})
	checkReserved(t, s, "nothing bounds it", 0, 0)
}

// A change that is written along with an append does the same as Take and Settle. They do the part that was not
// written.
func TestReservingAndSettlingWithAnAppend(t *testing.T) {
	write := func(s *sqlstore.Store, c bill.Change) bill.Changed {
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
	call := budget.Amount{Tokens: 100, Micro: 1000}
	for i, turn := range []struct {
		tokensDay, most    int64
		reserved, ofTokens int64 // written with the append: money and tokens
	}{
		{1000, 10_000, 1000, 100},
		{0, 10_000, 1000, 0}, // tokens are not limited
	} {
		s := open(t)
		p, name := newReservations(s), string(rune('a'+i))
		bounds := budget.Bounds{Person: "a", TokensDay: turn.tokensDay, Caps: []bill.Cap{{Limit: turn.most}}}
		bounded := call
		if turn.tokensDay == 0 {
			bounded.Tokens = 0
		}
		c := p.ReservationChange(name, likelyCall(call), bounds)
		p.Keep(c, write(s, c))
		checkReserved(t, s, "set aside ahead", turn.ofTokens, turn.reserved)
		take(t, p, name, call, bounds)
		checkReserved(t, s, "taken from it", bounded.Tokens, bounded.Micro)
		p.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
		c = p.RenewalChange(likelyCall(call), bounds)
		p.Keep(c, write(s, c))
		checkReserved(t, s, "set aside for the next", bounded.Tokens+min(bounded.Tokens, 30), bounded.Micro+300)
		take(t, p, name, call, bounds)
		checkReserved(t, s, "and taken from it", bounded.Tokens+min(bounded.Tokens, 30), bounded.Micro+300)
		p.Settled(write(s, p.Settlement()))
		tokens := min(bounded.Tokens, 30)
		checkReserved(t, s, "settled", tokens, 300)
		p.Settle(t.Context())
		checkReserved(t, s, "settled twice", tokens, 300)
	}
}

// A lossyStore carries out its requests, but loses the given number of answers.
type lossyStore struct {
	*sqlstore.Store
	*bill.Budget
	lossesLeft int
	onLoss     func() // called with each lost answer
}

var errLost = errors.New("the connection broke")

func (l *lossyStore) answer(err error) error {
	if err != nil || l.lossesLeft == 0 {
		return err
	}
	l.lossesLeft--
	l.onLoss()
	return errLost
}

type lossyTokens struct{ *lossyStore }

func (l lossyTokens) Renew(ctx context.Context, r sessions.Reservation) (bool, error) {
	return l.Store.Renew(ctx, r)
}

func (l lossyTokens) TakeOver(ctx context.Context, r sessions.Reservation, turn string) (int64, bool, error) {
	return l.Store.TakeOver(ctx, r, turn)
}

func (l lossyTokens) Extend(ctx context.Context, ids []string) error { return l.Store.Extend(ctx, ids) }

func (l lossyTokens) Reserve(ctx context.Context, r sessions.Reservation) error {
	return l.answer(l.Store.Reserve(ctx, r))
}

func (l lossyTokens) Settle(ctx context.Context, r sessions.Reservation, tokens int64) error {
	return l.answer(l.Store.Settle(ctx, r, tokens))
}

func (l lossyTokens) Spent(ctx context.Context, person string, at time.Time) (int64, error) {
	return l.Store.Spent(ctx, person, at)
}

type lossyMoney struct{ *lossyStore }

func (l lossyMoney) Renew(ctx context.Context, r bill.Reservation) (bool, error) {
	return l.Budget.Renew(ctx, r)
}

func (l lossyMoney) TakeOver(ctx context.Context, r bill.Reservation, turn string) (int64, bool, error) {
	return l.Budget.TakeOver(ctx, r, turn)
}

func (l lossyMoney) Extend(ctx context.Context, ids []string) error { return l.Budget.Extend(ctx, ids) }

func (l lossyMoney) Reserve(ctx context.Context, r bill.Reservation) error {
	return l.answer(l.Budget.Reserve(ctx, r))
}

func (l lossyMoney) Settle(ctx context.Context, r bill.Reservation, cost int64) error {
	return l.answer(l.Budget.Settle(ctx, r, cost))
}

// If the store's answer is lost, nothing is reserved twice, or forever.
func TestALostAnswerLeavesNoReservation(t *testing.T) {
	bounds := budget.Bounds{Person: "a", TokensDay: 1000, Caps: []bill.Cap{{Limit: 10_000}}}
	call := budget.Amount{Tokens: 100, Micro: 1000}
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
			p := newReservations(s)
			p.Tokens = lossyTokens{&lossyStore{Store: s, Budget: s.Money(), lossesLeft: tc.tokens, onLoss: cut}}
			p.Money = lossyMoney{&lossyStore{Store: s, Budget: s.Money(), lossesLeft: tc.money, onLoss: cut}}
			err := p.Take(ctx, "t1#1.1", likelyCall(call), bounds)
			if tc.cut {
				if !errors.Is(err, errLost) || !errors.Is(err, context.Canceled) {
					t.Errorf("taken: %v", err)
				}
				checkReserved(t, s, "given back", 0, 0)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkReserved(t, s, "set aside", 100, 1000)
			p.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
			p.Tokens = lossyTokens{&lossyStore{Store: s, Budget: s.Money(), lossesLeft: tc.tokens, onLoss: cut}}
			p.Money = lossyMoney{&lossyStore{Store: s, Budget: s.Money(), lossesLeft: tc.money, onLoss: cut}}
			p.Settle(ctx)
			checkReserved(t, s, "settled", 30, 300)
		})
	}
}

// If a change that is written along with an append is made only in part, that part is settled.
func TestAPartialReservationIsSettled(t *testing.T) {
	s := open(t)
	p := newReservations(s)
	bounds := budget.Bounds{Person: "a", TokensDay: 1000, Caps: []bill.Cap{{Limit: 500}}}
	call := budget.Amount{Tokens: 100, Micro: 1000}
	opened, err := s.Open(t.Context(), "main:c:1", 1)
	if err != nil {
		t.Fatal(err)
	}
	c := p.ReservationChange("t", likelyCall(call), bounds)
	done, err := opened.(bill.Log).AppendWith(t.Context(), 1, c, sessions.Entry{Turn: "t", Kind: sessions.KindText}) //nolint:forcetypeassert // a panic says as much
	if err != nil {
		t.Fatal(err)
	}
	p.Keep(c, done)
	checkReserved(t, s, "tokens alone", 100, 0)
	_ = refuse(t, p, "t", call, bounds)
	checkReserved(t, s, "given back", 0, 0)
}

// A process that resumes a turn has the last holder's reservation, and the amount that the holder used stays used.
func TestATurnIsTakenOver(t *testing.T) {
	s := open(t)
	bounds := budget.Bounds{Person: "a", TokensDay: 1000, Caps: []bill.Cap{{Limit: 2_100}}}
	call := budget.Amount{Tokens: 100, Micro: 1000}
	dead, next := newReservations(s), newReservations(s)
	dead.Session, next.Session = "main:c:1", "main:c:1"
	take(t, dead, "t1#1.1", call, bounds)
	dead.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
	take(t, dead, "t1#1.1", call, bounds)
	checkReserved(t, s, "before it died", 130, 1300)
	if err := next.TakeOver(t.Context(), "t1#2.1", "t1", bounds); err != nil {
		t.Fatal(err)
	}
	checkReserved(t, s, "taken over", 130, 1300)
	next.Spend(llm.Usage{Input: 10, Cost: 100, Estimated: true}) // the call that was cut off
	take(t, next, "t1#2.1", call, bounds)
	checkReserved(t, s, "with what was cut off", 140, 1400)
	dead.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
	dead.Settle(t.Context()) // the earlier process had only been paused
	checkReserved(t, s, "its last holder comes back", 140, 1400)
	next.Spend(llm.Usage{Input: 20, Output: 10, Cost: 300})
	next.Settle(t.Context())
	checkReserved(t, s, "at the end", 70, 700)
}

// The error says whether it is worth waiting, and how much of the budget is used.
func TestABudgetReservedByOthers(t *testing.T) {
	s := open(t)
	call := budget.Amount{Tokens: 100, Micro: 1000}
	for what, bounds := range map[string]budget.Bounds{
		"tokens": {Person: "a", TokensDay: 150},
		"money":  {Person: "a", Caps: []bill.Cap{{Subject: bill.Person("a"), Limit: 1500}}},
	} {
		unit := int64(1)
		if what == "money" {
			unit = 10
		}
		other, mine := newReservations(s), newReservations(s)
		take(t, other, "t1#1.1", call, bounds)
		over := refuse(t, mine, "t2#1.1", call, bounds)
		if !over.FitsLater() || over.Spent != 0 || over.Reserved != 100*unit || over.Needed != 100*unit {
			t.Errorf("%s are set aside: %+v", what, over)
		}
		other.Spend(llm.Usage{Input: 60, Cost: 600})
		other.Settle(t.Context())
		if over = refuse(t, mine, "t2#1.2", call, bounds); over.FitsLater() || over.Spent != 60*unit || over.Reserved != 0 {
			t.Errorf("%s are spent: %+v", what, over)
		}
		if over = refuse(t, mine, "t2#1.3", budget.Amount{Tokens: 200, Micro: 2000}, bounds); over.FitsLater() {
			t.Errorf("%s are never enough: %+v", what, over)
		}
	}
}

// A Keeper extends the reservations that this process works on, and no others.
func TestAKeeperExtendsWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		extended := map[string]int{}
		money := &countedMoney{extended: extended}
		k := budget.NewKeeper()
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); k.Run(ctx, slog.New(slog.DiscardHandler)) }()
		bounds := budget.Bounds{Caps: []bill.Cap{{Limit: 10_000}}}
		long := &budget.Reservations{Money: money, Keeper: k, Log: slog.New(slog.DiscardHandler)}
		short := &budget.Reservations{Money: money, Keeper: k, Log: slog.New(slog.DiscardHandler)}
		take(t, long, "long#1.1", budget.Amount{Micro: 1}, bounds)
		for range 40 { // each less than the time of an extension
			take(t, short, "short#1.1", budget.Amount{Micro: 1}, bounds)
			time.Sleep(time.Second)
			short.Settle(ctx)
		}
		synctest.Wait()
		if n := extended["long#1.1.0"]; n != 4 || len(extended) != 1 {
			t.Errorf("extended were %v", extended)
		}
		long.Settle(ctx)
		time.Sleep(time.Minute)
		if n := extended["long#1.1.0"]; n != 4 {
			t.Errorf("what is settled was extended %d times", n)
		}
		stop()
		<-over
	})
}

// countedMoney counts extensions, and has no limits.
type countedMoney struct {
	budget.Money
	extended map[string]int
}

func (c *countedMoney) Reserve(context.Context, bill.Reservation) error       { return nil }
func (c *countedMoney) Settle(context.Context, bill.Reservation, int64) error { return nil }
func (c *countedMoney) Extend(_ context.Context, ids []string) error {
	for _, id := range ids {
		c.extended[id]++
	}
	return nil
}

func TestALimitIsExplainedToPeople(t *testing.T) {
	at := time.Date(2026, 11, 23, 21, 30, 0, 0, time.UTC)
	over := func(c bill.Cap, spent, aside, want int64) *budget.OverError {
		return &budget.OverError{Cap: &c, At: at, Spent: spent, Reserved: aside, Needed: want}
	}
	beats := budget.Owner{Name: "Heartbeats", MoneySetting: "[heartbeat] day", TokensSetting: "[heartbeat] tokens_day"}
	const day = " I can go on after November 24, 00:00 UTC (in 2 h 30 min)."
	raise := func(setting string) string { return " My operator can raise that limit: `" + setting + "`." }
	for _, c := range []struct {
		over *budget.OverError
		want string
	}{
		{&budget.OverError{Tokens: 5, Spent: 6, Needed: 1, At: at}, "You've used up the 5 tokens that a person can use in a day." + day + raise("[limits] user_tokens_day")},
		{
			&budget.OverError{Tokens: 5000, Spent: 3000, Reserved: 1500, Needed: 2500, At: at},
			"You've used 3,000 of the 5,000 tokens that a person can use in a day, with another 1,500 tokens set aside for answers in progress." +
				" One more answer could use 2,500 tokens." + day + raise("[limits] user_tokens_day"),
		},
		{over(bill.Cap{Subject: bill.Person("x"), Limit: 2_000_000}, 2_000_000, 0, 1), "You've used up the $2.00 that a person can spend in a day." + day + raise("[budget] user_day")},
		{
			over(bill.Cap{Subject: bill.Person("x"), Limit: 2_000_000}, 1_930_000, 0, 147_400),
			"You've used $1.93 of the $2.00 that a person can spend in a day. One more answer could cost $0.1474." + day + raise("[budget] user_day"),
		},
		{
			over(bill.Cap{Subject: bill.Person("x"), Limit: 2_000_000}, 1_000_000, 950_000, 147_400),
			"You've used $1.00 of the $2.00 that a person can spend in a day, with another $0.95 set aside for answers in progress." +
				" One more answer could cost $0.1474, and I haven't finished the answers in progress. Ask again in a while." + raise("[budget] user_day"),
		},
		{
			over(bill.Cap{Subject: bill.Session("x"), Limit: 100_000}, 0, 0, 147_400),
			"One answer here could cost $0.1474, which is more than the $0.10 that a conversation can spend in a day, so I can't answer. Waiting won't change that." + raise("[budget] session_day"),
		},
		{over(bill.Cap{Subject: bill.Session("x"), Limit: 500_000}, 500_001, 0, 1), "This conversation has used up the $0.50 that a conversation can spend in a day." + day + raise("[budget] session_day")},
		{over(bill.Cap{Subject: bill.Agent("x"), Limit: 5_000_000}, 5_000_000, 0, 1), "I've used up the $5.00 that I can spend in a day." + day + raise("[agents.x] day")},
		{over(bill.Cap{Limit: 20_000_000}, 20_000_000, 0, 1), "People have used up the $20.00 that everyone together can spend in a day." + day + raise("[budget] day")},
		{over(bill.Cap{Limit: 20_000_000}, 19_990_000, 0, 20_000), "People have used $19.99 of the $20.00 that everyone together can spend in a day. One more answer could cost $0.02." + day + raise("[budget] day")},
		{
			&budget.OverError{Cap: &bill.Cap{Subject: bill.Person("heartbeat:main"), Limit: 500_000}, At: at, Owner: beats, Spent: 500_000},
			"Heartbeats have used up the $0.50 that they can spend in a day." + day + raise("[heartbeat] day"),
		},
		{
			&budget.OverError{Tokens: 5, At: at, Owner: beats, Spent: 5},
			"Heartbeats have used up the 5 tokens that they can use in a day." + day + raise("[heartbeat] tokens_day"),
		},
		{
			&budget.OverError{Cap: &bill.Cap{Limit: 20_000_000}, At: at, Owner: beats, Spent: 20_000_000},
			"People have used up the $20.00 that everyone together can spend in a day." + day + raise("[budget] day"),
		},
		{
			over(bill.Cap{IsMonthly: true, Limit: 200_000_000}, 200_000_000, 0, 1),
			"People have used up the $200.00 that everyone together can spend in a month. I can go on after December 1, 00:00 UTC (in 7 days)." + raise("[budget] month"),
		},
	} {
		if got := c.over.Words(); got != c.want {
			t.Errorf("%q, want\n%q", got, c.want)
		}
	}
	waits := over(bill.Cap{Limit: 20_000_000}, 1_000_000, 18_950_000, 147_400)
	if got := waits.WaitWords(at, "/stop"); !strings.Contains(got, "with another $18.95 set aside") || !strings.Contains(got, "until 2026-11-23 21:30 UTC") || !strings.Contains(got, "/stop") {
		t.Errorf("who waits is told %q", got)
	}
}
