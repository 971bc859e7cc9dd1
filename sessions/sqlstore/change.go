package sqlstore

import (
	"time"

	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

// changeIn changes budgets, of tokens and of money, in a transaction, on either kind of database.
func (s *tokens) changeIn(tx *sqldb.Tx, c bill.Change) (done bill.Changed, err error) {
	switch {
	case c.Tokens == nil:
	case c.IsSettlement:
		err = settleIn(tx, *c.Tokens, clampCost(c.Used))
		done.Tokens = err == nil
	case c.IsRenewal:
		var over, known bool
		over, known, err = s.renewIn(tx, *c.Tokens)
		done.Tokens = err == nil && known && !over
	default:
		var over bool
		over, err = reserveIn(tx, *c.Tokens)
		done.Tokens = err == nil && !over
	}
	if err == nil {
		done.Money, err = s.money.ChangeIn(tx, c)
	}
	return done, err
}

// sweepAfter deletes old spending, like Reserve, after a change that was made along with an append.
func (s *tokens) sweepAfter(c bill.Change) {
	if c.Tokens != nil && !c.IsSettlement {
		s.sweep(time.Now(), c.Tokens.At)
	}
	s.money.SweepAfter(c)
}
