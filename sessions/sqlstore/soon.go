package sqlstore

import (
	"context"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

// Soon returns the same log, whose writes share a disk flush; see [sessions.SoonLog].
func (l *log) Soon(within time.Duration) sessions.Log { return soonLog{l, within} }

// A soonLog is a log whose appends may return before their entries are durable. The entries become
// durable within the given time.
type soonLog struct {
	*log
	within time.Duration
}

// Append does what the log's Append does, but may return before the entries are durable.
func (l soonLog) Append(ctx context.Context, at int64, entries ...sessions.Entry) error {
	_, err := l.AppendWith(ctx, at, bill.Change{}, entries...)
	return err
}

// AppendWith does what the log's AppendWith does, but may return before the entries are durable.
func (l soonLog) AppendWith(ctx context.Context, at int64, c bill.Change, entries ...sessions.Entry) (bill.Changed, error) {
	soon := func(ctx context.Context, fn func(*sqldb.Tx) error) error { return l.logs.db.Soon(ctx, l.within, fn) }
	return l.appendBy(ctx, soon, at, c, nil, entries)
}
