// Package budget reserves parts of budgets for a turn, in tokens and in money, before
// models are asked, and settles them afterwards.
//
// A reservation belongs to a turn: whoever resumes the turn takes it over, and what nobody works
// on is settled by the store after a moment. budget.go holds what a turn has reserved, keeper.go
// tells the store what this process works on, taken.go waits for others, and texts.go tells people
// what is spent.
package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/agent/llm"
	"parley/sessions"
	"parley/sessions/bill"
)

// Money is the budget that bounds the cost of models; see [bill.Budget].
type Money interface {
	Reserve(ctx context.Context, r bill.Reservation) error
	Renew(ctx context.Context, r bill.Reservation) (known bool, err error)
	TakeOver(ctx context.Context, r bill.Reservation, turn string) (micro int64, ok bool, err error)
	Extend(ctx context.Context, ids []string) error
	Settle(ctx context.Context, r bill.Reservation, cost int64) error
	State(ctx context.Context, c bill.Cap, at time.Time) (spent, aside int64, err error)
}

// An Amount is tokens and micro-dollars that model calls may use.
type Amount struct{ Tokens, Micro int64 }

// plus returns the sum of two amounts, tokens and money each by themselves.
func (a Amount) plus(b Amount) Amount { return Amount{a.Tokens + b.Tokens, a.Micro + b.Micro} }

// fitsIn reports whether a has at most as many tokens and as many micro-dollars as b.
func (a Amount) fitsIn(b Amount) bool { return a.Tokens <= b.Tokens && a.Micro <= b.Micro }

// A Call is what one call of a model is likely to use.
type Call struct {
	All  Amount
	Sent Amount // the part of it that the request has used once it is sent, whatever is answered
}

// CallOf returns what a call is likely to use whose request and answer have so many tokens.
func CallOf(input, output int, price llm.Price) Call {
	sent := llm.Usage{Input: int64(input)}
	all := llm.Usage{Input: sent.Input, Output: int64(output)}
	return Call{
		All:  Amount{Tokens: all.Input + all.Output, Micro: price.Of(all)},
		Sent: Amount{Tokens: sent.Input, Micro: price.Of(sent)},
	}
}

// bytesPerToken is how many bytes of an answer are taken for a token.
const bytesPerToken = 4

// Estimated returns an answer that nobody has counted, without its blocks, of which so many tokens were
// asked and so many bytes have come. It has a cost if the price is known.
func Estimated(asked, came int, price llm.Price, priced bool) *llm.Answer {
	u := llm.Usage{Input: int64(asked), Output: int64(came+bytesPerToken-1) / bytesPerToken, Estimated: true, Priced: priced}
	if priced {
		u.Cost = price.Of(u)
	}
	return &llm.Answer{Usage: u}
}

// Bounds are the budgets of a turn.
type Bounds struct {
	// Person is the person for whom tokens are counted. TokensDay is how many tokens the
	// person may use in a day; 0 sets no bound.
	Person    string
	TokensDay int64
	Caps      []bill.Cap // the caps on money
	Owner     Owner
}

// An Owner names the owner of a budget that is not a person's: see agent.Owner.
type Owner struct{ Name, MoneySetting, TokensSetting string }

// An OverError is the error of a call for which a budget has too little left.
type OverError struct {
	Tokens int64     // how many tokens the person may use in a day; 0 if the budget is money
	Cap    *bill.Cap // the cap on money; nil if the budget is tokens
	// the time of the call
	At    time.Time
	Owner Owner // of the budget of tokens, or of the cap on what a person may cost
	// What was spent of the budget, what is set aside for others, and what the call is likely
	// to use, in tokens or micro-dollars.
	Spent, Aside, Want int64
}

// Error says which budget is spent.
func (e *OverError) Error() string {
	if e.Cap == nil {
		return fmt.Sprintf("over %d tokens", e.Tokens)
	}
	return (&bill.OverError{Cap: *e.Cap}).Error()
}

// most returns the size of the budget.
func (e *OverError) most() int64 {
	if e.Cap == nil {
		return e.Tokens
	}
	return e.Cap.Most
}

// Waits reports whether the call would fit if what is set aside for others were given back. They are
// likely to use less of it, so it is worth waiting for them.
func (e *OverError) Waits() bool { return e.Spent+e.Want <= e.most() }

