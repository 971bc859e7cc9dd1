// Package purse reserves parts of budgets for a turn, in tokens and in money, before
// models are asked, and settles them afterwards.
package purse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/agent/llm"
	"parley/sessions"
	"parley/sessions/bill"
)

// Money is the budget that bounds the cost of models; see [bill.Budget].
type Money interface {
	Reserve(ctx context.Context, r bill.Reservation) error
	Settle(ctx context.Context, r bill.Reservation, cost int64) error
}

// An Amount is tokens and micro-dollars that model calls may use.
type Amount struct{ Tokens, Micro int64 }

// plus returns the sum of two amounts, tokens and money each by themselves.
func (a Amount) plus(b Amount) Amount { return Amount{a.Tokens + b.Tokens, a.Micro + b.Micro} }

// times returns n times the amount.
func (a Amount) times(n int64) Amount { return Amount{a.Tokens * n, a.Micro * n} }

// fitsIn reports whether a has at most as many tokens and as many micro-dollars as b.
func (a Amount) fitsIn(b Amount) bool { return a.Tokens <= b.Tokens && a.Micro <= b.Micro }

// Bounds are the budgets of a turn.
type Bounds struct {
	// Person is the person for whom tokens are counted. TokensDay is how many tokens the
	// person may use in a day; 0 sets no bound.
	Person    string
	TokensDay int64
	Caps      []bill.Cap // the caps on money
	Owner     Owner
}

// An Owner is whose budget it is, if it is no person's.
type Owner struct {
	Name          string // in words, for people, in the plural; "" for a person
	MoneySetting  string // the setting of the cap on money
	TokensSetting string // the setting of the bound on tokens
}

// An OverError is the error of a call for which a budget has too little left.
type OverError struct {
	Tokens int64     // how many tokens the person may use in a day; 0 if the budget is money
	Cap    *bill.Cap // the cap on money; nil if the budget is tokens
	// the time of the call
	At    time.Time
	Owner Owner // of the budget of tokens, or of the cap on what a person may cost
}

// Error says which budget is spent.
func (e *OverError) Error() string {
	if e.Cap == nil {
		return fmt.Sprintf("over %d tokens", e.Tokens)
	}
	return (&bill.OverError{Cap: *e.Cap}).Error()
}

// calls is for how many model calls an amount is reserved at once. Most turns then write
// to the budget once, and not before each call.
const calls = 4

// A Purse holds the amount that a turn has reserved. A reservation that is never
// settled, because the process died, stays counted, since the calls may have been made.
// A Purse is not safe for concurrent use.
type Purse struct {
	Tokens sessions.Budget
	Money  Money // nil: money has no bound
	Log    *slog.Logger

	tokens, money bool // tokens, or money, are reserved
	ofTokens      sessions.Reservation
	ofMoney       bill.Reservation

	reserved Amount
	taken    Amount // by calls since the reservation, as estimated before each
	spent    Amount // by the same calls, as the models reported
	settled  int    // number of settled reservations, which is part of the next reservation's id
}

// Take takes the amount that a call may use from the reservation. If too little is left,
// it settles the reservation and makes another, whose id begins with name. It returns
// *OverError if a budget is spent.
func (p *Purse) Take(ctx context.Context, name string, want Amount, b Bounds) error {
	want = p.counted(want, b)
	if want == (Amount{}) {
		return nil // nothing bounds the call
	}
	if taken := p.taken.plus(want); (p.tokens || p.money) && taken.fitsIn(p.reserved) {
		p.taken = taken
		return nil
	}
	p.Settle(ctx)
	id := fmt.Sprintf("%s.%d", name, p.settled)
	err := p.reserve(ctx, id, want.times(calls), b)
	if _, over := errors.AsType[*OverError](err); over { // try to reserve for this call alone
		err = p.reserve(ctx, id+"a", want, b)
	}
	if err != nil {
		return err
	}
	p.taken, p.spent = want, Amount{}
	return nil
}

// counted returns the amount without its tokens, or without its money, if no budget of b
// bounds those.
func (p *Purse) counted(want Amount, b Bounds) Amount {
	if b.TokensDay <= 0 {
		want.Tokens = 0
	}
	if p.Money == nil || len(b.Caps) == 0 {
		want.Micro = 0
	}
	return want
}

