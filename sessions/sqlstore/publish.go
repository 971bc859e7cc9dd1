package sqlstore

import (
	"context"
	"fmt"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

// Publishing returns the same log, whose appends also publish mail; see [sessions.Publisher].
func (l *log) Publishing(mail ...sessions.Mail) (sessions.Log, bool) {
	return publishingLog{l, mail}, l.logs.sharer != nil
}

// A publishingLog is a log that publishes mail with each append.
type publishingLog struct {
	*log
	mail []sessions.Mail
}

// Append does what the log's Append does, and publishes the mail.
func (l publishingLog) Append(ctx context.Context, at int64, entries ...sessions.Entry) error {
	_, err := l.AppendWith(ctx, at, bill.Change{}, entries...)
	return err
}

// AppendWith does what the log's AppendWith does, and publishes the mail.
func (l publishingLog) AppendWith(ctx context.Context, at int64, c bill.Change, entries ...sessions.Entry) (bill.Changed, error) {
	shares := make([]sqldb.Share, 0, len(l.mail))
	for _, m := range l.mail {
		share, err := l.logs.sharer.Share(m.Topic, m.Key, m.ID, m.Body)
		if err != nil {
			return bill.Changed{}, fmt.Errorf("append with message %s: %w: %w", m.ID, sessions.ErrUnpublished, err)
		}
		shares = append(shares, share)
	}
	return l.appendBy(ctx, l.logs.db.Write, at, c, shares, entries)
}