// Reservations hold the amount that a turn has reserved: what its calls have used since, and what the
// next one is likely to use. Reservations are not safe for concurrent use.
type Reservations struct {
	Tokens  sessions.Budget
	Money   Money // nil: money has no bound
	Session string
	Keeper  *Keeper // nil: nobody tells the store that the reservations are worked on
	Log     *slog.Logger

	tokens, money bool // tokens, or money, are reserved
	ofTokens      sessions.Reservation
	ofMoney       bill.Reservation

	reserved Amount
	spent    Amount // by calls that have ended and whose cost is in no settled reservation
	settled  int    // number of settled reservations, which is part of the next reservation's id
}

// Take makes sure that what the next call is likely to use is reserved. If too little is, it renews the
// reservation, or makes one, whose id begins with name. It returns *OverError if a budget is spent;
// nothing is reserved then.
func (p *Reservations) Take(ctx context.Context, name string, next Call, b Bounds) error {
	next = p.counted(next, b)
	if next.All == (Amount{}) {
		return nil // nothing bounds the call
	}
	now := time.Now()
	if p.holdsFor(next, now) {
		if p.fits(next) {
			return nil
		}
		known, err := p.renew(ctx, next, b)
		if known && err == nil {
			return nil
		}
		if err != nil {
			return p.giveBack(ctx, next, err)
		}
	}
	if p.tokens || p.money {
		p.Settle(ctx)
	}
	if err := p.reserve(ctx, p.nextID(name), next, b, now); err != nil {
		return p.giveBack(ctx, next, err)
	}
	return nil
}

// nextID returns the id of the next reservation.
func (p *Reservations) nextID(name string) string { return fmt.Sprintf("%s.%d", name, p.settled) }

// holdsFor reports whether there is a reservation of all that the next call needs, of today.
func (p *Reservations) holdsFor(next Call, now time.Time) bool {
	today := func(at time.Time) bool { return at.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) }
	return (p.tokens || p.money) && p.tokens == (next.All.Tokens > 0) && p.money == (next.All.Micro > 0) &&
		(!p.tokens || today(p.ofTokens.At)) && (!p.money || today(p.ofMoney.At))
}

// fits reports whether what is reserved is enough for the next call, besides what is used of it.
func (p *Reservations) fits(next Call) bool {
	all := p.spent.plus(next.All)
	if !p.tokens {
		all.Tokens = 0
	}
	if !p.money {
		all.Micro = 0
	}
	return all.fitsIn(p.reserved)
}

// giveBack settles what is reserved after a failure, which it returns. Of a budget that is spent, it
// finds out how it stands.
func (p *Reservations) giveBack(ctx context.Context, next Call, err error) error {
	p.Settle(ctx)
	over, is := errors.AsType[*OverError](err)
	if !is {
		return err
	}
	if over.Cap != nil {
		over.Want = next.All.Micro
		over.Spent, over.Aside, err = p.Money.State(ctx, *over.Cap, over.At)
	} else {
		over.Want = next.All.Tokens
		var both int64
		if both, err = p.Tokens.Spent(ctx, p.ofTokens.Person, over.At); err == nil {
			over.Aside, err = p.Tokens.Reserved(ctx, p.ofTokens.Person, over.At)
		}
		over.Spent = max(0, both-over.Aside)
	}
	if err != nil {
		return fmt.Errorf("look how a budget stands: %w", err)
	}
	return over
}

// counted returns what a call uses without its tokens, or without its money, if no budget of b bounds
// those.
func (p *Reservations) counted(next Call, b Bounds) Call {
	if b.TokensDay <= 0 {
		next.All.Tokens, next.Sent.Tokens = 0, 0
	}
	if p.Money == nil || len(b.Caps) == 0 {
		next.All.Micro, next.Sent.Micro = 0, 0
	}
	return next
}

