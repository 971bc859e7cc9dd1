package sqlstore

import (
	"context"
	"fmt"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

// A Sharer publishes messages in the writes of others: it is a bus that keeps its messages in the
// store's database.
type Sharer interface {
	// Share returns the publication of a message as a share in a write of the store, or an error if
	// the message can never be published.
	Share(topic, key, id string, body []byte) (sqldb.Share, error)
}

// PublishBy lets logs publish messages together with their entries; see [sessions.Publisher]. It
// must be called before the first session is opened, with what uses the same database as the store.
func (s *Store) PublishBy(c Sharer) { s.sharer = c }

// Publishing returns the same log, whose appends publish mail; see [sessions.Publisher].
func (l *log) Publishing(mail ...sessions.Mail) (sessions.Log, bool) {
	return publishingLog{l, mail}, l.store.sharer != nil
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
func (l publishingLog) AppendWith(ctx context.Context, at int64, c bill.Change, entries ...sessions.Entry) (bill.Done, error) {
	shares := make([]sqldb.Share, 0, len(l.mail))
	for _, m := range l.mail {
		share, err := l.store.sharer.Share(m.Topic, m.Key, m.ID, m.Body)
		if err != nil {
			return bill.Done{}, fmt.Errorf("append with message %s: %w: %w", m.ID, sessions.ErrUnpublished, err)
		}
		shares = append(shares, share)
	}
	return l.appendBy(ctx, l.store.db.Write, at, c, shares, entries)
}

// writeShares writes the shares of other components in a transaction. An error undoes it.
func writeShares(tx *sqldb.Tx, shares []sqldb.Share) error {
	for _, s := range shares {
		refused, err := s.Write(tx)
		if refused != nil {
			err = fmt.Errorf("%w: %w", sessions.ErrUnpublished, refused)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endShares tells other components whether what they have written is durable.
func endShares(shares []sqldb.Share, durable bool) {
	for _, s := range shares {
		s.End(durable)
	}
}
