package sqlitebus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// readNumbers returns two numbers: no fence above stamp was given out so far, and no message's
// number above seq.
func readNumbers(ctx context.Context, db *sqldb.DB) (stamp, seq int64, err error) {
	if err := db.Read.QueryRowContext(ctx, getNumbers, metaClock, metaSeq).Scan(&stamp, &seq); err != nil {
		return 0, 0, fmt.Errorf("read the numbers given so far: %w", err)
	}
	return max(stamp, time.Now().UnixMicro()), seq, nil
}

// reserveAndLoad reserves numbers above stamp and seq, and builds the scheduler from the rows. The
// numbers are reserved before any is given out, because they must not repeat even if this process
// crashes at once. While the disk is flushed for that, the rows are read.
func (ms *mailboxes) reserveAndLoad(ctx context.Context, stamp, seq int64) error {
	reserved := make(chan error, 1)
	go func() {
		reserved <- ms.db.Write(ctx, func(tx *sqldb.Tx) error {
			if _, err := tx.Exec(setMeta, metaClock, stamp+clockAhead.Microseconds()); err != nil {
				return err
			}
			_, err := tx.Exec(setMeta, metaSeq, seq+seqAhead)
			return err
		})
	}()
	err := ms.load(ctx)
	if wrong := <-reserved; wrong != nil {
		err = errors.Join(fmt.Errorf("reserve numbers: %w", wrong), err)
	}
	return err
}

// load restores the topics and the mailboxes.
func (ms *mailboxes) load(ctx context.Context) error {
	if err := ms.loadTopics(ctx); err != nil {
		return fmt.Errorf("read topics: %w", err)
	}
	if err := ms.loadMailboxes(ctx); err != nil {
		return fmt.Errorf("read mailboxes: %w", err)
	}
	return nil
}

// loadTopics restores the topics with their pauses.
func (ms *mailboxes) loadTopics(ctx context.Context) error {
	rows, err := ms.db.Read.QueryContext(ctx, `
		SELECT topic, max(until) FROM (
			SELECT topic, until FROM pause UNION ALL
			SELECT DISTINCT topic, 0 FROM dead)
		GROUP BY topic`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported errors already
	for rows.Next() {
		var name bus.Topic
		var until int64
		if err := rows.Scan(&name, &until); err != nil {
			return err
		}
		ms.sched.restoreTopic(name, sqldb.FromMicros(until))
	}
	return rows.Err()
}

// loadMailboxes restores the mailboxes, ordered by first message: the order in which they
// became due isn't stored, and this is the closest to it. Bodies stay on disk until somebody
// asks for them. A mailbox may have been worked on before a crash, so its next claim must be
// on disk before anybody works on it.
func (ms *mailboxes) loadMailboxes(ctx context.Context) error {
	rows, err := ms.db.Read.QueryContext(ctx, `
		SELECT m.topic, m.key, m.published, m.not_before, m.attempts, m.due, g.n, g.last, g.urgent, g.bytes
		FROM (SELECT min(seq) AS first, max(seq) AS last, count(*) AS n, max(CASE WHEN urgent THEN seq ELSE 0 END) AS urgent,
				sum(length(body)) AS bytes
			FROM message GROUP BY topic, key) AS g
		JOIN message AS m ON m.seq = g.first
		ORDER BY m.seq`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported errors already
	for rows.Next() {
		var topic bus.Topic
		var notBefore, due int64
		x := &box{recordFirst: true, heapIndex: -1}
		err := rows.Scan(&topic, &x.key, &x.mail.published, &notBefore, &x.attempts, &due, &x.mail.count, &x.mail.lastSeq, &x.mail.lastUrgent,
			&x.bytes)
		if err != nil {
			return err
		}
		x.mail.notBefore = sqldb.FromMicros(notBefore)
		ms.sched.restoreMailbox(topic, x, sqldb.FromMicros(due))
	}
	return rows.Err()
}
