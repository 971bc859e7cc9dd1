// Package budget reserves parts of budgets for a turn, in tokens and in money, before models are asked, and
// settles them afterwards.
//
// A reservation belongs to a turn: a process that resumes the turn takes the reservation over, and the store
// soon settles reservations that no process works on. budget.go holds what a turn has reserved, keeper.go tells
// the store what this process works on, set_aside.go waits until other turns free what they have reserved, and
// texts.go tells people how much of a budget is spent.
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

// Money is the budget that limits the cost of models; see [bill.Budget].
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

// plus returns the sum of two amounts. It adds tokens and money separately.
func (a Amount) plus(b Amount) Amount { return Amount{a.Tokens + b.Tokens, a.Micro + b.Micro} }

// fitsIn reports whether a has at most as many tokens and as many micro-dollars as b.
func (a Amount) fitsIn(b Amount) bool { return a.Tokens <= b.Tokens && a.Micro <= b.Micro }

// A Call is what one call of a model is likely to use.
type Call struct {
	All      Amount
	OnceSent Amount // the part of All that is used once the request is sent, whatever the answer
}

// CallOf returns what a call is likely to use if its request has input tokens and its answer has output tokens.
func CallOf(input, output int, price llm.Price) Call {
	sent := llm.Usage{Input: int64(input)}
	all := llm.Usage{Input: sent.Input, Output: int64(output)}
	return Call{
		All:      Amount{Tokens: all.Input + all.Output, Micro: price.Of(all)},
		OnceSent: Amount{Tokens: sent.Input, Micro: price.Of(sent)},
	}
}

// bytesPerToken is how many bytes of an answer are counted as one token.
const bytesPerToken = 4

// Estimated returns an answer without blocks whose usage is estimated, because no provider reported it. asked is the
// number of tokens of the request, and came the bytes of the answer that arrived. It has a cost if the price is known.
func Estimated(asked, came int, price llm.Price, priced bool) *llm.Answer {
	u := llm.Usage{Input: int64(asked), Output: int64(came+bytesPerToken-1) / bytesPerToken, Estimated: true, Priced: priced}
	if priced {
		u.Cost = price.Of(u)
	}
	return &llm.Answer{Usage: u}
}

// Bounds are the budgets of a turn.
type Bounds struct {
	// Person is the person whose tokens are counted. TokensDay is how many tokens the person may use in a day; 0
	// means no limit.
	Person    string
	TokensDay int64
	Caps      []bill.Cap // the caps on money
	Owner     Owner
}

// An Owner names the owner of a budget that is not a person's: see agent.Owner.
type Owner struct{ Name, MoneySetting, TokensSetting string }

// An OverError is returned when a budget has too little left for a model call.
type OverError struct {
	Tokens int64     // how many tokens the person may use in a day; 0 if the budget is money
	Cap    *bill.Cap // the cap on money; nil if the budget is tokens
	// At is the time of the call.
	At    time.Time
	Owner Owner // of the budget of tokens, or of the cap on one person's cost
	// How much of the budget is spent, how much is reserved by others, and how much the call is likely to use, in
	// tokens or micro-dollars.
	Spent, Reserved, Needed int64
}

// Error says which budget has too little left.
func (e *OverError) Error() string {
	if e.Cap == nil {
		return fmt.Sprintf("over %d tokens", e.Tokens)
	}
	return (&bill.OverError{Cap: *e.Cap}).Error()
}

// limit returns the size of the budget.
func (e *OverError) limit() int64 {
	if e.Cap == nil {
		return e.Tokens
	}
	return e.Cap.Limit
}

// FitsLater reports whether the call would fit if other reservations were settled. Those calls are likely to use less
// than is reserved, so it is worth waiting for them.
func (e *OverError) FitsLater() bool { return e.Spent+e.Needed <= e.limit() }

// Reservations hold what a turn has reserved: enough for what its calls have used since the last settlement, and
// for what the next call is likely to use. They are not safe for concurrent use.
type Reservations struct {
	Tokens  sessions.Budget
	Money   Money // nil: money is not limited
	Session string
	Keeper  *Keeper // nil: the store isn't told that somebody works on the reservations
	Log     *slog.Logger

	tokens, money    bool // whether tokens, or money, are reserved
	tokenReservation sessions.Reservation
	moneyReservation bill.Reservation

	reserved Amount
	spent    Amount // by calls that have ended and that no settled reservation includes
	settled  int    // number of settled reservations, which is part of the next reservation's id
}

