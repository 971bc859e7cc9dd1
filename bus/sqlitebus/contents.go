package sqlitebus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// contents reads everything that the bus stores, or moves it to another file, for migrations. Nobody may
// use the bus meanwhile.
type contents struct {
	*mailboxes
	clock *clock
}

// A StoredMessage is a message that waits in a mailbox, or a dead letter, with all that the bus stores
// about it.
type StoredMessage struct {
	Topic    bus.Topic
	Message  bus.Message
	Replays  int       // how many times the message was a dead letter before and was published again
	Attempts int       // for the first message in a mailbox: how many times the mailbox was claimed; for a dead letter: how many times before it was given up
	Due      time.Time // for the first message in a mailbox: until when the mailbox waits
	Reason   string    // for a dead letter: why it was given up
	BuriedAt time.Time // for a dead letter: when it was given up
}

// Count counts the messages that wait, and the dead letters.
func (c *contents) Count(ctx context.Context) (n int64, err error) {
	err = c.db.Read.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM message) + (SELECT count(*) FROM dead)").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count messages: %w", err)
	}
	return n, nil
}

// Messages reads the messages that wait in all mailboxes, in the order of publication. If an
// id was published again days later, Messages returns only the first message, because a bus
// that receives both at once would drop the second as a duplicate.
func (c *contents) Messages(ctx context.Context) iter.Seq2[StoredMessage, error] {
	return c.messages(ctx, `
		SELECT topic, key, seq, id, urgent, not_before, body, replays, attempts, due, '', 0 FROM message
		WHERE seq IN (SELECT min(seq) FROM message GROUP BY topic, id) ORDER BY seq`)
}

// Dead reads all dead letters, in the order in which they were given up.
func (c *contents) Dead(ctx context.Context) iter.Seq2[StoredMessage, error] {
	return c.messages(ctx, `
		SELECT topic, key, seq, id, urgent, not_before, body, replays, attempts, 0, reason, buried FROM dead ORDER BY n`)
}

// messages reads the messages that a query selects.
func (c *contents) messages(ctx context.Context, query string) iter.Seq2[StoredMessage, error] {
	return func(yield func(StoredMessage, error) bool) {
		rows, err := c.db.Read.QueryContext(ctx, query)
		if err != nil {
			yield(StoredMessage{}, fmt.Errorf("read messages: %w", err))
			return
		}
		defer func() { _ = rows.Close() }() // rows.Err has reported errors already
		for rows.Next() {
			var l StoredMessage
			m := &l.Message
			var notBefore, due, buried int64
			err := rows.Scan(&l.Topic, &m.Key, &m.Seq, &m.ID, &m.Urgent, &notBefore, &m.Body, &l.Replays, &l.Attempts,
				&due, &l.Reason, &buried)
			m.NotBefore, l.Due, l.BuriedAt = sqldb.FromMicros(notBefore), sqldb.FromMicros(due), sqldb.FromMicros(buried)
			if err != nil {
				err = fmt.Errorf("read messages: %w", err)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(StoredMessage{}, fmt.Errorf("read messages: %w", err))
		}
	}
}

// A KnownID is an id that was published on a day, counted from 1970 in UTC.
type KnownID struct {
	Topic bus.Topic
	Day   int64
	ID    string
}

// Known reads the ids that were published today or yesterday, by topic and day.
func (c *contents) Known(ctx context.Context) iter.Seq2[KnownID, error] {
	return func(yield func(KnownID, error) bool) {
		rows, err := c.db.Read.QueryContext(ctx, `SELECT topic, day, id FROM seen WHERE day >= ? ORDER BY topic, day`,
			dayOf(time.Now().UnixMicro())-1)
		if err != nil {
			yield(KnownID{}, fmt.Errorf("read known ids: %w", err))
			return
		}
		defer func() { _ = rows.Close() }() // rows.Err has reported errors already
		for rows.Next() {
			var k KnownID
			if err := rows.Scan(&k.Topic, &k.Day, &k.ID); err != nil {
				yield(k, fmt.Errorf("read known ids: %w", err))
				return
			}
			if !yield(k, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(KnownID{}, fmt.Errorf("read known ids: %w", err))
		}
	}
}

// Pauses returns the paused topics, and when each pause ends.
func (c *contents) Pauses(ctx context.Context) (map[bus.Topic]time.Time, error) {
	rows, err := c.db.Read.QueryContext(ctx, `SELECT topic, until FROM pause`)
	if err != nil {
		return nil, fmt.Errorf("read pauses: %w", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported errors already
	pauses := map[bus.Topic]time.Time{}
	for rows.Next() {
		var topic bus.Topic
		var until int64
		if err := rows.Scan(&topic, &until); err != nil {
			return nil, fmt.Errorf("read pauses: %w", err)
		}
		pauses[topic] = sqldb.FromMicros(until)
	}
	return pauses, rows.Err()
}

// Split moves everything from the database that the bus shares with others, which is the file from, to a
// database of its own in the file to. If it is interrupted, some data may be in both; repeating it
// completes it. After Split the bus may only be closed. point is called between the steps.
func (c *contents) Split(ctx context.Context, from, to string, point func(string)) error {
	c.db.Flush()
	own, err := sqldb.Open(ctx, to, Schema().SQLite)
	if err != nil {
		return fmt.Errorf("split: %w", err)
	}
	if err := errors.Join(own.Adopt(ctx, sqldb.Source{Path: from, Schema: Schema()}), own.Close()); err != nil {
		return fmt.Errorf("split: %w", err)
	}
	point("split:copied")
	err = c.db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, remove := range []string{`DELETE FROM message`, `DELETE FROM dead`, `DELETE FROM seen`, `DELETE FROM pause`} {
			if _, err := tx.Exec(remove); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("split: %w", err)
	}
	point("split:removed")
	return nil
}

// Highest returns a number above every fence and every event's id that the bus has given out, so
// that another bus can continue above it.
func (c *contents) Highest() int64 { return c.clock.next() }
