package sqlbook

import (
	"context"
	"strings"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// This file holds what PostgreSQL is told otherwise than SQLite.

// asPostgres lets a schema's texts be sorted as SQLite does.
func asPostgres(schema string) string { return strings.ReplaceAll(schema, "TEXT", `TEXT COLLATE "C"`) }

// lockPairings lets one write at a time decide on pairings, so that what it has
// read of them holds until its end; SQLite has one writer only. Who looks up a
// pairing does not wait.
func (b *Book) lockPairings(tx *sqldb.Tx) error {
	if !b.db.Postgres() {
		return nil
	}
	_, err := tx.Exec("LOCK TABLE pairings IN SHARE ROW EXCLUSIVE MODE")
	return err
}

// beginAtOnce is begin in one round trip.
const beginAtOnce = `
WITH made AS (
	INSERT INTO sends (id, channel, chat, thread, begun) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT DO NOTHING RETURNING id
), put AS (
	INSERT INTO parts (send, part, state, body, plain, platform_id, interrupted, code, changed)
	SELECT made.id, new.part - 1, new.state, new.body, new.plain, '', 0, '', $5
	FROM made, unnest($6::text[], $7::text[], $8::text[]) WITH ORDINALITY AS new (state, body, plain, part)
)
SELECT EXISTS (SELECT 1 FROM made)`

func (b *Book) beginAtOnce(ctx context.Context, send channels.Send, now time.Time) (fresh bool, err error) {
	n := len(send.Parts)
	states, bodies, plains := make([]string, n), make([]string, n), make([]string, n)
	for i, p := range send.Parts {
		states[i], bodies[i], plains[i] = p.State, sqldb.Text(p.Text), sqldb.Text(p.Plain)
	}
	args := append(texts(send.ID, send.To.Channel, send.To.Chat, send.To.Thread), stamp(now), states, bodies, plains)
	err = b.db.Get(ctx, beginAtOnce, args, &fresh)
	return fresh, err
}