// Take makes sure that the amount the next call is likely to use is reserved. If too little is reserved, it
// renews the reservation. If there is none, or it was made on an earlier day, Take makes a new one, whose id
// begins with name. It does nothing if no budget limits the call. It returns an *OverError if a budget has too little
// left. After any error, nothing is reserved.
func (p *Reservations) Take(ctx context.Context, name string, next Call, b Bounds) error {
	next = p.limitedPart(next, b)
	if next.All == (Amount{}) {
		return nil // no budget limits the call
	}
	now := time.Now()
	if p.coversKinds(next, now) {
		if p.hasRoomFor(next) {
			return nil
		}
		known, err := p.renew(ctx, next, b)
		if known && err == nil {
			return nil
		}
		if err != nil {
			return p.settleAfter(ctx, next, err)
		}
	}
	if p.tokens || p.money {
		p.Settle(ctx)
	}
	if err := p.reserve(ctx, p.nextID(name), next, b, now); err != nil {
		return p.settleAfter(ctx, next, err)
	}
	return nil
}

// nextID returns the id of the next reservation: the name and a number that makes it unique within that name.
func (p *Reservations) nextID(name string) string { return fmt.Sprintf("%s.%d", name, p.settled) }

// coversKinds reports whether there is a reservation made today of each kind that the next call needs, and none of the
// other kind.
func (p *Reservations) coversKinds(next Call, now time.Time) bool {
	today := func(at time.Time) bool { return at.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) }
	return (p.tokens || p.money) && p.tokens == (next.All.Tokens > 0) && p.money == (next.All.Micro > 0) &&
		(!p.tokens || today(p.tokenReservation.At)) && (!p.money || today(p.moneyReservation.At))
}

// hasRoomFor reports whether what is left of the reservation is enough for the next call.
func (p *Reservations) hasRoomFor(next Call) bool {
	all := p.spent.plus(next.All)
	if !p.tokens {
		all.Tokens = 0
	}
	if !p.money {
		all.Micro = 0
	}
	return all.fitsIn(p.reserved)
}

// settleAfter settles the reservation after the failure err, and returns err. If err says that a budget has too little
// left, settleAfter adds how much of it is spent and reserved.
func (p *Reservations) settleAfter(ctx context.Context, next Call, err error) error {
	p.Settle(ctx)
	over, is := errors.AsType[*OverError](err)
	if !is {
		return err
	}
	if over.Cap != nil {
		over.Needed = next.All.Micro
		over.Spent, over.Reserved, err = p.Money.State(ctx, *over.Cap, over.At)
	} else {
		over.Needed = next.All.Tokens
		var both int64
		if both, err = p.Tokens.Spent(ctx, p.tokenReservation.Person, over.At); err == nil {
			over.Reserved, err = p.Tokens.Reserved(ctx, p.tokenReservation.Person, over.At)
		}
		over.Spent = max(0, both-over.Reserved)
	}
	if err != nil {
		return fmt.Errorf("look up what a budget has left: %w", err)
	}
	return over
}

// limitedPart returns what a call uses, without its tokens if b doesn't limit tokens, and without its money if b
// doesn't limit money.
func (p *Reservations) limitedPart(next Call, b Bounds) Call {
	if b.TokensDay <= 0 {
		next.All.Tokens, next.OnceSent.Tokens = 0, 0
	}
	if p.Money == nil || len(b.Caps) == 0 {
		next.All.Micro, next.OnceSent.Micro = 0, 0
	}
	return next
}

// reservations returns what has to be reserved under that id, in tokens and in money, for the next call and the
// calls that have ended; nil for one that the next call doesn't need.
func (p *Reservations) reservations(id string, next Call, b Bounds, now time.Time) (*sessions.Reservation, *bill.Reservation) {
	var tokens *sessions.Reservation
	var money *bill.Reservation
	if next.All.Tokens > 0 {
		tokens = &sessions.Reservation{
			ID: id, Session: p.Session, Person: b.Person, Cap: b.TokensDay, At: now,
			Tokens: p.spent.Tokens + next.All.Tokens, Used: p.spent.Tokens, SentTokens: next.OnceSent.Tokens,
		}
	}
	if next.All.Micro > 0 {
		money = &bill.Reservation{
			ID: id, Session: p.Session, Caps: b.Caps, At: now,
			Cost: p.spent.Micro + next.All.Micro, Used: p.spent.Micro, SentCost: next.OnceSent.Micro,
		}
	}
	return tokens, money
}