// reservations returns what has to be reserved, under that id, for the next call and those that have
// ended: as far as the call is counted, tokens and money.
func (p *Reservations) reservations(id string, next Call, b Bounds, now time.Time) (*sessions.Reservation, *bill.Reservation) {
	var tokens *sessions.Reservation
	var money *bill.Reservation
	if next.All.Tokens > 0 {
		tokens = &sessions.Reservation{
			ID: id, Session: p.Session, Person: b.Person, Cap: b.TokensDay, At: now,
			Tokens: p.spent.Tokens + next.All.Tokens, Used: p.spent.Tokens, Sent: next.Sent.Tokens,
		}
	}
	if next.All.Micro > 0 {
		money = &bill.Reservation{
			ID: id, Session: p.Session, Caps: b.Caps, At: now,
			Cost: p.spent.Micro + next.All.Micro, Used: p.spent.Micro, Sent: next.Sent.Micro,
		}
	}
	return tokens, money
}

// hold notes what is reserved.
func (p *Reservations) hold(tokens *sessions.Reservation, money *bill.Reservation) {
	if p.tokens, p.money = tokens != nil, money != nil; p.tokens {
		p.ofTokens, p.reserved.Tokens = *tokens, tokens.Tokens
	}
	if p.money {
		p.ofMoney, p.reserved.Micro = *money, money.Cost
	}
	p.keep()
}

// keep has the store told that what is reserved is worked on.
func (p *Reservations) keep() {
	if p.tokens {
		p.Keeper.hold(p.Tokens, p.ofTokens.ID)
	}
	if p.money {
		p.Keeper.hold(p.Money, p.ofMoney.ID)
	}
}

// reserve reserves both tokens and money. If it fails, it may have reserved one of them.
func (p *Reservations) reserve(ctx context.Context, id string, next Call, b Bounds, now time.Time) error {
	tokens, money := p.reservations(id, next, b, now)
	if tokens != nil {
		p.ofTokens = *tokens
		err := retry(ctx, func() error { return p.Tokens.Reserve(ctx, *tokens) })
		if errors.Is(err, sessions.ErrOverBudget) {
			return &OverError{Tokens: b.TokensDay, At: now, Owner: b.Owner}
		}
		p.tokens = true
		if err != nil {
			return fmt.Errorf("reserve tokens: %w", err)
		}
	}
	if money != nil {
		p.ofMoney = *money
		err := retry(ctx, func() error { return p.Money.Reserve(ctx, *money) })
		if over, ok := errors.AsType[*bill.OverError](err); ok {
			return &OverError{Cap: &over.Cap, At: now, Owner: b.Owner}
		}
		p.money = true
		if err != nil {
			return fmt.Errorf("reserve money: %w", err)
		}
	}
	p.hold(tokens, money)
	return nil
}

// renew brings what is reserved to what the next call needs besides what is used. It returns false if
// the reservation is not there any more, because the process stood still for longer than it may.
func (p *Reservations) renew(ctx context.Context, next Call, b Bounds) (known bool, err error) {
	if p.tokens {
		r, _ := p.reservations(p.ofTokens.ID, next, b, p.ofTokens.At)
		err = retry(ctx, func() (err error) { known, err = p.Tokens.Renew(ctx, *r); return err })
		switch {
		case errors.Is(err, sessions.ErrOverBudget):
			return true, &OverError{Tokens: b.TokensDay, At: r.At, Owner: b.Owner}
		case err != nil || !known:
			return known, err
		}
		p.ofTokens, p.reserved.Tokens = *r, r.Tokens
	}
	if p.money {
		_, r := p.reservations(p.ofMoney.ID, next, b, p.ofMoney.At)
		r.Caps = p.ofMoney.Caps
		err = retry(ctx, func() (err error) { known, err = p.Money.Renew(ctx, *r); return err })
		if over, ok := errors.AsType[*bill.OverError](err); ok {
			return true, &OverError{Cap: &over.Cap, At: r.At, Owner: b.Owner}
		}
		if err != nil || !known {
			return known, err
		}
		p.ofMoney, p.reserved.Micro = *r, r.Cost
	}
	return known, nil
}

