package sqlitebus

import (
	"context"
	"errors"
	"log/slog"

	"parley/bus"
	"parley/sessions/sqldb"
)

// mailboxes are what every part of the bus works on: the rows of the messages, and what the scheduler
// knows about them.
type mailboxes struct {
	db        *sqldb.DB
	sched     *scheduler
	undeleted *undeletedMail // messages that are settled but still on disk
	news      *feeds         // where changes of the dead letters are announced
	log       *slog.Logger
}

// These constants limit how much is read from disk at once.
const (
	pageMessages = 64        // the most messages
	pageBytes    = 256 << 10 // about the most bytes
)

const selectPage = `SELECT seq, id, urgent, not_before, published, body FROM message
	WHERE topic = ? AND key = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`

// readPage reads the first messages after that number: as many as fit a page, and at least one
// if there is any.
func (ms *mailboxes) readPage(ctx context.Context, c bus.Claim, after, last int64) (page []publishedMessage, err error) {
	rows, err := ms.db.Read.QueryContext(ctx, selectPage, c.Topic, c.Key, after, last, pageMessages)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported errors already
	for size := 0; size < pageBytes && rows.Next(); {
		l := publishedMessage{Message: bus.Message{Key: c.Key}}
		var notBefore int64
		if err := rows.Scan(&l.Seq, &l.ID, &l.Urgent, &notBefore, &l.published, &l.Body); err != nil {
			return nil, err
		}
		l.NotBefore = sqldb.FromMicros(notBefore)
		size += l.size()
		page = append(page, l)
	}
	return page, rows.Err()
}

// asClosed returns bus.ErrClosed if err says that the database is closed, and otherwise err itself.
func asClosed(err error) error {
	if errors.Is(err, sqldb.ErrClosed) {
		return bus.ErrClosed
	}
	return err
}

// asClosedRead returns ErrClosed for an error of a read once the bus is closed: such
// errors do not say that the database was closed.
func (ms *mailboxes) asClosedRead(err error) error {
	if ms.sched.isClosed() {
		return bus.ErrClosed
	}
	return err
}

// The state of a mailbox is in the row of its first message.
const (
	firstOf       = `(SELECT min(seq) FROM message WHERE topic = ? AND key = ?)`
	setAttempts   = `UPDATE message SET attempts = ? WHERE seq = ` + firstOf
	setAttemptsOf = `UPDATE message SET attempts = ? WHERE seq = ?` // if the number of the first message is known
	setState      = `UPDATE message SET attempts = ?, due = ? WHERE seq = ` + firstOf
)