// setReserved records the present reservations.
func (p *Reservations) setReserved(tokens *sessions.Reservation, money *bill.Reservation) {
	if p.tokens, p.money = tokens != nil, money != nil; p.tokens {
		p.tokenReservation, p.reserved.Tokens = *tokens, tokens.Tokens
	}
	if p.money {
		p.moneyReservation, p.reserved.Micro = *money, money.Cost
	}
	p.startKeeping()
}

// startKeeping adds the reservations to the Keeper, which tells the store that somebody works on them.
func (p *Reservations) startKeeping() {
	if p.tokens {
		p.Keeper.hold(p.Tokens, p.tokenReservation.ID)
	}
	if p.money {
		p.Keeper.hold(p.Money, p.moneyReservation.ID)
	}
}

// reserve reserves the tokens and the money that the next call needs, each only if it is limited. If reserve fails, either
// of them, or both, may be reserved.
func (p *Reservations) reserve(ctx context.Context, id string, next Call, b Bounds, now time.Time) error {
	tokens, money := p.reservations(id, next, b, now)
	if tokens != nil {
		p.tokenReservation = *tokens
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
		p.moneyReservation = *money
		err := retry(ctx, func() error { return p.Money.Reserve(ctx, *money) })
		if over, ok := errors.AsType[*bill.OverError](err); ok {
			return &OverError{Cap: &over.Cap, At: now, Owner: b.Owner}
		}
		p.money = true
		if err != nil {
			return fmt.Errorf("reserve money: %w", err)
		}
	}
	p.setReserved(tokens, money)
	return nil
}

// renew changes the reservation to what the next call needs in addition to what is used already. It returns
// false if the reservation is gone, because the process stood still for too long, and an *OverError if a budget has too
// little left.
func (p *Reservations) renew(ctx context.Context, next Call, b Bounds) (known bool, err error) {
	if p.tokens {
		r, _ := p.reservations(p.tokenReservation.ID, next, b, p.tokenReservation.At)
		err = retry(ctx, func() (err error) { known, err = p.Tokens.Renew(ctx, *r); return err })
		switch {
		case errors.Is(err, sessions.ErrOverBudget):
			return true, &OverError{Tokens: b.TokensDay, At: r.At, Owner: b.Owner}
		case err != nil || !known:
			return known, err
		}
		p.tokenReservation, p.reserved.Tokens = *r, r.Tokens
	}
	if p.money {
		_, r := p.reservations(p.moneyReservation.ID, next, b, p.moneyReservation.At)
		r.Caps = p.moneyReservation.Caps
		err = retry(ctx, func() (err error) { known, err = p.Money.Renew(ctx, *r); return err })
		if over, ok := errors.AsType[*bill.OverError](err); ok {
			return true, &OverError{Cap: &over.Cap, At: r.At, Owner: b.Owner}
		}
		if err != nil || !known {
			return known, err
		}
		p.moneyReservation, p.reserved.Micro = *r, r.Cost
	}
	return known, nil
}

// TakeOver turns what earlier holders of the turn have reserved into one new reservation, whose id begins with
// name. What the calls of these holders have used is counted already. If they have reserved nothing, nothing is
// reserved.
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
	p.setReserved(tokens, money)
	return nil
}

const (
	maxTries       = 6
	firstRetryWait = 100 * time.Millisecond // twice as long after each try
)