// reserve reserves both tokens and money, or neither. If it fails, it gives back what may
// have been reserved although the error does not say so.
func (p *Purse) reserve(ctx context.Context, id string, a Amount, b Bounds) error {
	err := p.reserveBoth(ctx, id, a, b, time.Now())
	if err != nil {
		p.spent = Amount{}
		p.Settle(ctx)
	}
	return err
}

// reserveBoth reserves tokens and money. If it fails, it may have reserved one of them.
func (p *Purse) reserveBoth(ctx context.Context, id string, a Amount, b Bounds, now time.Time) error {
	p.reserved = a
	if a.Tokens > 0 {
		r := sessions.Reservation{ID: id, Person: b.Person, Tokens: a.Tokens, Cap: b.TokensDay, At: now}
		err := retry(ctx, func() error { return p.Tokens.Reserve(ctx, r) })
		if errors.Is(err, sessions.ErrOverBudget) {
			return &OverError{Tokens: b.TokensDay, At: now, Owner: b.Owner}
		}
		p.tokens, p.ofTokens = true, r
		if err != nil {
			return fmt.Errorf("reserve tokens: %w", err)
		}
	}
	if a.Micro <= 0 {
		return nil
	}
	r := bill.Reservation{ID: id, Cost: a.Micro, Caps: b.Caps, At: now}
	err := retry(ctx, func() error { return p.Money.Reserve(ctx, r) })
	if over, ok := errors.AsType[*bill.OverError](err); ok {
		return &OverError{Cap: &over.Cap, At: now, Owner: b.Owner}
	}
	p.money, p.ofMoney = true, r
	if err != nil {
		return fmt.Errorf("reserve money: %w", err)
	}
	return nil
}

const (
	tries     = 6
	firstWait = 100 * time.Millisecond // twice as long after each try
)