// TakeOver turns what earlier holders of the turn have reserved into the present reservation, whose id begins
// with name. The calls that they have made and that have ended are counted already.
func (p *Reservations) TakeOver(ctx context.Context, name, turn string, b Bounds) error {
	id, now := p.nextID(name), time.Now()
	var tokens *sessions.Reservation
	var money *bill.Reservation
	if b.TokensDay > 0 {
		r := sessions.Reservation{ID: id, Session: p.Session, Person: b.Person, Cap: b.TokensDay, At: now}
		err := retry(ctx, func() error {
			n, ok, err := p.Tokens.TakeOver(ctx, r, turn)
			if ok {
				r.Tokens, tokens = n, &r
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if p.Money != nil && len(b.Caps) > 0 {
		r := bill.Reservation{ID: id, Session: p.Session, Caps: b.Caps, At: now}
		err := retry(ctx, func() error {
			n, ok, err := p.Money.TakeOver(ctx, r, turn)
			if ok {
				r.Cost, money = n, &r
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	p.hold(tokens, money)
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
func (p *Reservations) Spend(u llm.Usage) {
	p.spent = p.spent.plus(Amount{Tokens: u.Input + u.Output, Micro: u.Cost})
}

// ReservationAhead returns the change that reserves what a call is likely to use, as Take would with an
// empty Reservations. The change goes along with an append, which tells Keep what was done.
func (p *Reservations) ReservationAhead(name string, next Call, b Bounds) (c bill.Change) {
	c.Tokens, c.Money = p.reservations(p.nextID(name), p.counted(next, b), b, time.Now())
	return c
}

// RenewalAhead returns the change that brings the reservation to what the next call is likely to use,
// as Take would. It is empty if there is no reservation of today that has both what it needs.
func (p *Reservations) RenewalAhead(next Call, b Bounds) (c bill.Change) {
	next = p.counted(next, b)
	if !p.holdsFor(next, time.Now()) {
		return c
	}
	c.Renew = true
	if p.tokens {
		c.Tokens, _ = p.reservations(p.ofTokens.ID, next, b, p.ofTokens.At)
	}
	if p.money {
		_, c.Money = p.reservations(p.ofMoney.ID, next, b, p.ofMoney.At)
		c.Money.Caps = p.ofMoney.Caps
	}
	return c
}

// SpentAhead returns the change that records what was used of the reservation so far, which stays as
// large as it is. It goes along with an append that records the same in the log.
func (p *Reservations) SpentAhead() (c bill.Change) {
	c.Renew = true
	if r := p.ofTokens; p.tokens {
		r.Tokens, r.Used = max(p.reserved.Tokens, p.spent.Tokens), p.spent.Tokens
		c.Tokens = &r
	}
	if r := p.ofMoney; p.money {
		r.Cost, r.Used = max(p.reserved.Micro, p.spent.Micro), p.spent.Micro
		c.Money = &r
	}
	return c
}

// Keep takes what a change has reserved that ReservationAhead or RenewalAhead has returned. done says
// which part of the change was made: if only tokens or only money was reserved, the next Take gives
// that back and reserves anew; what was not renewed stays as it was.
func (p *Reservations) Keep(c bill.Change, done bill.Done) {
	tokens, money := c.Tokens, c.Money
	if !done.Tokens {
		tokens = nil
	}
	if !done.Money {
		money = nil
	}
	if !c.Renew {
		p.hold(tokens, money)
		return
	}
	if tokens != nil {
		p.ofTokens, p.reserved.Tokens = *tokens, tokens.Tokens
	}
	if money != nil {
		p.ofMoney, p.reserved.Micro = *money, money.Cost
	}
}

// Settlement returns what Settle would do, as a change that goes along with an append, which
// tells Settled what was done.
func (p *Reservations) Settlement() bill.Change {
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
func (p *Reservations) Settled(done bill.Done) {
	if !p.tokens && !p.money {
		return
	}
	if done.Tokens && p.tokens {
		p.tokens = false
		p.Keeper.release(p.Tokens, p.ofTokens.ID)
	}
	if done.Money && p.money {
		p.money = false
		p.Keeper.release(p.Money, p.ofMoney.ID)
	}
	if !p.tokens && !p.money {
		p.empty()
	}
}

// empty makes p ready for the next reservation.
func (p *Reservations) empty() {
	p.reserved, p.spent = Amount{}, Amount{}
	p.settled++
}

const settleTimeout = 5 * time.Second

// Settle replaces the reserved amount in the budgets with the spent one.
func (p *Reservations) Settle(ctx context.Context) {
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
		p.Log.LogAttrs(ctx, slog.LevelWarn, "settling a reservation failed; the store settles it as what is known of it", slog.Any("error", err))
	}
	p.Settled(bill.Done{Tokens: true, Money: true})
}
