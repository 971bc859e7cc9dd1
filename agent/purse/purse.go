// Package purse holds what one turn has set aside of budgets, in tokens and in money, and not spent yet.
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

// Money bounds what models cost; see [bill.Budget].
type Money interface {
	Reserve(ctx context.Context, r bill.Reservation) error
	Settle(ctx context.Context, r bill.Reservation, cost int64) error
}

// An Amount is what calls may use.
type Amount struct{ Tokens, Micro int64 }

func (a Amount) plus(b Amount) Amount { return Amount{a.Tokens + b.Tokens, a.Micro + b.Micro} }
func (a Amount) times(n int64) Amount { return Amount{a.Tokens * n, a.Micro * n} }
func (a Amount) within(b Amount) bool { return a.Tokens <= b.Tokens && a.Micro <= b.Micro }

// Bounds are what holds for a turn.
type Bounds struct {
	// Person is in whose name tokens are counted; TokensDay is how many they may use in a
	// day, 0 is not bounded.
	Person    string
	TokensDay int64
	Caps      []bill.Cap // on money
}

// An OverError says that a budget is spent.
type OverError struct {
	Tokens int64     // the most that the person may use in a day; 0 where it is money
	Cap    *bill.Cap // the cap on money; nil where it is tokens
	At     time.Time
}

// Error says which it is.
func (e *OverError) Error() string {
	if e.Cap == nil {
		return fmt.Sprintf("over %d tokens", e.Tokens)
	}
	return (&bill.OverError{Cap: *e.Cap}).Error()
}

// calls is for how many calls of a model an amount is set aside at once: most turns then
// write to the budget once and not before each call.
const calls = 4

// A Purse is what a turn has set aside. What is set aside and never settled, because the
// process died, stays counted: the calls may have been made. It is not for use by several
// goroutines at once.
type Purse struct {
	Tokens sessions.Budget
	Money  Money // nil bounds no money
	Log    *slog.Logger

	tokens, money bool // something is set aside there
	tokensID      string
	reservation   bill.Reservation

	reserved Amount
	taken    Amount // by calls, as estimated before each
	spent    Amount // by calls, as the models reported
	settled  int    // reservations so far, which names the next
}

// Take takes what a call may use, and sets more aside first where there is too little.
// Name begins the ids of what is set aside. *OverError if a budget is spent.
func (p *Purse) Take(ctx context.Context, name string, want Amount, b Bounds) error {
	if b.TokensDay <= 0 {
		want.Tokens = 0
	}
	if p.Money == nil || len(b.Caps) == 0 {
		want.Micro = 0
	}
	if want == (Amount{}) {
		return nil // nothing bounds it
	}
	if taken := p.taken.plus(want); (p.tokens || p.money) && taken.within(p.reserved) {
		p.taken = taken
		return nil
	}
	p.Settle(ctx)
	id := fmt.Sprintf("%s.%d", name, p.settled)
	err := p.reserve(ctx, id, want.times(calls), b)
	if _, over := errors.AsType[*OverError](err); over { // then just for this call
		err = p.reserve(ctx, id+"a", want, b)
	}
	if err != nil {
		return err
	}
	p.taken, p.spent = want, Amount{}
	return nil
}

// reserve sets an amount aside: tokens and money, or neither. What may have been set aside
// though its error does not say so is given back.
func (p *Purse) reserve(ctx context.Context, id string, a Amount, b Bounds) error {
	err := p.reserveBoth(ctx, id, a, b, time.Now())
	if err != nil {
		p.spent = Amount{}
		p.Settle(ctx)
	}
	return err
}

