package sqlitebus

import (
	"context"
	"log/slog"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// Between attempts to write a claim down.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Claim implements bus.Bus.
func (b *Bus) Claim(ctx context.Context, topic bus.Topic) (bus.Lease, error) {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, err := b.sched.take(ctx, topic)
		if err != nil {
			return nil, err
		}
		if err = b.record(l); err == nil {
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

// The state of a mailbox stands in the row of its first message.
const (
	firstOf     = `(SELECT min(seq) FROM message WHERE topic = ? AND key = ?)`
	setAttempts = `UPDATE message SET attempts = ? WHERE seq = ` + firstOf
	setState    = `UPDATE message SET attempts = ?, due = ? WHERE seq = ` + firstOf
)

// record writes down that the mailbox was claimed. If nobody has worked on this
// mail before, the claim need not be durable first: were it lost, the next one
// would only be called the first again. From then on each has to be, or mail
// that kills the process would be tried for ever.
func (b *Bus) record(l *lease) error {
	c := l.claim
	write := func(tx *sqldb.Tx) error {
		_, err := tx.Exec(setAttempts, c.Attempts, c.Topic, c.Key)
		return err
	}
	ahead := c.Fence >= b.clock.reserved.Load()
	if !ahead && !l.wary {
		b.db.Start(func(tx *sqldb.Tx) error {
			if l.ending.Load() {
				return nil // what the settlement writes comes right behind
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
