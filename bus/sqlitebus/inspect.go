package sqlitebus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// Topics implements bus.Inspector: it lists the topics that the scheduler knows.
func (b *Bus) Topics(ctx context.Context) ([]bus.Topic, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := b.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []bus.Topic
	for name, t := range s.topics {
		if t.used {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Depth implements bus.Inspector: it counts in memory, except for the dead letters.
func (b *Bus) Depth(ctx context.Context, topic bus.Topic) (bus.Depth, error) {
	d := b.sched.depth(topic)
	err := b.db.Read.QueryRowContext(ctx, `SELECT count(*) FROM dead WHERE topic = ?`, topic).Scan(&d.Dead)
	if err != nil {
		return bus.Depth{}, fmt.Errorf("count dead letters: %w", b.translateRead(err))
	}
	return d, nil
}

// HasMail implements bus.Inspector: it looks at the mailbox in memory.
func (b *Bus) HasMail(ctx context.Context, topic bus.Topic, key string) (bool, error) {
	s := b.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[topic]
	if t == nil || t.boxes[key] == nil {
		return false, ctx.Err()
	}
	return t.boxes[key].mail.n > 0, ctx.Err()
}

// depth returns the depth of a topic without its dead letters, which are not in memory.
func (s *scheduler) depth(name bus.Topic) (d bus.Depth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	if t == nil {
		return d
	}
	var oldest int64
	for _, x := range t.boxes {
		if x.mail.n == 0 {
			continue
		}
		switch x.state {
		case leased:
			d.Leased++
		case delayed:
			d.Delayed++
			d.Waiting += x.mail.n
		case ready, idle:
			d.Waiting += x.mail.n
		}
		if oldest == 0 || x.mail.published < oldest {
			oldest = x.mail.published
		}
	}
	if oldest != 0 {
		d.Oldest = max(0, time.Since(time.UnixMicro(oldest)))
	}
	return d
}

// Pause implements bus.Pauser: it stores the end of the pause, so that the pause outlives a
// restart, and tells the scheduler.
func (b *Bus) Pause(ctx context.Context, topic bus.Topic, d time.Duration) error {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	err := b.db.Write(ctx, func(tx *sqldb.Tx) error {
		if until.IsZero() {
			_, err := tx.Exec(`DELETE FROM pause WHERE topic = ?`, topic)
			return err
		}
		_, err := tx.Exec(`INSERT OR REPLACE INTO pause (topic, until) VALUES (?, ?)`, topic, until.UnixMicro())
		return err
	})
	if err != nil {
		return fmt.Errorf("pause: %w", translate(err))
	}
	b.sched.pause(topic, until)
	return nil
}

// Writable writes and deletes a row, and returns an error if that did not become durable.
// Reading would prove nothing: a full disk can be read.
func (b *Bus) Writable(ctx context.Context) error {
	err := b.db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, do := range []string{`INSERT OR REPLACE INTO pause (topic, until) VALUES ('', 0)`, `DELETE FROM pause WHERE topic = ''`} {
			if _, err := tx.Exec(do); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write to the bus: %w", translate(err))
	}
	return nil
}

const selectDead = `SELECT id, key, seq, urgent, not_before, attempts, reason, buried, body FROM dead
	WHERE topic = ?1 AND n > coalesce((SELECT n FROM dead WHERE topic = ?1 AND id = ?2), 0) ORDER BY n LIMIT ?3`

// DeadLetters implements bus.DeadLetters: it reads a page of the list in the order of burial. If
// the dead letter named by after no longer exists, the list starts again from the beginning.
func (b *Bus) DeadLetters(ctx context.Context, topic bus.Topic, after string, limit int) ([]bus.DeadLetter, error) {
	rows, err := b.db.Read.QueryContext(ctx, selectDead, topic, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", b.translateRead(err))
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
		m.NotBefore, d.BuriedAt = fromMicro(notBefore), fromMicro(buried)
		list = append(list, d)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
}

// translateRead returns ErrClosed for an error of a read once the bus is closed: such
// errors do not say that the database was closed.
func (b *Bus) translateRead(err error) error {
	if b.sched.isClosed() {
		return bus.ErrClosed
	}
	return err
}

const deleteDead = `DELETE FROM dead WHERE topic = ? AND id = ?`

// Drop implements bus.DeadLetters: it deletes one dead letter.
func (b *Bus) Drop(ctx context.Context, topic bus.Topic, id string) error {
	var n int64
	err := b.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		n, err = tx.Exec(deleteDead, topic, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop dead letter: %w", translate(err))
	}
	if n == 0 {
		return fmt.Errorf("drop dead letter: %w", bus.ErrNotFound)
	}
	return nil
}

// Replay implements bus.DeadLetters: it publishes the message and deletes the dead letter in one
// transaction. The number goes on for a message that was replayed and became a dead letter again:
// x, x~1, x~2.
func (b *Bus) Replay(ctx context.Context, topic bus.Topic, id string) (string, error) {
	a := &arrival{topic: topic, publishedMessage: publishedMessage{published: time.Now().UnixMicro()}}
	err := b.commit(ctx, a, func(tx *sqldb.Tx) error {
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
		a.NotBefore = fromMicro(notBefore)
		if a.refused = b.lacksRoom(a); a.refused != nil {
			return nil
		}
		if err := markNextID(tx, a, id); err != nil {
			return err
		}
		if _, err := tx.Exec(deleteDead, topic, id); err != nil {
			return err
		}
		return b.insertArrival(tx, a)
	})
	if err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
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
