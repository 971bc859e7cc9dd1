package sqlitebus

import (
	"context"
	"log/slog"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// The shortest and longest wait between attempts to record a claim.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Claim implements bus.Bus: it waits for a lease and records the claim.
func (b *Bus) Claim(ctx context.Context, topic bus.Topic) (bus.Lease, error) {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, err := b.sched.waitForLease(ctx, topic)
		if err != nil {
			return nil, err
		}
		if err = b.recordClaim(l); err == nil {
			l.bus = b
			return l, nil
		}
		b.sched.giveBack(l)
		if b.sched.isClosed() {
			return nil, bus.ErrClosed
		}
		b.log.Error("claim not written", slog.String("topic", string(topic)), slog.Any("error", err))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retry):
		}
	}
}

// The state of a mailbox is in the row of its first message.
const (
	firstOf       = `(SELECT min(seq) FROM message WHERE topic = ? AND key = ?)`
	setAttempts   = `UPDATE message SET attempts = ? WHERE seq = ` + firstOf
	setAttemptsOf = `UPDATE message SET attempts = ? WHERE seq = ?` // of the first message, if its number is known
	setState      = `UPDATE message SET attempts = ?, due = ? WHERE seq = ` + firstOf
)

// recordClaim records that the mailbox was claimed. A first claim need not be durable
// before work begins: if a crash loses it, the next claim counts as the first again, which
// does no harm. Later claims have to be durable first: otherwise a message that crashes the
// process would be tried for ever, always as the same attempt.
//
// A fence must be below the reserve on disk before a holder gets it: otherwise a process
// started after a crash could give out the same fence again.
func (b *Bus) recordClaim(l *lease) error {
	c := l.claim
	write := func(tx *sqldb.Tx) (err error) {
		if l.first > 0 {
			_, err = tx.Exec(setAttemptsOf, c.Attempts, l.first)
		} else {
			_, err = tx.Exec(setAttempts, c.Attempts, c.Topic, c.Key)
		}
		return err
	}
	ahead := c.Fence >= b.clock.reserved.Load()
	if !ahead && !l.recordFirst {
		b.db.Start(func(tx *sqldb.Tx) error {
			if l.settlingNow.Load() {
				return nil // the settlement, which comes next, writes the attempts itself
			}
			return write(tx)
		})
		return nil
	}
	reserve := c.Fence + clockAhead.Microseconds()
	err := b.db.Write(context.Background(), func(tx *sqldb.Tx) error {
		if ahead {
			if _, err := tx.Exec(raiseMeta, metaClock, reserve); err != nil {
				return err
			}
		}
		return write(tx)
	})
	if err == nil && ahead {
		b.clock.reserve(reserve)
	}
	return err
}
