package sqlitebus

import (
	"context"
	"log/slog"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// These are the shortest and the longest wait between attempts to record a claim.
const (
	minRetry = 50 * time.Millisecond
	maxRetry = 2 * time.Second
)

// claims lets callers wait for mail.
type claims struct {
	*mailboxes
	clock *clock
}

// Claim implements bus.Bus: it waits for a lease and records the claim.
func (cs *claims) Claim(ctx context.Context, topic bus.Topic) (bus.Lease, error) {
	for retry := minRetry; ; retry = min(2*retry, maxRetry) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, err := cs.sched.waitForLease(ctx, topic)
		if err != nil {
			return nil, err
		}
		if err = cs.recordClaim(l); err == nil {
			l.mailboxes = cs.mailboxes
			return l, nil
		}
		cs.sched.giveBack(l)
		if cs.sched.isClosed() {
			return nil, bus.ErrClosed
		}
		cs.log.Error("claim not written", slog.String("topic", string(topic)), slog.Any("error", err))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retry):
		}
	}
}

// recordClaim records that the mailbox was claimed. A first claim need not be durable
// before work begins: if a crash loses it, the next claim counts as the first again, which
// does no harm. Later claims have to be durable first: otherwise a message that crashes the
// process would be tried forever, always as the same attempt.
//
// A fence must be below the reserve on disk before a holder gets it: otherwise a process
// started after a crash could give out the same fence again.
func (cs *claims) recordClaim(l *lease) error {
	c := l.claim
	write := func(tx *sqldb.Tx) (err error) {
		if l.firstSeq > 0 {
			_, err = tx.Exec(setAttemptsOf, c.Attempts, l.firstSeq)
		} else {
			_, err = tx.Exec(setAttempts, c.Attempts, c.Topic, c.Key)
		}
		return err
	}
	ahead := c.Fence >= cs.clock.reserved.Load()
	if !ahead && !l.recordFirst {
		cs.db.Start(func(tx *sqldb.Tx) error {
			if l.settlingNow.Load() {
				return nil // the settlement, which comes next, writes the attempts itself
			}
			return write(tx)
		})
		return nil
	}
	reserve := c.Fence + clockAhead.Microseconds()
	err := cs.db.Write(context.Background(), func(tx *sqldb.Tx) error {
		if ahead {
			if _, err := tx.Exec(raiseMeta, metaClock, reserve); err != nil {
				return err
			}
		}
		return write(tx)
	})
	if err == nil && ahead {
		cs.clock.recordReserve(reserve)
	}
	return err
}