// retry calls fn, and calls it again if it gave no clear answer, for example because the connection
// to the store broke. A reservation that was made before does not change then.
func retry(ctx context.Context, fn func() error) error {
	wait := firstWait
	for try := 1; ; try++ {
		err := fn()
		_, over := errors.AsType[*bill.OverError](err)
		if err == nil || over || errors.Is(err, sessions.ErrOverBudget) || try == tries {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
		wait *= 2
	}
}

// Spend records that a model's answer has used that much of the reservation.
func (p *Purse) Spend(u llm.Usage) {
	p.spent = p.spent.plus(Amount{Tokens: u.Input + u.Output, Micro: u.Cost})
}

// ReservationAhead returns the change that reserves what calls like this one may use, as Take would
// with an empty purse. The change goes along with an append, which tells Keep what was done.
func (p *Purse) ReservationAhead(name string, want Amount, b Bounds) bill.Change {
	all, id, now := p.counted(want, b).times(calls), fmt.Sprintf("%s.%d", name, p.settled), time.Now()
	var c bill.Change
	if all.Tokens > 0 {
		c.Tokens = &sessions.Reservation{ID: id, Person: b.Person, Tokens: all.Tokens, Cap: b.TokensDay, At: now}
	}
	if all.Micro > 0 {
		c.Money = &bill.Reservation{ID: id, Cost: all.Micro, Caps: b.Caps, At: now}
	}
	return c
}

// Keep takes what a change that Ahead has returned has reserved as the purse's
// reservation. done says which part of the change was made: if only tokens or only money
// was reserved, the next Take gives that back and reserves anew.
func (p *Purse) Keep(c bill.Change, done bill.Done) {
	p.tokens, p.money = done.Tokens, done.Money
	if done.Tokens {
		p.ofTokens = *c.Tokens
	}
	if done.Money {
		p.ofMoney = *c.Money
	}
	if done.Tokens == (c.Tokens != nil) && done.Money == (c.Money != nil) {
		p.reserved = Amount{}
		if c.Tokens != nil {
			p.reserved.Tokens = c.Tokens.Tokens
		}
		if c.Money != nil {
			p.reserved.Micro = c.Money.Cost
		}
	}
}

// Settlement returns what Settle would do, as a change that goes along with an append, which
// tells Settled what was done.
func (p *Purse) Settlement() bill.Change {
	c := bill.Change{Settle: true, Used: p.spent.Tokens, Cost: p.spent.Micro}
	if r := p.ofTokens; p.tokens {
		c.Tokens = &r
	}
	if r := p.ofMoney; p.money {
		c.Money = &r
	}
	return c
}

// Settled notes what was done of the change that Settlement has returned. The rest is left
// to Settle.
func (p *Purse) Settled(done bill.Done) {
	if !p.tokens && !p.money {
		return
	}
	p.tokens, p.money = p.tokens && !done.Tokens, p.money && !done.Money
	if !p.tokens && !p.money {
		p.empty()
	}
}

// empty makes the purse ready for the next reservation.
func (p *Purse) empty() {
	p.tokens, p.money = false, false
	p.reserved, p.taken, p.spent = Amount{}, Amount{}, Amount{}
	p.settled++
}

const settleTimeout = 5 * time.Second

// Settle replaces the reserved amount in the budgets with the spent one.
func (p *Purse) Settle(ctx context.Context) {
	if !p.tokens && !p.money {
		return
	}
	// This is done even after the turn was cut off: what was spent is spent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var err error
	if p.tokens {
		err = retry(ctx, func() error { return p.Tokens.Settle(ctx, p.ofTokens, p.spent.Tokens) })
	}
	if p.money {
		err = errors.Join(err, retry(ctx, func() error { return p.Money.Settle(ctx, p.ofMoney, p.spent.Micro) }))
	}
	if err != nil {
		p.Log.LogAttrs(ctx, slog.LevelWarn, "settling a reservation failed; it stays as reserved", slog.Any("error", err))
	}
	p.empty()
}

// Words returns the error as a message to people: which budget is spent, and when they
// can go on. An owner is also told the setting, and everybody that of a budget that is no
// person's.
func (e *OverError) Words(owner bool) string {
	cap := bill.Cap{}
	if e.Cap != nil {
		cap = *e.Cap
	}
	what, setting := "", ""
	most := bill.Dollars(cap.Most)
	ofPerson := e.Cap != nil && strings.HasPrefix(cap.Of, bill.Person(""))
	switch {
	case e.Owner.Name != "" && e.Cap == nil:
		what, setting, owner = fmt.Sprintf("%s have used up the %d tokens that they may use in a day.", e.Owner.Name, e.Tokens), e.Owner.TokensSetting, true
	case e.Owner.Name != "" && ofPerson:
		what, setting, owner = fmt.Sprintf("%s have used up the %s that they may cost in a day.", e.Owner.Name, most), e.Owner.MoneySetting, true
	case e.Cap == nil:
		what = fmt.Sprintf("You have used up the %d tokens that a person may use in a day.", e.Tokens)
		setting = "[limits] user_tokens_day"
	case cap.Month:
		what, setting = fmt.Sprintf("The %s that all may cost in a month are used up.", most), "[budget] month"
	case ofPerson:
		what, setting = fmt.Sprintf("You have used up the %s that a person may cost in a day.", most), "[budget] user_day"
	case strings.HasPrefix(cap.Of, bill.Session("")):
		what, setting = fmt.Sprintf("This conversation has used up the %s that one may cost in a day.", most), "[budget] session_day"
	case strings.HasPrefix(cap.Of, bill.Agent("")):
		what, setting = fmt.Sprintf("I have used up the %s that I may cost in a day.", most), "[agents.NAME] day"
	default:
		what, setting = fmt.Sprintf("The %s that all may cost in a day are used up.", most), "[budget] day"
	}
	opens := cap.Opens(e.At)
	text := fmt.Sprintf("%s I go on from %s UTC, which is in %s.", what, opens.Format("2 January, 15:04"), waitText(opens.Sub(e.At)))
	if owner {
		text += fmt.Sprintf(" The setting is `%s`.", setting)
	}
	return text
}

// waitText returns a duration in words, for people.
func waitText(d time.Duration) string {
	switch d = max(d.Round(time.Minute), time.Minute); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}