func (p *Purse) reserveBoth(ctx context.Context, id string, a Amount, b Bounds, now time.Time) error {
	p.reserved = a
	if a.Tokens > 0 {
		r := sessions.Reservation{ID: id, Person: b.Person, Tokens: a.Tokens, Cap: b.TokensDay, At: now}
		err := repeat(ctx, func() error { return p.Tokens.Reserve(ctx, r) })
		if errors.Is(err, sessions.ErrOverBudget) {
			return &OverError{Tokens: b.TokensDay, At: now}
		}
		p.tokens, p.tokensID = true, id
		if err != nil {
			return fmt.Errorf("reserve tokens: %w", err)
		}
	}
	if a.Micro <= 0 {
		return nil
	}
	r := bill.Reservation{ID: id, Cost: a.Micro, Caps: b.Caps, At: now}
	err := repeat(ctx, func() error { return p.Money.Reserve(ctx, r) })
	if over, ok := errors.AsType[*bill.OverError](err); ok {
		return &OverError{Cap: &over.Cap, At: now}
	}
	p.money, p.reservation = true, r
	if err != nil {
		return fmt.Errorf("reserve money: %w", err)
	}
	return nil
}

const (
	tries     = 6
	firstWait = 100 * time.Millisecond // twice as long after each try
)

// repeat does again what gave no clear answer, as when a connection to the store breaks:
// it may have been done. To do it again changes nothing then.
func repeat(ctx context.Context, do func() error) error {
	wait := firstWait
	for try := 1; ; try++ {
		err := do()
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

// Spend counts what an answer has used.
func (p *Purse) Spend(u llm.Usage) {
	p.spent = p.spent.plus(Amount{Tokens: u.Input + u.Output, Micro: u.Cost})
}

const settleTimeout = 5 * time.Second

// Settle replaces what was set aside by what was spent.
func (p *Purse) Settle(ctx context.Context) {
	if !p.tokens && !p.money {
		return
	}
	// Also after the turn was cut off: what was spent is spent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var err error
	if p.tokens {
		err = repeat(ctx, func() error { return p.Tokens.Settle(ctx, p.tokensID, p.spent.Tokens) })
	}
	if p.money {
		err = errors.Join(err, repeat(ctx, func() error { return p.Money.Settle(ctx, p.reservation, p.spent.Micro) }))
	}
	if err != nil {
		p.Log.LogAttrs(ctx, slog.LevelWarn, "settling a reservation failed; it stays as reserved", slog.Any("error", err))
	}
	p.tokens, p.money = false, false
	p.reserved, p.taken, p.spent = Amount{}, Amount{}, Amount{}
	p.settled++
}

// Words says it to people: what is spent, and when it goes on. Owners are told which
// setting it is.
func (e *OverError) Words(owner bool) string {
	cap := bill.Cap{}
	if e.Cap != nil {
		cap = *e.Cap
	}
	what, setting := "", ""
	most := bill.Dollars(cap.Most)
	switch {
	case e.Cap == nil:
		what = fmt.Sprintf("You have used up the %d tokens that a person may use in a day.", e.Tokens)
		setting = "[limits] user_tokens_day"
	case cap.Month:
		what, setting = fmt.Sprintf("The %s that all may cost in a month are used up.", most), "[budget] month"
	case strings.HasPrefix(cap.Of, bill.Person("")):
		what, setting = fmt.Sprintf("You have used up the %s that a person may cost in a day.", most), "[budget] user_day"
	case strings.HasPrefix(cap.Of, bill.Session("")):
		what, setting = fmt.Sprintf("This conversation has used up the %s that one may cost in a day.", most), "[budget] session_day"
	case strings.HasPrefix(cap.Of, bill.Agent("")):
		what, setting = fmt.Sprintf("I have used up the %s that I may cost in a day.", most), "[agents.NAME] day"
	default:
		what, setting = fmt.Sprintf("The %s that all may cost in a day are used up.", most), "[budget] day"
	}
	opens := cap.Opens(e.At)
	text := fmt.Sprintf("%s I go on from %s UTC, which is in %s.", what, opens.Format("2 January, 15:04"), wait(opens.Sub(e.At)))
	if owner {
		text += fmt.Sprintf(" The setting is `%s`.", setting)
	}
	return text
}

// wait writes how long something takes, for people.
func wait(d time.Duration) string {
	switch d = max(d.Round(time.Minute), time.Minute); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}
