package sqlbook

import (
	"context"
	"fmt"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// Begin implements channels.Sends: it inserts the send and its parts in one transaction. If the answer of an
// earlier Begin was lost, a send that that call may have recorded counts as recorded by this call.
func (s *sends) Begin(ctx context.Context, send channels.Send) (known channels.Send, fresh bool, err error) {
	if known, ok := s.early.take(send.ID); ok {
		return known, true, nil
	}
	now := s.doubts.firstBeginTime(send.ID, time.Now())
	known = recordOf(send, now)
	if s.db.IsPostgres() {
		fresh, err = s.beginAtOnce(ctx, known, now)
	} else {
		err = s.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			fresh, err = begin(tx, known, now)
			return err
		})
	}
	if err == nil && !fresh {
		known, err = s.read(ctx, send.ID)
	}
	doubted := s.doubts.recordOutcome(send.ID, now, err)
	// If an earlier Begin committed but its answer was lost, this send is still ours: the caller sent nothing, and
	// nobody has changed the send since.
	fresh = fresh || err == nil && doubted && isUntouched(known, now)
	if err != nil {
		return channels.Send{}, false, fmt.Errorf("begin send %s: %w", send.ID, err)
	}
	s.pruneSends(now)
	return known, fresh, nil
}

// begin inserts a send with its parts; fresh is false if the id is known.
func begin(tx *sqldb.Tx, send channels.Send, now time.Time) (fresh bool, err error) {
	n, err := tx.Exec(`INSERT INTO sends (id, channel, chat, thread, session, writer, begun) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		append(textArgs(send.ID, send.To.Channel, send.To.Chat, send.To.Thread, send.Session, send.Writer), toStamp(now))...)
	if err != nil || n == 0 {
		return false, err
	}
	for i, p := range send.Parts {
		if _, err := tx.Exec(`INSERT INTO parts (send, part, state, body, plain, code, edits, under, file, platform_id, interrupted, changed)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, ?)`,
			sqldb.Text(send.ID), i, p.State, sqldb.Text(p.Text), sqldb.Text(p.Plain), sqldb.Text(p.Code),
			sqldb.Text(p.Edits), sqldb.Text(p.Under), toBit(p.File), toStamp(now)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// beginAtOnceSQL is the statement that does in one round trip what begin does in several.
const beginAtOnceSQL = `
WITH made AS (
	INSERT INTO sends (id, channel, chat, thread, begun, session, writer) VALUES ($1, $2, $3, $4, $5, $13, $14)
	ON CONFLICT DO NOTHING RETURNING id
), put AS (
	INSERT INTO parts (send, part, state, body, plain, code, edits, under, file, platform_id, interrupted, changed)
	SELECT made.id, new.part - 1, new.state, new.body, new.plain, new.code, new.edits, new.under, new.file, '', 0, $5
	FROM made, unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::int[])
		WITH ORDINALITY AS new (state, body, plain, code, edits, under, file, part)
)
SELECT EXISTS (SELECT 1 FROM made)`

// beginAtOnce records a send with its parts on PostgreSQL; fresh is false if the id is known.
func (s *sends) beginAtOnce(ctx context.Context, send channels.Send, now time.Time) (fresh bool, err error) {
	column := func(of func(channels.SentPart) string) []string {
		list := make([]string, len(send.Parts))
		for i, p := range send.Parts {
			list[i] = sqldb.Text(of(p))
		}
		return list
	}
	files := make([]int32, len(send.Parts))
	for i, p := range send.Parts {
		files[i] = int32(toBit(p.File))
	}
	args := append(textArgs(send.ID, send.To.Channel, send.To.Chat, send.To.Thread), toStamp(now),
		column(func(p channels.SentPart) string { return p.State }),
		column(func(p channels.SentPart) string { return p.Text }),
		column(func(p channels.SentPart) string { return p.Plain }),
		column(func(p channels.SentPart) string { return p.Code }),
		column(func(p channels.SentPart) string { return p.Edits }),
		column(func(p channels.SentPart) string { return p.Under }),
		files, sqldb.Text(send.Session), sqldb.Text(send.Writer))
	_, err = s.db.Group(ctx, beginAtOnceSQL, args, &fresh)
	return fresh, err
}

// recordOf returns a send in the form in which Begin records it: drafts stay as they are, the first of the other parts is
// being sent unless it comes later, and the rest are queued. Of a part that has failed, only why is recorded.
func recordOf(send channels.Send, now time.Time) channels.Send {
	parts := make([]channels.SentPart, len(send.Parts))
	for i, p := range send.Parts {
		if p.State == channels.Failed {
			parts[i] = channels.SentPart{State: channels.Failed, Code: p.Code, File: p.File}
			continue
		}
		parts[i] = channels.SentPart{Text: p.Text, Plain: p.Plain, State: channels.Queued, Edits: p.Edits, Under: p.Under, File: p.File}
		switch {
		case p.State == channels.Drafted:
			parts[i].State = channels.Drafted
		case i == 0:
			parts[i].State = channels.Sending
		}
	}
	send.Parts, send.At = parts, timeOf(toStamp(now))
	return send
}

// isUntouched reports whether a send is still as Begin recorded it at that time, so that certainly nothing of it has
// been sent.
func isUntouched(send channels.Send, at time.Time) bool {
	for i, p := range send.Parts {
		first := p.State == channels.Sending || p.State == channels.Drafted && p.PlatformID == ""
		if i == 0 && !first || i > 0 && p.State != channels.Queued || p.Interrupted != 0 {
			return false
		}
	}
	return toStamp(send.At) == toStamp(at)
}
