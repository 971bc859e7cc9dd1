package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/sessions"
)

// purseCalls is for how many model calls tokens are set aside at once: most
// turns then write to the budget once and not before each call.
const purseCalls = 4

const settleTimeout = 5 * time.Second

// A purse holds the tokens that a turn has set aside in its person's budget and
// not yet spent. What is set aside and never settled, because the process died,
// stays counted: the calls may have been made.
type purse struct {
	id       string // of the reservation; "" while there is none
	reserved int64
	taken    int64 // by calls, as estimated before each
	spent    int64 // by calls, as the model reported
	settled  int   // reservations so far, which names the next
}

// pay takes what a call may cost out of the purse, and fills it first where it
// holds too little. An empty budget ends the turn, said aloud.
func (p *purse) pay(ctx context.Context, v *visit, t *turn, tokens int64) error {
	if p.id != "" && p.taken+tokens <= p.reserved {
		p.taken += tokens
		return nil
	}
	p.settle(ctx, v)
	r := sessions.Reservation{
		ID: fmt.Sprintf("%s#%d.%d.%d", t.id, v.lease.Claim().Fence, t.asked+1, p.settled), Person: t.person,
		Tokens: purseCalls * tokens, Cap: v.w.cfg.Limits().TokensDay, At: time.Now(),
	}
	err := v.w.cfg.Budget.Reserve(ctx, r)
	if errors.Is(err, sessions.ErrOverBudget) { // then just for this call
		r.Tokens = tokens
		err = v.w.cfg.Budget.Reserve(ctx, r)
	}
	if errors.Is(err, sessions.ErrOverBudget) {
		return failure("over_budget", "You have used up the %d tokens that a person may use in a day. The next day begins at 00:00 UTC.", r.Cap)
	}
	if err != nil {
		return fmt.Errorf("reserve tokens: %w", err)
	}
	p.id, p.reserved, p.taken, p.spent = r.ID, r.Tokens, tokens, 0
	return nil
}

// settle replaces what was set aside by what was spent.
func (p *purse) settle(ctx context.Context, v *visit) {
	if p.id == "" {
		return
	}
	// Also after the turn was cut off: what was spent is spent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := v.w.cfg.Budget.Settle(ctx, p.id, p.spent); err != nil {
		v.slog.Warn("settling a reservation failed; it stays as reserved", slog.Any("error", err))
	}
	p.id = ""
	p.settled++
}
