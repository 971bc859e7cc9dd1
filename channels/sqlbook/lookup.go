package sqlbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"

	"parley/bus"
	"parley/channels"
	"parley/sessions/sqldb"
)

// Lookup implements channels.Sends: it reads a send with its parts.
func (s *sends) Lookup(ctx context.Context, id string) (channels.Send, error) {
	send, err := s.read(ctx, id)
	if err != nil {
		return channels.Send{}, fmt.Errorf("look up send %s: %w", id, err)
	}
	return send, nil
}

// read reads a send and its parts with one query, so that both are from the same time.
func (s *sends) read(ctx context.Context, id string) (send channels.Send, err error) {
	rows, err := s.db.Read.QueryContext(ctx, `SELECT s.channel, s.chat, s.thread, s.session, s.writer, s.begun, p.state, p.body, p.plain, p.platform_id,
		p.interrupted, p.code, p.edits, p.under, p.file, p.changed
		FROM sends s LEFT JOIN parts p ON p.send = s.id WHERE s.id = ? ORDER BY p.part`, sqldb.Text(id))
	if err != nil {
		return channels.Send{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found := false
	for rows.Next() {
		var r sendRow
		if err := r.scan(rows); err != nil {
			return channels.Send{}, err
		}
		if !found {
			found, send = true, channels.Send{ID: id, To: r.to, Session: r.session, Writer: r.writer, At: timeOf(r.begun)}
		}
		if !r.state.Valid { // a message without parts
			continue
		}
		send.Parts = append(send.Parts, r.part())
		if at := timeOf(r.changed.Int64); at.After(send.At) {
			send.At = at
		}
	}
	if err := rows.Err(); err != nil {
		return channels.Send{}, err
	}
	if !found {
		return channels.Send{}, channels.ErrNoSend
	}
	return send, nil
}

// A sendRow is one row that read gets: a send with one of its parts, or without any.
type sendRow struct {
	to                                           bus.Address
	session, writer                              string
	begun                                        int64
	changed, interrupted, file                   sql.NullInt64
	state, body, plain, sent, code, edits, under sql.NullString
}

func (r *sendRow) scan(rows *sql.Rows) error {
	err := rows.Scan(&r.to.Channel, &r.to.Chat, &r.to.Thread, &r.session, &r.writer, &r.begun, &r.state, &r.body, &r.plain, &r.sent,
		&r.interrupted, &r.code, &r.edits, &r.under, &r.file, &r.changed)
	restoreTexts(&r.to.Channel, &r.to.Chat, &r.to.Thread, &r.session, &r.writer, &r.body.String, &r.plain.String, &r.sent.String, &r.code.String,
		&r.edits.String, &r.under.String)
	return err
}

// part returns the row's part.
func (r *sendRow) part() channels.SentPart {
	return channels.SentPart{
		Text: r.body.String, Plain: r.plain.String, State: r.state.String, Edits: r.edits.String, Under: r.under.String,
		File: r.file.Int64 != 0, PlatformID: r.sent.String, Interrupted: int(r.interrupted.Int64), Code: r.code.String,
	}
}

// Drafts implements channels.Drafts: it lists a channel's drafts, oldest first.
func (s *sends) Drafts(ctx context.Context, channel string) ([]channels.Send, error) {
	ids, err := queryAll(ctx, s.db.Read, func(scan func(...any) error) (id string, err error) {
		err = scan(&id)
		restoreTexts(&id)
		return id, err
	}, `SELECT send FROM parts JOIN sends ON sends.id = send WHERE state = '`+channels.Drafted+`' AND channel = ? ORDER BY begun, send`, sqldb.Text(channel))
	if err != nil {
		return nil, fmt.Errorf("list the drafts of %s: %w", channel, err)
	}
	drafts := make([]channels.Send, 0, len(ids))
	for _, id := range ids {
		draft, err := s.Lookup(ctx, id)
		if errors.Is(err, channels.ErrNoSend) { // erased in the meantime
			continue
		}
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, draft)
	}
	return drafts, nil
}

// A channelCount is a number of messages on one channel.
type channelCount struct {
	channel string
	n       int
}

// UnknownSends counts, for each channel, the messages for which nobody can tell whether they were sent. It leaves
// out channels that have none.
func (s *sends) UnknownSends(ctx context.Context) (map[string]int, error) {
	counts, err := queryAll(ctx, s.db.Read, func(scan func(...any) error) (t channelCount, err error) {
		err = scan(&t.channel, &t.n)
		restoreTexts(&t.channel)
		return t, err
	}, `SELECT channel, count(DISTINCT send) FROM parts JOIN sends ON sends.id = send WHERE state = '`+channels.OutcomeUnknown+`' GROUP BY channel`)
	if err != nil {
		return nil, err
	}
	return maps.Collect(func(yield func(string, int) bool) {
		for _, t := range counts {
			if !yield(t.channel, t.n) {
				return
			}
		}
	}), nil
}
