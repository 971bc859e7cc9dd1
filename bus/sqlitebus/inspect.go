package sqlitebus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// An inspector reports what waits in the mailboxes.
type inspector struct{ *mailboxes }

// Topics implements bus.Inspector: it lists the topics that have, or had, mail, dead letters or a pause.
func (i *inspector) Topics(ctx context.Context) ([]bus.Topic, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := i.sched
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
func (i *inspector) Depth(ctx context.Context, topic bus.Topic) (bus.Depth, error) {
	d := i.sched.depth(topic)
	err := i.db.Read.QueryRowContext(ctx, `SELECT count(*) FROM dead WHERE topic = ?`, topic).Scan(&d.Dead)
	if err != nil {
		return bus.Depth{}, fmt.Errorf("count dead letters: %w", i.asClosedRead(err))
	}
	return d, nil
}

// HasMail implements bus.Inspector: it looks at the mailbox in memory.
func (i *inspector) HasMail(ctx context.Context, topic bus.Topic, key string) (bool, error) {
	s := i.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[topic]
	if t == nil || t.boxes[key] == nil {
		return false, ctx.Err()
	}
	return t.boxes[key].mail.count > 0, ctx.Err()
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
		if x.mail.count == 0 {
			continue
		}
		switch x.state {
		case leased:
			d.Leased++
		case delayed:
			d.Delayed++
			d.Waiting += x.mail.count
		case ready, idle:
			d.Waiting += x.mail.count
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

// Mailboxes implements bus.Inspector: it lists the mailboxes in memory.
func (i *inspector) Mailboxes(ctx context.Context, topic bus.Topic, limit int) (bus.MailboxList, error) {
	if err := ctx.Err(); err != nil {
		return bus.MailboxList{}, err
	}
	return i.sched.mailboxes(topic, limit), nil
}

// mailboxes lists the mailboxes of a topic that have mail.
func (s *scheduler) mailboxes(name bus.Topic, limit int) (list bus.MailboxList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	if t == nil {
		return list
	}
	for _, x := range t.boxes {
		if x.mail.count == 0 {
			continue
		}
		m := bus.Mailbox{Key: x.key, Messages: x.mail.count, Since: time.UnixMicro(x.mail.published)}
		if x.state == leased {
			list.LeasedCount++
			list.Leased = insertOldest(list.Leased, m, limit)
			continue
		}
		if x.state == delayed {
			m.Due = x.deadline
		}
		list.WaitingCount++
		list.Waiting = insertOldest(list.Waiting, m, limit)
	}
	return list
}

// insertOldest inserts m into a list of the mailboxes with the oldest mail, which it keeps at or below
// limit.
func insertOldest(list []bus.Mailbox, m bus.Mailbox, limit int) []bus.Mailbox {
	at, _ := slices.BinarySearchFunc(list, m, bus.OlderMailbox)
	if at >= limit {
		return list
	}
	list = slices.Insert(list, at, m)
	return list[:min(len(list), limit)]
}

// Writable writes and deletes a row, and returns an error if that did not become durable.
// Reading would prove nothing: a full disk can be read.
func (i *inspector) Writable(ctx context.Context) error {
	err := i.db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, do := range []string{`INSERT OR REPLACE INTO pause (topic, until) VALUES ('', 0)`, `DELETE FROM pause WHERE topic = ''`} {
			if _, err := tx.Exec(do); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write to the bus: %w", asClosed(err))
	}
	return nil
}
