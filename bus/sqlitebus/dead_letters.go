package sqlitebus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// deadLetters lists, drops and replays dead letters.
type deadLetters struct {
	*mailboxes
	publisher *publisher
}

const selectDead = `SELECT id, key, seq, urgent, not_before, attempts, reason, buried, body FROM dead
	WHERE topic = ?1 AND n > coalesce((SELECT n FROM dead WHERE topic = ?1 AND id = ?2), 0) ORDER BY n LIMIT ?3`

const selectNewestDead = `SELECT id, key, seq, urgent, not_before, attempts, reason, buried, body FROM dead
	WHERE topic = ?1 AND n < coalesce((SELECT n FROM dead WHERE topic = ?1 AND id = ?2), 9223372036854775807) ORDER BY n DESC LIMIT ?3`

// NewestDeadLetters implements bus.DeadLetters: it reads a page as DeadLetters does, from the newest on.
func (ds *deadLetters) NewestDeadLetters(ctx context.Context, topic bus.Topic, before string, limit int) ([]bus.DeadLetter, error) {
	return ds.list(ctx, selectNewestDead, topic, before, limit)
}

// DeadLetters implements bus.DeadLetters: it reads a page of the list in the order of burial. If
// the dead letter named by after no longer exists, the list starts again from the beginning.
func (ds *deadLetters) DeadLetters(ctx context.Context, topic bus.Topic, after string, limit int) ([]bus.DeadLetter, error) {
	return ds.list(ctx, selectDead, topic, after, limit)
}

const selectOneDead = `SELECT id, key, seq, urgent, not_before, attempts, reason, buried, body FROM dead WHERE topic = ? AND id = ?`

// DeadLetter implements bus.DeadLetters: it reads one dead letter.
func (ds *deadLetters) DeadLetter(ctx context.Context, topic bus.Topic, id string) (bus.DeadLetter, error) {
	found, err := ds.list(ctx, selectOneDead, topic, id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("read dead letter: %w", bus.ErrNotFound)
	}
	if err != nil {
		return bus.DeadLetter{}, err
	}
	return found[0], nil
}

// list reads the dead letters of a topic that one of the queries selects.
func (ds *deadLetters) list(ctx context.Context, query string, topic bus.Topic, args ...any) ([]bus.DeadLetter, error) {
	rows, err := ds.db.Read.QueryContext(ctx, query, append([]any{topic}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", ds.asClosedRead(err))
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported errors already
	var list []bus.DeadLetter
	for rows.Next() {
		d := bus.DeadLetter{Topic: topic}
		m := &d.Message
		var notBefore, buried int64
		if err := rows.Scan(&m.ID, &m.Key, &m.Seq, &m.Urgent, &notBefore, &d.Attempts, &d.Reason, &buried, &m.Body); err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		m.NotBefore, d.BuriedAt = sqldb.FromMicros(notBefore), sqldb.FromMicros(buried)
		list = append(list, d)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
}

const deleteDead = `DELETE FROM dead WHERE topic = ? AND id = ?`

// Drop implements bus.DeadLetters: it deletes one dead letter.
func (ds *deadLetters) Drop(ctx context.Context, topic bus.Topic, id string) error {
	var n int64
	err := ds.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		n, err = tx.Exec(deleteDead, topic, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop dead letter: %w", asClosed(err))
	}
	if n == 0 {
		return fmt.Errorf("drop dead letter: %w", bus.ErrNotFound)
	}
	ds.news.Emit(bus.NewDeadLetterEvent(topic, "", id, bus.StateDropped))
	return nil
}

// Replay implements bus.DeadLetters: it publishes the message and deletes the dead letter in one
// transaction. The message gets a new id, because the bus knows its old one: x becomes x~1 and,
// if that becomes a dead letter and is replayed too, x~2.
func (ds *deadLetters) Replay(ctx context.Context, topic bus.Topic, id string) (string, error) {
	a := &arrival{topic: topic, publishedMessage: publishedMessage{published: time.Now().UnixMicro()}}
	err := ds.publisher.commit(ctx, a, func(tx *sqldb.Tx) error {
		var notBefore int64
		a.Message = bus.Message{}
		err := tx.Get(`SELECT key, replays, urgent, not_before, body FROM dead WHERE topic = ? AND id = ?`, []any{topic, id},
			&a.Key, &a.replays, &a.Urgent, &notBefore, &a.Body)
		if errors.Is(err, sql.ErrNoRows) {
			a.refused = bus.ErrNotFound
			return nil
		}
		if err != nil {
			return err
		}
		a.NotBefore = sqldb.FromMicros(notBefore)
		if a.refused = ds.publisher.lacksRoom(a); a.refused != nil {
			return nil
		}
		if err := markNextID(tx, a, id); err != nil {
			return err
		}
		if _, err := tx.Exec(deleteDead, topic, id); err != nil {
			return err
		}
		return ds.publisher.insertArrival(tx, a)
	})
	if err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	ds.news.Emit(bus.NewDeadLetterEvent(topic, a.Key, id, bus.StateReplayed))
	return a.ID, nil
}

// markNextID gives the arriving message a the next id (x~1, x~2 and so on) that was not seen
// lately, and marks that id as seen.
func markNextID(tx *sqldb.Tx, a *arrival, id string) error {
	original := id
	if a.replays > 0 {
		original = strings.TrimSuffix(id, "~"+strconv.Itoa(a.replays))
	}
	for {
		a.replays++
		a.ID = original + "~" + strconv.Itoa(a.replays)
		fresh, err := tx.Exec(markSeen, dayOf(a.published), a.topic, a.ID)
		if err != nil || fresh > 0 {
			return err
		}
	}
}
