package nodes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// WaitMigration is the SQL that adds the table of the turns that wait for nodes, and which calls people have approved.
const WaitMigration = `
ALTER TABLE node_calls ADD COLUMN approved BIGINT NOT NULL DEFAULT 0;

CREATE TABLE node_waits (
	id      {bytes} PRIMARY KEY,
	node    {bytes} NOT NULL,
	session {bytes} NOT NULL,    -- its key
	person  {bytes} NOT NULL,
	until   BIGINT NOT NULL,     -- when the turn goes on in any case
	woken   BIGINT NOT NULL      -- when the session was last sent mail about it
);
CREATE INDEX node_waits_by_node ON node_waits (node, woken);
CREATE INDEX node_waits_by_time ON node_waits (until);
CREATE INDEX node_waits_by_session ON node_waits (session);
CREATE INDEX node_waits_by_person ON node_waits (person);
`

// If a turn waits for the first of several nodes, each has a row. The id of each row but that of NodeWait.Node is the wait's id,
// this character, and the node's name.
const (
	rowSeparator      = "#"
	rowsOfWait        = "(id = ? OR id > ? AND id < ?)"
	afterRowSeparator = "$" // the character after it
)

// idsOfRows returns the arguments of rowsOfWait. Ids of waits never contain the separator.
func idsOfRows(wait string) []any {
	wait = sqldb.Text(wait)
	return []any{wait, wait + rowSeparator, wait + afterRowSeparator}
}

// OpenWait records that a turn waits for a node or for the first of several, unless that is known. It returns
// sessions.ErrNotFound if the session does not exist.
func (t *Table) OpenWait(ctx context.Context, w sessions.NodeWait) error {
	rows := map[string]string{w.ID: w.Node}
	for _, node := range w.AnyOfNodes {
		if node != w.Node {
			rows[w.ID+rowSeparator+node] = node
		}
	}
	err := t.db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(rows)) { // in one order, so that two processes don't wait for each other
			row := w
			row.ID, row.Node = id, rows[id]
			if err := t.openRow(tx, row); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap("record the wait "+w.ID, err)
}

// openRow records a wait for one node, unless it is known.
func (t *Table) openRow(tx *sqldb.Tx, w sessions.NodeWait) error {
	lock := ""
	if t.db.IsPostgres() {
		lock = " FOR KEY SHARE OF s"
	}
	n, err := tx.Exec(`INSERT INTO node_waits (id, node, session, person, until, woken)
		SELECT CAST(? AS TEXT), CAST(? AS TEXT), s.key, CAST(? AS TEXT), CAST(? AS BIGINT), 0 FROM sessions s WHERE s.key = ?`+lock+`
		ON CONFLICT (id) DO NOTHING`,
		sqldb.Text(w.ID), sqldb.Text(w.Node), sqldb.Text(w.Person), sqldb.Micros(w.Until), sqldb.Text(w.Session))
	if err != nil || n > 0 {
		return err
	}
	var known int
	if err = tx.Get("SELECT count(*) FROM node_waits WHERE id = ?", []any{sqldb.Text(w.ID)}, &known); err == nil && known == 0 {
		err = sessions.ErrNotFound
	}
	return err
}

// CloseWait records that a turn waits no more. It may be repeated.
func (t *Table) CloseWait(ctx context.Context, id string) error {
	_, err := t.db.Exec(ctx, "DELETE FROM node_waits WHERE "+rowsOfWait, idsOfRows(id)...)
	return wrap("end the wait "+id, err)
}

// WaitsIn reports whether a turn of a session waits for a node.
func (t *Table) WaitsIn(ctx context.Context, session string) (bool, error) {
	var n int
	err := t.db.Read.QueryRowContext(ctx, "SELECT count(*) FROM node_waits WHERE session = ?", sqldb.Text(session)).Scan(&n)
	return n > 0, wrap("look for waits of session "+session, err)
}

// DueWaits returns waits that are over: their time has come, or their node is here or was removed. It leaves out those whose
// sessions were sent mail at the time woken or later, and returns at most so many for each reason. A wait for the first of
// several nodes can be there more than once. Next is when the time of another one comes; zero if there is none.
func (t *Table) DueWaits(ctx context.Context, now, woken time.Time, most int) (due []sessions.NodeWait, next time.Time, err error) {
	const columns = "SELECT w.id, w.node, w.session, w.person, w.until FROM "
	due, err = t.waits(ctx, columns+"node_waits w WHERE w.until <= ? AND w.woken < ? ORDER BY w.until LIMIT ?", now.UnixMicro(), woken.UnixMicro(), most)
	if err != nil {
		return nil, next, err
	}
	here, err := t.waits(ctx, columns+`nodes n JOIN node_waits w ON w.node = n.name
		WHERE (n.state = 'revoked' OR n.process <> '' AND n.held > ?) AND w.woken < ? AND w.until > ? LIMIT ?`,
		now.Add(-LinkLifetime).UnixMicro(), woken.UnixMicro(), now.UnixMicro(), most)
	if err != nil {
		return nil, next, err
	}
	var until int64
	err = t.db.Read.QueryRowContext(ctx, "SELECT coalesce(min(until), 0) FROM node_waits WHERE until > ?", now.UnixMicro()).Scan(&until)
	return append(due, here...), sqldb.FromMicros(until), wrap("list waits", err)
}

// waits returns the waits that a query finds.
func (t *Table) waits(ctx context.Context, query string, args ...any) (all []sessions.NodeWait, err error) {
	found, err := t.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, wrap("list waits", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var w sessions.NodeWait
		var until int64
		if err := found.Scan(&w.ID, &w.Node, &w.Session, &w.Person, &until); err != nil {
			return nil, wrap("list waits", err)
		}
		w.ID, _, _ = strings.Cut(sqldb.Untext(w.ID), rowSeparator)
		w.Node, w.Session, w.Person, w.Until = sqldb.Untext(w.Node), sqldb.Untext(w.Session), sqldb.Untext(w.Person), sqldb.FromMicros(until)
		all = append(all, w)
	}
	return all, found.Err()
}

// NoteWoken records that a session was sent mail about a wait.
func (t *Table) NoteWoken(ctx context.Context, id string, now time.Time) error {
	_, err := t.db.Exec(ctx, "UPDATE node_waits SET woken = ? WHERE "+rowsOfWait, append([]any{now.UnixMicro()}, idsOfRows(id)...)...)
	return wrap("record that the wait "+id+" is told", err)
}

// Withdraw removes a call that was never sent and has not ended, as if it had not been given. It returns false if there is
// no such call.
func (t *Table) Withdraw(ctx context.Context, id string) (bool, error) {
	n, err := t.db.Exec(ctx, "DELETE FROM node_calls WHERE id = ? AND sent = 0 AND ended = 0 AND cancelled = 0", sqldb.Text(id))
	return n > 0, wrap("withdraw call "+id, err)
}