// retry calls fn up to tries times, until it succeeds or says that a budget has too little left. After any other
// error the result is uncertain, for example because the connection to the store broke. If an earlier try made
// the reservation, another try doesn't change it.
func retry(ctx context.Context, fn func() error) error {
	wait := firstRetryWait
	for try := 1; ; try++ {
		err := fn()
		_, over := errors.AsType[*bill.OverError](err)
		if err == nil || over || errors.Is(err, sessions.ErrOverBudget) || try == maxTries {
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

// ReservationChange returns the change that reserves what a call is likely to use, as Take would with empty
// Reservations. The change is sent along with an append, and what the append reports as done is then passed to
// Keep.
func (p *Reservations) ReservationChange(name string, next Call, b Bounds) (c bill.Change) {
	c.Tokens, c.Money = p.reservations(p.nextID(name), p.limitedPart(next, b), b, time.Now())
	return c
}

// RenewalChange returns the change that adjusts the reservation to what the next call is likely to use, as Take
// would. It is empty unless the reservation was made today and covers exactly what the call needs: tokens, money, or
// both.
func (p *Reservations) RenewalChange(next Call, b Bounds) (c bill.Change) {
	next = p.limitedPart(next, b)
	if !p.coversKinds(next, time.Now()) {
		return c
	}
	c.IsRenewal = true
	if p.tokens {
		c.Tokens, _ = p.reservations(p.tokenReservation.ID, next, b, p.tokenReservation.At)
	}
	if p.money {
		_, c.Money = p.reservations(p.moneyReservation.ID, next, b, p.moneyReservation.At)
		c.Money.Caps = p.moneyReservation.Caps
	}
	return c
}

// SpendingChange returns the change that records how much of the reservation is used so far, without changing its
// size. It is sent along with an append that records the same in the log.
func (p *Reservations) SpendingChange() (c bill.Change) {
	c.IsRenewal = true
	if r := p.tokenReservation; p.tokens {
		r.Tokens, r.Used = max(p.reserved.Tokens, p.spent.Tokens), p.spent.Tokens
		c.Tokens = &r
	}
	if r := p.moneyReservation; p.money {
		r.Cost, r.Used = max(p.reserved.Micro, p.spent.Micro), p.spent.Micro
		c.Money = &r
	}
	return c
}

// Keep records what was reserved by a change that ReservationChange or RenewalChange returned. done says which
// part of the change was made: if only tokens or only money was reserved, the next Take gives that back and
// makes a new reservation; what was not renewed stays as it was.
func (p *Reservations) Keep(c bill.Change, done bill.Changed) {
	tokens, money := c.Tokens, c.Money
	if !done.Tokens {
		tokens = nil
	}
	if !done.Money {
		money = nil
	}
	if !c.IsRenewal {
		p.setReserved(tokens, money)
		return
	}
	if tokens != nil {
		p.tokenReservation, p.reserved.Tokens = *tokens, tokens.Tokens
	}
	if money != nil {
		p.moneyReservation, p.reserved.Micro = *money, money.Cost
	}
}

// Settlement returns what Settle would do as a change that is sent along with an append, which then tells
// Settled what was done.
func (p *Reservations) Settlement() bill.Change {
	c := bill.Change{IsSettlement: true, Used: p.spent.Tokens, Cost: p.spent.Micro}
	if r := p.tokenReservation; p.tokens {
		c.Tokens = &r
	}
	if r := p.moneyReservation; p.money {
		c.Money = &r
	}
	return c
}

// Settled records how much of the change that Settlement returned was done. The rest is left to Settle.
func (p *Reservations) Settled(done bill.Changed) {
	if !p.tokens && !p.money {
		return
	}
	if done.Tokens && p.tokens {
		p.tokens = false
		p.Keeper.release(p.Tokens, p.tokenReservation.ID)
	}
	if done.Money && p.money {
		p.money = false
		p.Keeper.release(p.Money, p.moneyReservation.ID)
	}
	if !p.tokens && !p.money {
		p.reset()
	}
}

// reset clears p for the next reservation.
func (p *Reservations) reset() {
	p.reserved, p.spent = Amount{}, Amount{}
	p.settled++
}

const settleTimeout = 5 * time.Second

// Settle replaces the reserved amount in the budgets with the amount that was spent, even if ctx has ended. It takes at
// most settleTimeout. A failure is only logged: the store then settles the reservation later.
func (p *Reservations) Settle(ctx context.Context) {
	if !p.tokens && !p.money {
		return
	}
	// This is done even if the turn was cut off, because the money and tokens are spent anyway.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var err error
	if p.tokens {
		err = retry(ctx, func() error { return p.Tokens.Settle(ctx, p.tokenReservation, p.spent.Tokens) })
	}
	if p.money {
		err = errors.Join(err, retry(ctx, func() error { return p.Money.Settle(ctx, p.moneyReservation, p.spent.Micro) }))
	}
	if err != nil {
		p.Log.LogAttrs(ctx, slog.LevelWarn, "settling a reservation failed; the store settles it as what is known of it", slog.Any("error", err))
	}
	p.Settled(bill.Changed{Tokens: true, Money: true})
}
