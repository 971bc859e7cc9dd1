package sqlbook

import (
	"context"
	"strings"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// This file holds the statements that differ on PostgreSQL.

// asPostgres changes a schema so that PostgreSQL sorts texts by their bytes, as SQLite
// does.
func asPostgres(schema string) string { return strings.ReplaceAll(schema, "TEXT", `TEXT COLLATE "C"`) }

// lockPairings makes transactions that change pairings run one after the other, so that
// what a transaction reads of them stays true until it commits. Reads outside of
// transactions do not wait. SQLite has only one writer anyway.
func (b *Book) lockPairings(tx *sqldb.Tx) error {
	if !b.db.Postgres() {
		return nil
	}
	_, err := tx.Exec("LOCK TABLE pairings IN SHARE ROW EXCLUSIVE MODE")
	return err
}

// beginAtOnce is the statement that does in one round trip what begin does in several.
const beginAtOnce = `
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

// beginAtOnce records a send with its parts on PostgreSQL; fresh is false if its id is
// known.
func (b *Book) beginAtOnce(ctx context.Context, send channels.Send, now time.Time) (fresh bool, err error) {
	column := func(of func(channels.SentPart) string) []string {
		list := make([]string, len(send.Parts))
		for i, p := range send.Parts {
			list[i] = sqldb.Text(of(p))
		}
		return list
	}
	files := make([]int32, len(send.Parts))
	for i, p := range send.Parts {
		files[i] = int32(bit(p.File))
	}
	args := append(textArgs(send.ID, send.To.Channel, send.To.Chat, send.To.Thread), stamp(now),
		column(func(p channels.SentPart) string { return p.State }),
		column(func(p channels.SentPart) string { return p.Text }),
		column(func(p channels.SentPart) string { return p.Plain }),
		column(func(p channels.SentPart) string { return p.Code }),
		column(func(p channels.SentPart) string { return p.Edits }),
		column(func(p channels.SentPart) string { return p.Under }),
		files, sqldb.Text(send.Session), sqldb.Text(send.Writer))
	_, err = b.db.Group(ctx, beginAtOnce, args, &fresh)
	return fresh, err
}
