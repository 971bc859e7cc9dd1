package sqlitebus

import (
	"context"
	"fmt"
	"iter"
	"time"

	"parley/bus"
)

// This file is for who takes what a bus keeps to another one. Nobody may work
// with the bus meanwhile.

// A Letter is a message as the bus keeps it: one that waits, or a dead one.
type Letter struct {
	Topic    bus.Topic
	Message  bus.Message
	Replays  int       // how often it was dead before
	Attempts int       // of one that is first in its mailbox, how often that was claimed
	Due      time.Time // and until when it waits
	Reason   string    // of a dead one
	BuriedAt time.Time
}

// Letters reads what waits in all mailboxes, in the order of publication. Of
// several under one id, published days apart, it gives the first: a bus that
// takes them at once knows the others.
func (b *Bus) Letters(ctx context.Context) iter.Seq2[Letter, error] {
	return b.letters(ctx, `
		SELECT topic, key, seq, id, urgent, not_before, body, replays, attempts, due, '', 0 FROM message
		WHERE seq IN (SELECT min(seq) FROM message GROUP BY topic, id) ORDER BY seq`)
}

// Dead reads all dead letters, in the order in which they were buried.
func (b *Bus) Dead(ctx context.Context) iter.Seq2[Letter, error] {
	return b.letters(ctx, `
		SELECT topic, key, seq, id, urgent, not_before, body, replays, attempts, 0, reason, buried FROM dead ORDER BY n`)
}

func (b *Bus) letters(ctx context.Context, query string) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		rows, err := b.db.Read.QueryContext(ctx, query)
		if err != nil {
			yield(Letter{}, fmt.Errorf("read letters: %w", err))
			return
		}
		defer func() { _ = rows.Close() }() // rows.Err has told already
		for rows.Next() {
			var l Letter
			m := &l.Message
			var notBefore, due, buried int64
			err := rows.Scan(&l.Topic, &m.Key, &m.Seq, &m.ID, &m.Urgent, &notBefore, &m.Body, &l.Replays, &l.Attempts,
				&due, &l.Reason, &buried)
			m.NotBefore, l.Due, l.BuriedAt = fromMicro(notBefore), fromMicro(due), fromMicro(buried)
			if err != nil {
				err = fmt.Errorf("read letters: %w", err)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Letter{}, fmt.Errorf("read letters: %w", err))
		}
	}
}

// A Known id was published on that day, counted from 1970 in UTC.
type Known struct {
	Topic bus.Topic
	Day   int64
	ID    string
}

// Known reads the ids that were published today or yesterday, by topic and day.
func (b *Bus) Known(ctx context.Context) iter.Seq2[Known, error] {
	return func(yield func(Known, error) bool) {
		rows, err := b.db.Read.QueryContext(ctx, `SELECT topic, day, id FROM seen WHERE day >= ? ORDER BY topic, day`,
			today(time.Now().UnixMicro())-1)
		if err != nil {
			yield(Known{}, fmt.Errorf("read known ids: %w", err))
			return
		}
		defer func() { _ = rows.Close() }() // rows.Err has told already
		for rows.Next() {
			var k Known
			if err := rows.Scan(&k.Topic, &k.Day, &k.ID); err != nil {
				yield(k, fmt.Errorf("read known ids: %w", err))
				return
			}
			if !yield(k, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Known{}, fmt.Errorf("read known ids: %w", err))
		}
	}
}

// Pauses tells until when topics are paused.
func (b *Bus) Pauses(ctx context.Context) (map[bus.Topic]time.Time, error) {
	rows, err := b.db.Read.QueryContext(ctx, `SELECT topic, until FROM pause`)
	if err != nil {
		return nil, fmt.Errorf("read pauses: %w", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has told already
	pauses := map[bus.Topic]time.Time{}
	for rows.Next() {
		var topic bus.Topic
		var until int64
		if err := rows.Scan(&topic, &until); err != nil {
			return nil, fmt.Errorf("read pauses: %w", err)
		}
		pauses[topic] = fromMicro(until)
	}
	return pauses, rows.Err()
}

// Highest is above every fence, and every event's id, that the bus ever gave.
func (b *Bus) Highest() int64 { return b.clock.next() }
